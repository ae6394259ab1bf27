module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0:2 = call @collapse_replay(%arg0) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @collapse_replay(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 0.000000e+00, 0.000000e+00]], [[0.000000e+00, 1.000000e+00, 0.000000e+00]], [[0.000000e+00, 0.000000e+00, 1.000000e+00]]]> : tensor<3x1x3xf32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2] : (tensor<3x1x3xf32>) -> tensor<3x2x3xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3] : (tensor<3x2x3xf32>) -> tensor<1x3x2x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x3x2x3xf32>) -> tensor<3x2x3xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %4 = stablehlo.multiply %arg0, %arg0 : tensor<2x3xf32>
    %5 = stablehlo.multiply %3, %arg0 : tensor<2x3xf32>
    %6 = stablehlo.multiply %arg0, %3 : tensor<2x3xf32>
    %7 = stablehlo.add %5, %6 : tensor<2x3xf32>
    %8 = stablehlo.multiply %3, %3 : tensor<2x3xf32>
    %9 = stablehlo.add %8, %8 : tensor<2x3xf32>
    %10 = stablehlo.multiply %4, %arg0 : tensor<2x3xf32>
    %11 = stablehlo.multiply %7, %arg0 : tensor<2x3xf32>
    %12 = stablehlo.multiply %4, %3 : tensor<2x3xf32>
    %13 = stablehlo.multiply %9, %arg0 : tensor<2x3xf32>
    %14 = stablehlo.multiply %7, %3 : tensor<2x3xf32>
    %15 = stablehlo.add %13, %14 : tensor<2x3xf32>
    %16 = stablehlo.add %11, %12 : tensor<2x3xf32>
    %17 = stablehlo.add %15, %14 : tensor<2x3xf32>
    %18 = stablehlo.multiply %2, %2 : tensor<3x2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<3x2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %20 = stablehlo.multiply %17, %19 : tensor<2x3xf32>
    %21 = stablehlo.broadcast_in_dim %16, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<1x2x3xf32>) -> tensor<3x2x3xf32>
    %23 = stablehlo.multiply %22, %2 : tensor<3x2x3xf32>
    %24 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %25 = stablehlo.broadcast_in_dim %20, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %26 = stablehlo.concatenate %24, %25, %23, dim = 0 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<5x2x3xf32>
    %27 = stablehlo.reduce(%26 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<5x2x3xf32>, tensor<f32>) -> tensor<5x2xf32>
    %28 = stablehlo.slice %27 [0:1, 0:2] : (tensor<5x2xf32>) -> tensor<1x2xf32>
    %29 = stablehlo.reshape %28 : (tensor<1x2xf32>) -> tensor<2xf32>
    %30 = stablehlo.slice %27 [1:2, 0:2] : (tensor<5x2xf32>) -> tensor<1x2xf32>
    %31 = stablehlo.reshape %30 : (tensor<1x2xf32>) -> tensor<2xf32>
    %cst_2 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %33 = stablehlo.multiply %31, %32 : tensor<2xf32>
    return %29, %33 : tensor<2xf32>, tensor<2xf32>
  }
}
