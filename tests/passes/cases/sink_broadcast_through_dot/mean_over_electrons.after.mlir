module {
  func.func public @main(%arg0: tensor<3x5x4xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<3x5x1xf32>, %arg3: tensor<7x6xf32>) -> tensor<3x5x6xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x5x2xf32>
    %1 = stablehlo.slice %arg3 [0:4, 0:6] : (tensor<7x6xf32>) -> tensor<4x6xf32>
    %2 = stablehlo.slice %arg3 [6:7, 0:6] : (tensor<7x6xf32>) -> tensor<1x6xf32>
    %3 = stablehlo.concatenate %arg0, %arg2, dim = 2 : (tensor<3x5x4xf32>, tensor<3x5x1xf32>) -> tensor<3x5x5xf32>
    %4 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<5x6xf32>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5x5xf32>, tensor<5x6xf32>) -> tensor<3x5x6xf32>
    %6 = stablehlo.slice %arg3 [4:6, 0:6] : (tensor<7x6xf32>) -> tensor<2x6xf32>
    %7 = stablehlo.slice %0 [0:3, 0:1, 0:2] : (tensor<3x5x2xf32>) -> tensor<3x1x2xf32>
    %8 = stablehlo.dot_general %7, %6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x1x2xf32>, tensor<2x6xf32>) -> tensor<3x1x6xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<3x1x6xf32>) -> tensor<3x5x6xf32>
    %10 = stablehlo.add %5, %9 : tensor<3x5x6xf32>
    return %10 : tensor<3x5x6xf32>
  }
}
