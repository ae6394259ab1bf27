module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %0:3 = call @licm(%c, %arg0, %cst) : (tensor<i32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>)
    return %0#2 : tensor<3xf32>
  }
  func.func private @licm(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.tanh %arg1 : tensor<3xf32>
    %1:3 = stablehlo.while(%iterArg = %0, %iterArg_0 = %arg0, %iterArg_1 = %arg2) : tensor<3xf32>, tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.constant dense<4> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg_0, %c : tensor<i32>
      %3 = stablehlo.convert %iterArg_0 : (tensor<i32>) -> tensor<f32>
      %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %5 = stablehlo.multiply %iterArg, %4 : tensor<3xf32>
      %6 = stablehlo.add %iterArg_1, %5 : tensor<3xf32>
      %7 = stablehlo.sine %6 : tensor<3xf32>
      stablehlo.return %iterArg, %2, %7 : tensor<3xf32>, tensor<i32>, tensor<3xf32>
    }
    return %1#1, %arg1, %1#2 : tensor<i32>, tensor<3xf32>, tensor<3xf32>
  }
}
