module {
  func.func public @main(%arg0: tensor<2x3x2x4xf32>, %arg1: tensor<2x3x2x4xf32>, %arg2: tensor<2x5x2x3xf32>) -> tensor<2x2x3x5xf32> {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 4] : (tensor<2x2x3x4xf32>) -> tensor<2x2x3x3x4xf32>
    %2 = stablehlo.transpose %arg1, dims = [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 3, 4] : (tensor<2x2x3x4xf32>) -> tensor<2x2x3x3x4xf32>
    %4 = stablehlo.multiply %1, %3 : tensor<2x2x3x3x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [4] : (tensor<2x2x3x3x4xf32>, tensor<f32>) -> tensor<2x2x3x3xf32>
    %6 = stablehlo.dot_general %5, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x2x3x3xf32>, tensor<2x5x2x3xf32>) -> tensor<2x2x3x5xf32>
    return %6 : tensor<2x2x3x5xf32>
  }
}
