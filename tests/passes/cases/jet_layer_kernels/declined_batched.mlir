// platform: cuda
// declined unprofitable: there is no contraction of rows with a matrix in the program
func.func public @main(%q: tensor<3x4x5xf32>, %k: tensor<3x4x5xf32>) -> tensor<3x4x4xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
  return %0 : tensor<3x4x4xf32>
}
