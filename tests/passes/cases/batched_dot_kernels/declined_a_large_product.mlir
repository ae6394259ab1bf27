// platform: cuda
// pipeline: batched-dot-kernels
// declined unprofitable: 1 of 1 dot_general: it does more than 8.0 FLOP per byte
func.func public @main(%q: tensor<3x64x2x64xf32>, %k: tensor<3x64x2x64xf32>) -> tensor<3x2x64x64xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x64x2x64xf32>, tensor<3x64x2x64xf32>) -> tensor<3x2x64x64xf32>
  return %0 : tensor<3x2x64x64xf32>
}
