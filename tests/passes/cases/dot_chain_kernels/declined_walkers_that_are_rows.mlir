// platform: cuda
// pipeline: dot-chain-kernels{smallest=1}
// declined unprofitable: 2 of 2 dot_general: it is no product of two small matrices of one walker
func.func public @main(%w: tensor<2x4x4xf32>, %x: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  %0 = stablehlo.dot_general %w, %x, batching_dims = [0] x [1], contracting_dims = [2] x [2] : (tensor<2x4x4xf32>, tensor<3x2x4xf32>) -> tensor<2x4x3xf32>
  %1 = stablehlo.dot_general %0, %w, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x4x3xf32>, tensor<2x4x4xf32>) -> tensor<2x3x4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  return %2 : tensor<3x2x4xf32>
}
