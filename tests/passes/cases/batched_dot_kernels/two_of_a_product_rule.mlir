// platform: cuda
// pipeline: batched-dot-kernels
// applied: 2 contractions became kernels that read where it lies
func.func public @main(%q: tensor<3x2x5x4xf32>, %k: tensor<3x2x5x4xf32>, %dq: tensor<3x6x5x2x4xf32>, %dk: tensor<3x6x5x2x4xf32>) -> tensor<3x6x2x5x5xf32> {
  %0 = stablehlo.dot_general %dq, %k, batching_dims = [0, 3] x [0, 1], contracting_dims = [4] x [3] : (tensor<3x6x5x2x4xf32>, tensor<3x2x5x4xf32>) -> tensor<3x2x6x5x5xf32>
  %1 = stablehlo.dot_general %dk, %q, batching_dims = [0, 3] x [0, 1], contracting_dims = [4] x [3] : (tensor<3x6x5x2x4xf32>, tensor<3x2x5x4xf32>) -> tensor<3x2x6x5x5xf32>
  %2 = stablehlo.transpose %1, dims = [0, 1, 2, 4, 3] : (tensor<3x2x6x5x5xf32>) -> tensor<3x2x6x5x5xf32>
  %3 = stablehlo.add %0, %2 : tensor<3x2x6x5x5xf32>
  %4 = stablehlo.transpose %3, dims = [0, 2, 1, 3, 4] : (tensor<3x2x6x5x5xf32>) -> tensor<3x6x2x5x5xf32>
  return %4 : tensor<3x6x2x5x5xf32>
}
