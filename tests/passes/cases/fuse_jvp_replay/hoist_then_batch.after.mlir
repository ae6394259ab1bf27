module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %0:3 = call @licm(%c, %arg0, %cst) : (tensor<i32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>)
    return %0#2 : tensor<3xf32>
  }
  func.func private @licm(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.tanh %arg1 : tensor<3xf32>
    %1:3 = call @batch_replay(%0, %arg0, %arg2) : (tensor<3xf32>, tensor<i32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>)
    return %1#1, %arg1, %1#2 : tensor<i32>, tensor<3xf32>, tensor<3xf32>
  }
  func.func private @batch_replay(%arg0: tensor<3xf32>, %arg1: tensor<i32>, %arg2: tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>) {
    %c = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %1 = stablehlo.multiply %0, %c : tensor<4xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %3 = stablehlo.add %2, %1 : tensor<4xi32>
    %4 = stablehlo.convert %3 : (tensor<4xi32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32>
    %6 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<4x3xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<4x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%8 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %10 = stablehlo.add %arg2, %9 : tensor<3xf32>
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    return %arg0, %c_2, %10 : tensor<3xf32>, tensor<i32>, tensor<3xf32>
  }
}
