// declined unprofitable: there is no work that is done to two equal slices in the program
module @declined_elementwise_alone {
  func.func public @main(%x: tensor<3x10x4xf32>) -> (tensor<3x5x4xf32>, tensor<3x5x4xf32>) {
    %up = stablehlo.slice %x [0:3, 0:5, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %up_out = stablehlo.tanh %up : tensor<3x5x4xf32>
    %down = stablehlo.slice %x [0:3, 5:10, 0:4] : (tensor<3x10x4xf32>) -> tensor<3x5x4xf32>
    %down_out = stablehlo.tanh %down : tensor<3x5x4xf32>
    return %up_out, %down_out : tensor<3x5x4xf32>, tensor<3x5x4xf32>
  }
}
