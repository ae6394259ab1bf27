module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>) {
    %0:3 = call @transpose_replay(%arg0) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>)
    return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>
  }
  func.func private @transpose_replay(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>) {
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
    %21 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %22 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x2x3xf32>
    %23 = stablehlo.concatenate %21, %22, %2, dim = 0 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<5x2x3xf32>
    %24 = stablehlo.optimization_barrier %20 : tensor<2x3xf32>
    %25 = stablehlo.broadcast_in_dim %16, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<1x2x3xf32>) -> tensor<5x2x3xf32>
    %27 = stablehlo.multiply %26, %23 : tensor<5x2x3xf32>
    %28 = stablehlo.slice %27 [2:5, 0:2, 0:3] : (tensor<5x2x3xf32>) -> tensor<3x2x3xf32>
    %29 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %30 = stablehlo.concatenate %29, %28, dim = 0 : (tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<4x2x3xf32>
    %31 = stablehlo.reduce(%30 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<4x2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
    %32 = stablehlo.slice %31 [1:4, 0:2] : (tensor<4x2xf32>) -> tensor<3x2xf32>
    %33 = stablehlo.slice %31 [0:1, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %34 = stablehlo.reshape %33 : (tensor<1x2xf32>) -> tensor<2xf32>
    %35 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %36 = stablehlo.add %10, %35 : tensor<2x3xf32>
    %37 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %39 = stablehlo.multiply %24, %38 : tensor<2x3xf32>
    %40 = stablehlo.reduce(%39 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %41 = stablehlo.transpose %32, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    return %34, %40, %41 : tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>
  }
}
