module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = call @unroll_loops(%c, %arg0) : (tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)
    return %0#1 : tensor<3xf32>
  }
  func.func private @unroll_loops(%arg0: tensor<i32>, %arg1: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %c, %c_0 : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %c_1, %c_2 : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %3 = stablehlo.sine %arg1 : tensor<3xf32>
    %4 = stablehlo.add %3, %2 : tensor<3xf32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.add %c_3, %c_4 : tensor<i32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %7 = stablehlo.sine %4 : tensor<3xf32>
    %8 = stablehlo.add %7, %6 : tensor<3xf32>
    %c_6 = stablehlo.constant dense<1> : tensor<i32>
    %c_7 = stablehlo.constant dense<1> : tensor<i32>
    %9 = stablehlo.add %c_6, %c_7 : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %c_9 = stablehlo.constant dense<1> : tensor<i32>
    %10 = stablehlo.add %c_8, %c_9 : tensor<i32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %12 = stablehlo.sine %8 : tensor<3xf32>
    %13 = stablehlo.add %12, %11 : tensor<3xf32>
    %c_11 = stablehlo.constant dense<1> : tensor<i32>
    %c_12 = stablehlo.constant dense<1> : tensor<i32>
    %14 = stablehlo.add %c_11, %c_12 : tensor<i32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %16 = stablehlo.sine %13 : tensor<3xf32>
    %17 = stablehlo.add %16, %15 : tensor<3xf32>
    %c_14 = stablehlo.constant dense<2> : tensor<i32>
    return %c_14, %17 : tensor<i32>, tensor<3xf32>
  }
}
