// declined unprofitable: 1 of 1 dot_general: it is a matrix times a vector
func.func public @main(%q: tensor<3x2x4xf32>, %k: tensor<2x4xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.dot_general %q, %k, batching_dims = [1] x [0], contracting_dims = [2] x [1]
    : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
