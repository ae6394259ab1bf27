module {
  func.func public @main(%arg0: tensor<3x5x4xf32>, %arg1: tensor<3x6x5xf32>) -> tensor<1x3x24xf32> {
    %0 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, HIGHEST] : (tensor<3x6x5xf32>, tensor<3x5x4xf32>) -> tensor<3x6x4xf32>
    %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x6x4xf32>) -> tensor<3x4x6xf32>
    %2 = stablehlo.tanh %1 : tensor<3x4x6xf32>
    %3 = stablehlo.transpose %2, dims = [0, 2, 1] : (tensor<3x4x6xf32>) -> tensor<3x6x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<3x6x4xf32>) -> tensor<1x3x24xf32>
    return %4 : tensor<1x3x24xf32>
  }
}
