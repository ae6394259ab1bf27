module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0:2 = call @transpose_replay(%arg0) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @transpose_replay(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 0.000000e+00, 0.000000e+00]], [[0.000000e+00, 1.000000e+00, 0.000000e+00]], [[0.000000e+00, 0.000000e+00, 1.000000e+00]]]> : tensor<3x1x3xf32>
    %cst_0 = stablehlo.constant dense<[[[1.000000e+00]], [[1.000000e+00]], [[0.000000e+00]]]> : tensor<3x1x1xf32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2] : (tensor<3x1x3xf32>) -> tensor<3x2x3xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3] : (tensor<3x2x3xf32>) -> tensor<1x3x2x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x3x2x3xf32>) -> tensor<3x2x3xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
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
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1, 2] : (tensor<3x1x1xf32>) -> tensor<3x2x3xf32>
    %19 = stablehlo.multiply %2, %18 : tensor<3x2x3xf32>
    %20 = stablehlo.multiply %19, %2 : tensor<3x2x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%20 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<3x2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %22 = stablehlo.multiply %17, %21 : tensor<2x3xf32>
    %23 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %24 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x2x3xf32>
    %25 = stablehlo.concatenate %23, %24, %2, dim = 0 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<5x2x3xf32>
    %26 = stablehlo.optimization_barrier %22 : tensor<2x3xf32>
    %27 = stablehlo.broadcast_in_dim %16, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<1x2x3xf32>) -> tensor<5x2x3xf32>
    %29 = stablehlo.multiply %28, %25 : tensor<5x2x3xf32>
    %30 = stablehlo.slice %29 [2:5, 0:2, 0:3] : (tensor<5x2x3xf32>) -> tensor<3x2x3xf32>
    %31 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %32 = stablehlo.concatenate %31, %30, dim = 0 : (tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<4x2x3xf32>
    %33 = stablehlo.reduce(%32 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<4x2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
    %34 = stablehlo.slice %33 [0:1, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %35 = stablehlo.reshape %34 : (tensor<1x2xf32>) -> tensor<2xf32>
    %36 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %37 = stablehlo.add %10, %36 : tensor<2x3xf32>
    %38 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %40 = stablehlo.multiply %26, %39 : tensor<2x3xf32>
    %41 = stablehlo.reduce(%40 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %35, %41 : tensor<2xf32>, tensor<2xf32>
  }
}
