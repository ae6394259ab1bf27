// platform: cuda
// pipeline: jet-layer-kernels{narrowest=8}
// declined unprofitable: 1 of 1 dot_general: a sum over its rows follows, but not in one kernel: a value has another axis than rows and columns, or features are summed
func.func public @main(%u: tensor<6x3x12xf32>, %w: tensor<12x8xf32>) -> tensor<6x3x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %u, %w, contracting_dims = [2] x [0] : (tensor<6x3x12xf32>, tensor<12x8xf32>) -> tensor<6x3x8xf32>
  %0 = stablehlo.multiply %z, %z : tensor<6x3x8xf32>
  %squares = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<6x3x8xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.broadcast_in_dim %squares, dims = [1] : (tensor<3xf32>) -> tensor<6x3x8xf32>
  %2 = stablehlo.multiply %z, %1 : tensor<6x3x8xf32>
  return %2 : tensor<6x3x8xf32>
}
