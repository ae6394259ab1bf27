// applied: 1 groups of ops on two equal slices became one
module @means {
  func.func public @main(%x: tensor<3x10x4xf32>) -> tensor<3x8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %five = stablehlo.constant dense<5.0> : tensor<3x4xf32>
    %up = stablehlo.slice %x [0:3, 0:5, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %up_sum = stablehlo.reduce(%up init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %up_mean = stablehlo.divide %up_sum, %five : tensor<3x4xf32>
    %down = stablehlo.slice %x [0:3, 5:10, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %down_sum = stablehlo.reduce(%down init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %down_mean = stablehlo.divide %down_sum, %five : tensor<3x4xf32>
    %means = stablehlo.concatenate %up_mean, %down_mean, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
    return %means : tensor<3x8xf32>
  }
}
