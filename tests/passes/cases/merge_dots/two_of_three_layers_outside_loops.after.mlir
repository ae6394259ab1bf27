module {
  func.func public @main(%arg0: tensor<64x3xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x4xf32>, %arg3: tensor<3x4xf32>) -> (tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>) {
    %0 = stablehlo.concatenate %arg1, %arg2, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x3xf32>, tensor<3x8xf32>) -> tensor<64x8xf32>
    %2 = stablehlo.slice %1 [0:64, 0:4] : (tensor<64x8xf32>) -> tensor<64x4xf32>
    %3 = stablehlo.slice %1 [0:64, 4:8] : (tensor<64x8xf32>) -> tensor<64x4xf32>
    %4 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
    return %2, %3, %4 : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>
  }
}
