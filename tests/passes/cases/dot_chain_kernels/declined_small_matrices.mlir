// platform: cuda
// declined unprofitable: 2 of 2 dot_general: its chain has no matrix of 64 elements
func.func public @main(%q: tensor<3x4x5xf32>, %k: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
  %1 = stablehlo.dot_general %0, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x4x4xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  return %1 : tensor<3x4x5xf32>
}
