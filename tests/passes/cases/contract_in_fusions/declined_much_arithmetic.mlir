// pipeline: contract-in-fusions{intensity=1.0}
// declined unprofitable: 1 of 1 dot_general: it does more than 1.0 FLOP per byte
func.func public @main(%q: tensor<8x2x8xf32>, %k: tensor<8x2x8xf32>) -> tensor<2x8x8xf32> {
  %r = stablehlo.dot_general %q, %k, batching_dims = [1] x [1], contracting_dims = [2] x [2]
    : (tensor<8x2x8xf32>, tensor<8x2x8xf32>) -> tensor<2x8x8xf32>
  return %r : tensor<2x8x8xf32>
}
