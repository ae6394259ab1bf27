// refused: stablehlo.add cannot be expressed
func.func public @main(%x: tensor<8xi1>) -> tensor<8xi1> {
  %0 = stablehlo.add %x, %x : tensor<8xi1>
  return %0 : tensor<8xi1>
}
