module {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) {
    %0 = stablehlo.sine %arg2 : tensor<3x2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<2x2xf32>
    %1:4 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg0, %iterArg_2 = %cst, %iterArg_3 = %cst_0) : tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
    cond {
      %c_4 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_4 : tensor<i32>
      %3 = stablehlo.tanh %iterArg_1 : tensor<2x3xf32>
      %4 = stablehlo.concatenate %arg1, %0, dim = 1 : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
      %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x6xf32>) -> tensor<2x6xf32>
      %6 = stablehlo.slice %5 [0:2, 0:4] : (tensor<2x6xf32>) -> tensor<2x4xf32>
      %7 = stablehlo.slice %5 [0:2, 4:6] : (tensor<2x6xf32>) -> tensor<2x2xf32>
      %8 = stablehlo.add %iterArg_2, %6 : tensor<2x4xf32>
      %9 = stablehlo.add %iterArg_3, %7 : tensor<2x2xf32>
      stablehlo.return %2, %3, %8, %9 : tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
    }
    return %1#2, %1#3 : tensor<2x4xf32>, tensor<2x2xf32>
  }
}
