// refused: stablehlo.power cannot be expressed
func.func public @main(%x: tensor<8xi32>) -> tensor<8xi32> {
  %0 = stablehlo.power %x, %x : tensor<8xi32>
  return %0 : tensor<8xi32>
}
