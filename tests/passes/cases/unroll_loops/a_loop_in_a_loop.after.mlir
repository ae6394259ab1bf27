module {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.add %c, %c_0 : tensor<i32>
    %1 = stablehlo.add %c_1, %c_0 : tensor<i32>
    %2 = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %4 = stablehlo.sine %arg0 : tensor<3xf32>
    %5 = stablehlo.add %4, %3 : tensor<3xf32>
    %6 = stablehlo.add %1, %c_0 : tensor<i32>
    %7 = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %9 = stablehlo.sine %5 : tensor<3xf32>
    %10 = stablehlo.add %9, %8 : tensor<3xf32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.add %0, %c_2 : tensor<i32>
    %12 = stablehlo.add %c_3, %c_2 : tensor<i32>
    %13 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %15 = stablehlo.sine %10 : tensor<3xf32>
    %16 = stablehlo.add %15, %14 : tensor<3xf32>
    %17 = stablehlo.add %12, %c_2 : tensor<i32>
    %18 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %20 = stablehlo.sine %16 : tensor<3xf32>
    %21 = stablehlo.add %20, %19 : tensor<3xf32>
    return %21 : tensor<3xf32>
  }
}
