// platform: cuda
// pipeline: jet-layer-kernels{narrowest=8}
// applied: 1 layers of jets became kernels
func.func public @main(%u: tensor<6x3x12xf32>, %w: tensor<12x8xf32>, %b: tensor<8xf32>) -> tensor<6x3x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<3x8xf32>
  %minus_two = stablehlo.constant dense<-2.0> : tensor<3x8xf32>
  %z = stablehlo.dot_general %u, %w, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<6x3x12xf32>, tensor<12x8xf32>) -> tensor<6x3x8xf32>
  %value = stablehlo.slice %z [0:1, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<1x3x8xf32>
  %laplacian = stablehlo.slice %z [1:2, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<1x3x8xf32>
  %rows = stablehlo.slice %z [2:6, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<4x3x8xf32>
  %0 = stablehlo.reshape %value : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
  %1 = stablehlo.reshape %laplacian : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.add %0, %bias : tensor<3x8xf32>
  %s = stablehlo.tanh %2 : tensor<3x8xf32>
  %3 = stablehlo.multiply %s, %s : tensor<3x8xf32>
  %s1 = stablehlo.subtract %one, %3 : tensor<3x8xf32>
  %4 = stablehlo.multiply %minus_two, %s : tensor<3x8xf32>
  %s2 = stablehlo.multiply %4, %s1 : tensor<3x8xf32>
  %5 = stablehlo.multiply %rows, %rows : tensor<4x3x8xf32>
  %squares = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  %6 = stablehlo.multiply %s2, %squares : tensor<3x8xf32>
  %7 = stablehlo.multiply %s1, %1 : tensor<3x8xf32>
  %8 = stablehlo.add %7, %6 : tensor<3x8xf32>
  %slope = stablehlo.broadcast_in_dim %s1, dims = [1, 2] : (tensor<3x8xf32>) -> tensor<4x3x8xf32>
  %9 = stablehlo.multiply %slope, %rows : tensor<4x3x8xf32>
  %10 = stablehlo.reshape %s : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
  %11 = stablehlo.reshape %8 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
  %12 = stablehlo.concatenate %10, %11, %9, dim = 0 : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<4x3x8xf32>) -> tensor<6x3x8xf32>
  return %12 : tensor<6x3x8xf32>
}
