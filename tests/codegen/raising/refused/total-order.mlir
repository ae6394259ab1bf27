// refused: total-order
func.func public @main(%x: tensor<8xf32>) -> tensor<8xi1> {
  %0 = stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}
