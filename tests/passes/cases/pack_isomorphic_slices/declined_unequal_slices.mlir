// declined unprofitable: there is no work that is done to two equal slices in the program
module @declined_unequal_slices {
  func.func public @main(%x: tensor<3x9x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %up = stablehlo.slice %x [0:3, 0:5, 0:4] : (tensor<3x9x4xf32>) -> tensor<3x5x4xf32>
    %up_sum = stablehlo.reduce(%up init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %down = stablehlo.slice %x [0:3, 5:9, 0:4] : (tensor<3x9x4xf32>) -> tensor<3x4x4xf32>
    %down_sum = stablehlo.reduce(%down init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x4x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %up_sum, %down_sum : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
