// applied: 1 groups of ops on two equal slices became one
module @own_matrices {
  func.func public @main(%x: tensor<16x10x4xf32>, %w_up: tensor<4x6xf32>, %w_down: tensor<4x6xf32>) -> (tensor<16x5x6xf32>, tensor<16x5x6xf32>) {
    %up = stablehlo.slice %x [0:16, 0:5, 0:4] : (tensor<16x10x4xf32>) -> tensor<16x5x4xf32>
    %up_wide = stablehlo.dot_general %up, %w_up, contracting_dims = [2] x [0] : (tensor<16x5x4xf32>, tensor<4x6xf32>) -> tensor<16x5x6xf32>
    %up_out = stablehlo.tanh %up_wide : tensor<16x5x6xf32>
    %doubled = stablehlo.add %w_down, %w_down : tensor<4x6xf32>
    %down = stablehlo.slice %x [0:16, 5:10, 0:4] : (tensor<16x10x4xf32>) -> tensor<16x5x4xf32>
    %down_wide = stablehlo.dot_general %down, %doubled, contracting_dims = [2] x [0] : (tensor<16x5x4xf32>, tensor<4x6xf32>) -> tensor<16x5x6xf32>
    %down_out = stablehlo.tanh %down_wide : tensor<16x5x6xf32>
    return %up_out, %down_out : tensor<16x5x6xf32>, tensor<16x5x6xf32>
  }
}
