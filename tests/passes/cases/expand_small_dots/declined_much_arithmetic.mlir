// pipeline: expand-small-dots{intensity=1.0}
// declined unprofitable: 1 of 1 dot_general: it does more than 1.0 FLOP per byte
func.func public @main(%q: tensor<2x8x2x8xf32>, %k: tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32> {
  %r = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
    : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
  return %r : tensor<2x2x8x8xf32>
}
