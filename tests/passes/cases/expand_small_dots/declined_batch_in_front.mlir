// declined unprofitable: 1 of 1 dot_general: its batch axes are in front
func.func public @main(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>) -> tensor<2x3x3xf32> {
  %r = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  return %r : tensor<2x3x3xf32>
}
