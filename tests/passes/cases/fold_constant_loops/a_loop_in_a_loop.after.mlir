module {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
    %0:2 = call @fold_constant_loops(%cst, %c, %c_0, %cst) : (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>)
    %1 = stablehlo.multiply %0#0, %arg0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @fold_constant_loops(%arg0: tensor<4xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
    %cst = stablehlo.constant dense<[7.000000e+00, 1.400000e+01, 2.100000e+01, 2.800000e+01]> : tensor<4xf32>
    %c = stablehlo.constant dense<3> : tensor<i32>
    return %cst, %c : tensor<4xf32>, tensor<i32>
  }
}
