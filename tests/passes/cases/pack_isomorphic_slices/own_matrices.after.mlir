module @own_matrices {
  func.func public @main(%arg0: tensor<16x10x4xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> (tensor<16x5x6xf32>, tensor<16x5x6xf32>) {
    %0 = stablehlo.add %arg2, %arg2 : tensor<4x6xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<16x10x4xf32>) -> tensor<16x2x5x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
    %3 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<2x4x6xf32>
    %5 = stablehlo.dot_general %1, %4, batching_dims = [1] x [0], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x16x5x6xf32>
    %6 = stablehlo.tanh %5 : tensor<2x16x5x6xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x16x5x6xf32>) -> tensor<32x5x6xf32>
    %8 = stablehlo.slice %7 [0:16, 0:5, 0:6] : (tensor<32x5x6xf32>) -> tensor<16x5x6xf32>
    %9 = stablehlo.slice %7 [16:32, 0:5, 0:6] : (tensor<32x5x6xf32>) -> tensor<16x5x6xf32>
    return %8, %9 : tensor<16x5x6xf32>, tensor<16x5x6xf32>
  }
}
