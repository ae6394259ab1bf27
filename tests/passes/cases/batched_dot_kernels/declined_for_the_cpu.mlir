// pipeline: batched-dot-kernels
// declined unsupported: the program is for cpu
func.func public @main(%q: tensor<3x2x5x4xf32>, %k: tensor<3x5x2x4xf32>) -> tensor<3x2x5x5xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x2x5x4xf32>, tensor<3x5x2x4xf32>) -> tensor<3x2x5x5xf32>
  return %0 : tensor<3x2x5x5xf32>
}
