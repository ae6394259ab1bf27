// declined unprofitable: there is no work that is done to two equal slices in the program
module @declined_second_needs_first {
  func.func public @main(%x: tensor<3x10x4xf32>) -> tensor<3x4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %up = stablehlo.slice %x [0:3, 0:5, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %up_sum = stablehlo.reduce(%up init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %up_rows = stablehlo.broadcast_in_dim %up_sum, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x10x4xf32>
    %y = stablehlo.add %x, %up_rows : tensor<3x10x4xf32>
    %down = stablehlo.slice %y [0:3, 5:10, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %down_sum = stablehlo.reduce(%down init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %down_sum : tensor<3x4xf32>
  }
}
