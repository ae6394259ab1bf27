// pipeline: expand-small-dots{longest=4}
// applied: 1 contractions became a product and a sum
// declined unprofitable: 1 of 2 dot_general: it is longer than 4 along an axis
func.func public @main(%q: tensor<2x3x2x4xf32>, %k: tensor<2x3x2x4xf32>, %v: tensor<2x5x2x3xf32>) -> tensor<2x2x3x5xf32> {
  %p = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x2x3x3xf32>
  %r = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x2x3x3xf32>, tensor<2x5x2x3xf32>) -> tensor<2x2x3x5xf32>
  return %r : tensor<2x2x3x5xf32>
}
