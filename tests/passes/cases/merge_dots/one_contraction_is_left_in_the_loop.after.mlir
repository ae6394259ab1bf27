module {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<2x2xf32>
    %0:4 = call @licm(%c, %arg0, %cst, %cst_0, %arg1, %arg2) : (tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<3x2xf32>) -> (tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>)
    return %0#2, %0#3 : tensor<2x4xf32>, tensor<2x2xf32>
  }
  func.func private @licm(%arg0: tensor<i32>, %arg1: tensor<2x3xf32>, %arg2: tensor<2x4xf32>, %arg3: tensor<2x2xf32>, %arg4: tensor<3x4xf32>, %arg5: tensor<3x2xf32>) -> (tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>) {
    %0 = stablehlo.concatenate %arg4, %arg5, dim = 1 : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
    %1:5 = stablehlo.while(%iterArg = %0, %iterArg_0 = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %arg2, %iterArg_3 = %arg3) : tensor<3x6xf32>, tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
    cond {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg_0, %c : tensor<i32>
      %3 = stablehlo.tanh %iterArg_1 : tensor<2x3xf32>
      %4 = stablehlo.dot_general %3, %iterArg, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x6xf32>) -> tensor<2x6xf32>
      %5 = stablehlo.slice %4 [0:2, 0:4] : (tensor<2x6xf32>) -> tensor<2x4xf32>
      %6 = stablehlo.slice %4 [0:2, 4:6] : (tensor<2x6xf32>) -> tensor<2x2xf32>
      %7 = stablehlo.add %iterArg_2, %5 : tensor<2x4xf32>
      %8 = stablehlo.add %iterArg_3, %6 : tensor<2x2xf32>
      stablehlo.return %iterArg, %2, %3, %7, %8 : tensor<3x6xf32>, tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
    }
    return %1#1, %1#2, %1#3, %1#4 : tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
  }
}
