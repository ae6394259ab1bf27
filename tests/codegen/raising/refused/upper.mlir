// refused: upper Cholesky
func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %x, lower = false : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
