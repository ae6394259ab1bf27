module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0:2 = call @sparsify_directions(%arg0) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @sparsify_directions(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 0.000000e+00, 0.000000e+00]], [[0.000000e+00, 1.000000e+00, 0.000000e+00]], [[0.000000e+00, 0.000000e+00, 1.000000e+00]]]> : tensor<3x1x3xf32>
    %cst_0 = stablehlo.constant dense<[[1.000000e+00, 1.000000e+00, 0.000000e+00]]> : tensor<1x3xf32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2] : (tensor<3x1x3xf32>) -> tensor<3x2x3xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.multiply %arg0, %arg0 : tensor<2x3xf32>
    %3 = stablehlo.multiply %1, %arg0 : tensor<2x3xf32>
    %4 = stablehlo.multiply %arg0, %1 : tensor<2x3xf32>
    %5 = stablehlo.add %3, %4 : tensor<2x3xf32>
    %6 = stablehlo.multiply %1, %1 : tensor<2x3xf32>
    %7 = stablehlo.add %6, %6 : tensor<2x3xf32>
    %8 = stablehlo.multiply %2, %arg0 : tensor<2x3xf32>
    %9 = stablehlo.multiply %5, %arg0 : tensor<2x3xf32>
    %10 = stablehlo.multiply %2, %1 : tensor<2x3xf32>
    %11 = stablehlo.multiply %7, %arg0 : tensor<2x3xf32>
    %12 = stablehlo.multiply %5, %1 : tensor<2x3xf32>
    %13 = stablehlo.add %11, %12 : tensor<2x3xf32>
    %14 = stablehlo.add %9, %10 : tensor<2x3xf32>
    %15 = stablehlo.add %13, %12 : tensor<2x3xf32>
    %16 = stablehlo.slice %cst_0 [0:1, 0:3] : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %17 = stablehlo.transpose %16, dims = [1, 0] : (tensor<1x3xf32>) -> tensor<3x1xf32>
    %18 = stablehlo.reshape %17 : (tensor<3x1xf32>) -> tensor<3x1x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<3x1x1xf32>) -> tensor<3x2x3xf32>
    %20 = stablehlo.multiply %0, %19 : tensor<3x2x3xf32>
    %21 = stablehlo.multiply %20, %0 : tensor<3x2x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%21 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<3x2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %23 = stablehlo.multiply %15, %22 : tensor<2x3xf32>
    %24 = stablehlo.broadcast_in_dim %14, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<1x2x3xf32>) -> tensor<3x2x3xf32>
    %26 = stablehlo.multiply %25, %0 : tensor<3x2x3xf32>
    %27 = stablehlo.broadcast_in_dim %8, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %28 = stablehlo.broadcast_in_dim %23, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %29 = stablehlo.concatenate %27, %28, %26, dim = 0 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<3x2x3xf32>) -> tensor<5x2x3xf32>
    %30 = stablehlo.reduce(%29 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<5x2x3xf32>, tensor<f32>) -> tensor<5x2xf32>
    %31 = stablehlo.slice %30 [2:5, 0:2] : (tensor<5x2xf32>) -> tensor<3x2xf32>
    %32 = stablehlo.slice %30 [0:1, 0:2] : (tensor<5x2xf32>) -> tensor<1x2xf32>
    %33 = stablehlo.reshape %32 : (tensor<1x2xf32>) -> tensor<2xf32>
    %34 = stablehlo.slice %30 [1:2, 0:2] : (tensor<5x2xf32>) -> tensor<1x2xf32>
    %35 = stablehlo.reshape %34 : (tensor<1x2xf32>) -> tensor<2xf32>
    %36 = stablehlo.broadcast_in_dim %31, dims = [1, 2] : (tensor<3x2xf32>) -> tensor<1x3x2xf32>
    return %33, %35 : tensor<2xf32>, tensor<2xf32>
  }
}
