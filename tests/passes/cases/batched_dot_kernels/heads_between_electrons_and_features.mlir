// platform: cuda
// pipeline: batched-dot-kernels
// applied: 1 contractions became kernels that read where it lies
func.func public @main(%q: tensor<3x2x8xf32>, %k: tensor<3x2x8xf32>) -> tensor<3x2x2x2xf32> {
  %0 = stablehlo.reshape %q : (tensor<3x2x8xf32>) -> tensor<3x2x2x4xf32>
  %1 = stablehlo.reshape %k : (tensor<3x2x8xf32>) -> tensor<3x2x2x4xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x2x2x4xf32>, tensor<3x2x2x4xf32>) -> tensor<3x2x2x2xf32>
  %3 = stablehlo.transpose %2, dims = [0, 2, 1, 3] : (tensor<3x2x2x2xf32>) -> tensor<3x2x2x2xf32>
  return %3 : tensor<3x2x2x2xf32>
}
