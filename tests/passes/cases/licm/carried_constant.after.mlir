module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %cst_0 = stablehlo.constant dense<2.500000e+00> : tensor<3xf32>
    %0:4 = call @licm(%c, %arg0, %cst_0, %cst) : (tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %0#3 : tensor<3xf32>
  }
  func.func private @licm(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %cst = stablehlo.constant dense<2.500000e+00> : tensor<3xf32>
    %0 = stablehlo.tanh %arg1 : tensor<3xf32>
    %1:4 = stablehlo.while(%iterArg = %cst, %iterArg_0 = %0, %iterArg_1 = %arg0, %iterArg_2 = %arg3) : tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.constant dense<4> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %cst_3 = stablehlo.constant dense<2.500000e+00> : tensor<3xf32>
      %c = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg_1, %c : tensor<i32>
      %3 = stablehlo.multiply %iterArg_2, %cst_3 : tensor<3xf32>
      %4 = stablehlo.add %3, %iterArg_0 : tensor<3xf32>
      stablehlo.return %iterArg, %iterArg_0, %2, %4 : tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>
    }
    return %1#2, %arg1, %cst, %1#3 : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
