// platform: cuda
// declined unprofitable: 1 of 1 dot_general: its chain has no matrix of 64 elements
func.func public @main(%inverse: tensor<3x2x5x5xf32>, %rows: tensor<6x3x2x5x5xf32>) -> tensor<3x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %rows [2:6, 0:3, 0:2, 0:5, 0:5] : (tensor<6x3x2x5x5xf32>) -> tensor<4x3x2x5x5xf32>
  %1 = stablehlo.dot_general %inverse, %0, batching_dims = [0, 1] x [1, 2], contracting_dims = [3] x [3], precision = [HIGHEST, HIGHEST] : (tensor<3x2x5x5xf32>, tensor<4x3x2x5x5xf32>) -> tensor<3x2x5x4x5xf32>
  %2 = stablehlo.transpose %1, dims = [0, 1, 4, 3, 2] : (tensor<3x2x5x4x5xf32>) -> tensor<3x2x5x4x5xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<3x2x5x4x5xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [4, 3, 2] : (tensor<3x2x5x4x5xf32>, tensor<f32>) -> tensor<3x2xf32>
  return %4 : tensor<3x2xf32>
}
