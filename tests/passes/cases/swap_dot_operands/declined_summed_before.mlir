// declined unprofitable: there is no contraction that is read with the last axis of its left operand as the last one
func.func public @main(%v: tensor<3x5x4xf32>, %a: tensor<3x6x5xf32>) -> tensor<6x3xf32> {
  %0 = stablehlo.dot_general %v, %a, batching_dims = [0] x [0], contracting_dims = [1] x [2], precision = [HIGHEST, DEFAULT] : (tensor<3x5x4xf32>, tensor<3x6x5xf32>) -> tensor<3x4x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x4x6xf32>, tensor<f32>) -> tensor<3x6xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<3x6xf32>) -> tensor<6x3xf32>
  return %2 : tensor<6x3xf32>
}
