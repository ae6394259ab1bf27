module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %0:3 = call @batch_replay(%c, %arg0, %cst) : (tensor<i32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>)
    return %0#2 : tensor<3xf32>
  }
  func.func private @batch_replay(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>) {
    %c = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0:5 = stablehlo.while(%iterArg = %c, %iterArg_3 = %arg1, %iterArg_4 = %c_1, %iterArg_5 = %c_0, %iterArg_6 = %arg2) : tensor<2xi32>, tensor<3xf32>, tensor<i64>, tensor<i64>, tensor<3xf32> attributes {mhlo.frontend_attributes = {fusionlab_chunk = "2"}}
    cond {
      %c_7 = stablehlo.constant dense<2> : tensor<i64>
      %1 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1:2 = func.call @batch_replay_closed_call(%iterArg, %iterArg_3, %iterArg_5, %iterArg_6) : (tensor<2xi32>, tensor<3xf32>, tensor<i64>, tensor<3xf32>) -> (tensor<i64>, tensor<3xf32>)
      %c_7 = stablehlo.constant dense<1> : tensor<i64>
      %2 = stablehlo.add %iterArg_4, %c_7 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_3, %2, %1#0, %1#1 : tensor<2xi32>, tensor<3xf32>, tensor<i64>, tensor<i64>, tensor<3xf32>
    }
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    return %c_2, %arg1, %0#4 : tensor<i32>, tensor<3xf32>, tensor<3xf32>
  }
  func.func private @batch_replay_closed_call(%arg0: tensor<2xi32>, %arg1: tensor<3xf32>, %arg2: tensor<i64>, %arg3: tensor<3xf32>) -> (tensor<i64>, tensor<3xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg2, %c : tensor<i64>
    %c_0 = stablehlo.constant dense<2> : tensor<i64>
    %1 = stablehlo.multiply %arg2, %c_0 : tensor<i64>
    %2 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %4 = stablehlo.add %3, %arg0 : tensor<2xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %6 = stablehlo.multiply %5, %4 : tensor<2xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %8 = stablehlo.add %7, %6 : tensor<2xi32>
    %9 = stablehlo.convert %8 : (tensor<2xi32>) -> tensor<2xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %11 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>
    %13 = stablehlo.multiply %12, %10 : tensor<2x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %15 = stablehlo.add %arg3, %14 : tensor<3xf32>
    return %0, %15 : tensor<i64>, tensor<3xf32>
  }
}
