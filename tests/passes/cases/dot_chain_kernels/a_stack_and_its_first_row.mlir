// platform: cuda
// pipeline: dot-chain-kernels{smallest=1}
// applied: 2 contractions became kernels with what lies between them
func.func public @main(%q: tensor<4x3x5x6xf32>, %k: tensor<3x5x6xf32>, %v: tensor<3x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x5x5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [1] x [0], contracting_dims = [3] x [2] : (tensor<4x3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x4x5x5xf32>
  %1 = stablehlo.slice %0 [0:3, 0:1, 0:5, 0:5] : (tensor<3x4x5x5xf32>) -> tensor<3x1x5x5xf32>
  %2 = stablehlo.tanh %1 : tensor<3x1x5x5xf32>
  %3 = stablehlo.dynamic_update_slice %0, %2, %first, %first, %first, %first : (tensor<3x4x5x5xf32>, tensor<3x1x5x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x5x5xf32>
  %4 = stablehlo.dot_general %3, %v, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<3x4x5x5xf32>, tensor<3x5x6xf32>) -> tensor<3x4x5x6xf32>
  %6 = stablehlo.slice %3 [0:3, 1:4, 0:5, 0:5] : (tensor<3x4x5x5xf32>) -> tensor<3x3x5x5xf32>
  %7 = stablehlo.multiply %6, %6 : tensor<3x3x5x5xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  return %4, %8 : tensor<3x4x5x6xf32>, tensor<3x5x5xf32>
}
