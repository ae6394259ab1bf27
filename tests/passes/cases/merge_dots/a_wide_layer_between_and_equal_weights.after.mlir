module {
  func.func public @main(%arg0: tensor<512x3xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x16xf32>, %arg3: tensor<3x4xf32>) -> (tensor<512x4xf32>, tensor<512x16xf32>, tensor<512x4xf32>, tensor<512x4xf32>) {
    %0 = stablehlo.concatenate %arg1, %arg3, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x3xf32>, tensor<3x8xf32>) -> tensor<512x8xf32>
    %2 = stablehlo.slice %1 [0:512, 0:4] : (tensor<512x8xf32>) -> tensor<512x4xf32>
    %3 = stablehlo.slice %1 [0:512, 0:4] : (tensor<512x8xf32>) -> tensor<512x4xf32>
    %4 = stablehlo.slice %1 [0:512, 4:8] : (tensor<512x8xf32>) -> tensor<512x4xf32>
    %5 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0] : (tensor<512x3xf32>, tensor<3x16xf32>) -> tensor<512x16xf32>
    return %2, %5, %3, %4 : tensor<512x4xf32>, tensor<512x16xf32>, tensor<512x4xf32>, tensor<512x4xf32>
  }
}
