module {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.optimization_barrier %0 : tensor<8xf32>
    %2 = stablehlo.tanh %1 : tensor<8xf32>
    %3 = stablehlo.optimization_barrier %2 : tensor<8xf32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
    return %4 : tensor<16xf32>
  }
}
