module {
  func.func public @main(%arg0: tensor<3x5x4xf32>, %arg1: tensor<7x4xf32>) -> (tensor<3x5x2xf32>, tensor<3x1x3xf32>, tensor<3x2xf32>) {
    %0 = stablehlo.slice %arg1 [0:2, 0:4] : (tensor<7x4xf32>) -> tensor<2x4xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x5x4xf32>, tensor<2x4xf32>) -> tensor<3x5x2xf32>
    %2 = stablehlo.slice %1 [0:3, 0:5, 0:2] : (tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x1x4xf32>
    %5 = stablehlo.slice %arg1 [2:5, 0:4] : (tensor<7x4xf32>) -> tensor<3x4xf32>
    %6 = stablehlo.slice %arg1 [5:7, 0:4] : (tensor<7x4xf32>) -> tensor<2x4xf32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
    %8 = stablehlo.dot_general %4, %7, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x1x4xf32>, tensor<5x4xf32>) -> tensor<3x1x5xf32>
    %9 = stablehlo.slice %8 [0:3, 0:1, 0:3] : (tensor<3x1x5xf32>) -> tensor<3x1x3xf32>
    %10 = stablehlo.slice %8 [0:3, 0:1, 3:5] : (tensor<3x1x5xf32>) -> tensor<3x1x2xf32>
    %11 = stablehlo.reshape %10 : (tensor<3x1x2xf32>) -> tensor<3x2xf32>
    return %2, %9, %11 : tensor<3x5x2xf32>, tensor<3x1x3xf32>, tensor<3x2xf32>
  }
}
