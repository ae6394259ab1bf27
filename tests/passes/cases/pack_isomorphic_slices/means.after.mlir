module @means {
  func.func public @main(%arg0: tensor<3x10x4xf32>) -> tensor<3x8xf32> {
    %cst = stablehlo.constant dense<5.000000e+00> : tensor<3x4xf32>
    %0 = stablehlo.reshape %arg0 : (tensor<3x10x4xf32>) -> tensor<3x2x5x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<3x2x5x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x2x4xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x2x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
    %5 = stablehlo.slice %4 [0:3, 0:4] : (tensor<3x8xf32>) -> tensor<3x4xf32>
    %6 = stablehlo.slice %4 [0:3, 4:8] : (tensor<3x8xf32>) -> tensor<3x4xf32>
    %7 = stablehlo.concatenate %5, %6, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
    return %7 : tensor<3x8xf32>
  }
}
