// platform: cuda
// pipeline: batched-dot-kernels
// declined unprofitable: 1 of 1 dot_general: the library takes it as it lies
func.func public @main(%q: tensor<3x2x5x4xf32>, %k: tensor<3x2x5x4xf32>) -> tensor<3x2x5x5xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<3x2x5x4xf32>, tensor<3x2x5x4xf32>) -> tensor<3x2x5x5xf32>
  return %0 : tensor<3x2x5x5xf32>
}
