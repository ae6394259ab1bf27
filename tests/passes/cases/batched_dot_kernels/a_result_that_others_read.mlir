// platform: cuda
// pipeline: batched-dot-kernels
// applied: 1 contractions became kernels that read where it lies
func.func public @main(%q: tensor<3x5x2x4xf32>, %k: tensor<3x5x2x4xf32>) -> (tensor<3x2x5x5xf32>, tensor<3x5x2x5xf32>) {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x5x2x4xf32>, tensor<3x5x2x4xf32>) -> tensor<3x2x5x5xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3] : (tensor<3x2x5x5xf32>) -> tensor<3x5x2x5xf32>
  return %0, %1 : tensor<3x2x5x5xf32>, tensor<3x5x2x5xf32>
}
