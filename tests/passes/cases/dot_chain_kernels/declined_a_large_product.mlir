// platform: cuda
// declined unprofitable: 2 of 2 dot_general: it is no product of two small matrices of one walker
func.func public @main(%q: tensor<3x128x128xf32>) -> tensor<3x128x128xf32> {
  %0 = stablehlo.dot_general %q, %q, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x128x128xf32>, tensor<3x128x128xf32>) -> tensor<3x128x128xf32>
  %1 = stablehlo.dot_general %0, %q, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x128x128xf32>, tensor<3x128x128xf32>) -> tensor<3x128x128xf32>
  return %1 : tensor<3x128x128xf32>
}
