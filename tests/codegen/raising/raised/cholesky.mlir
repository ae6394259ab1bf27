// The logistic function of a lower Cholesky factor.
func.func public @main(%a: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<2x4x4xf32>
  %1 = stablehlo.logistic %0 : tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}
