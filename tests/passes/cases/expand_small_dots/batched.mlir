// applied: 1 contractions became a product and a sum
func.func public @main(%q: tensor<2x3x2x4xf32>, %k: tensor<2x3x2x4xf32>) -> tensor<2x2x3x3xf32> {
  %r = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x2x3x3xf32>
  return %r : tensor<2x2x3x3xf32>
}
