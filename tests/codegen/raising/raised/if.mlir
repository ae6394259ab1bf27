// The second branch negates.
func.func public @main(%p: tensor<i1>, %x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<3x4xf32>
  }, {
    %n = stablehlo.negate %x : tensor<3x4xf32>
    stablehlo.return %n : tensor<3x4xf32>
  }) : (tensor<i1>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
