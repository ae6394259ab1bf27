// platform: cuda
// pipeline: batched-dot-kernels
// applied: 4 contractions became kernels that read where it lies
func.func public @main(%a: tensor<3x2x4x5xf32>, %b: tensor<3x4x2x5xf32>) -> (tensor<3x2x4x4xf32>, tensor<3x2x4x4xf32>) {
  %0 = stablehlo.dot_general %a, %a, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<3x2x4x5xf32>, tensor<3x2x4x5xf32>) -> tensor<3x2x4x4xf32>
  %c = stablehlo.negate %a : tensor<3x2x4x5xf32>
  %1 = stablehlo.dot_general %c, %a, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<3x2x4x5xf32>, tensor<3x2x4x5xf32>) -> tensor<3x2x4x4xf32>
  %u = stablehlo.add %0, %1 : tensor<3x2x4x4xf32>
  %2 = stablehlo.dot_general %b, %b, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
  %v = stablehlo.add %u, %2 : tensor<3x2x4x4xf32>
  %d = stablehlo.negate %b : tensor<3x4x2x5xf32>
  %3 = stablehlo.dot_general %d, %b, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
  return %v, %3 : tensor<3x2x4x4xf32>, tensor<3x2x4x4xf32>
}
