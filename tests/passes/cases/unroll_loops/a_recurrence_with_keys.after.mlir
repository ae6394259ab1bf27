module {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.add %c, %c_0 : tensor<i32>
    %1 = stablehlo.dynamic_slice %arg1, %c, %c_1, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x3xf32>) -> tensor<3xf32>
    %3 = stablehlo.tanh %arg0 : tensor<3xf32>
    %4 = stablehlo.add %3, %2 : tensor<3xf32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.add %0, %c_2 : tensor<i32>
    %6 = stablehlo.dynamic_slice %arg1, %0, %c_3, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x3xf32>) -> tensor<3xf32>
    %8 = stablehlo.tanh %4 : tensor<3xf32>
    %9 = stablehlo.add %8, %7 : tensor<3xf32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.add %5, %c_4 : tensor<i32>
    %11 = stablehlo.dynamic_slice %arg1, %5, %c_5, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x3xf32>) -> tensor<3xf32>
    %13 = stablehlo.tanh %9 : tensor<3xf32>
    %14 = stablehlo.add %13, %12 : tensor<3xf32>
    return %14, %10 : tensor<3xf32>, tensor<i32>
  }
}
