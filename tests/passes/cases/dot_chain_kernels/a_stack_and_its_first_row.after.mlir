module {
  func.func public @main(%arg0: tensor<4x3x5x6xf32>, %arg1: tensor<3x5x6xf32>, %arg2: tensor<3x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x5x5xf32>) {
    %0:2 = call @dot_chain(%arg0, %arg1, %arg2) : (tensor<4x3x5x6xf32>, tensor<3x5x6xf32>, tensor<3x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x5x5xf32>)
    return %0#0, %0#1 : tensor<3x4x5x6xf32>, tensor<3x5x5xf32>
  }
  func.func private @dot_chain(%arg0: tensor<4x3x5x6xf32>, %arg1: tensor<3x5x6xf32>, %arg2: tensor<3x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x5x5xf32>) attributes {twin = @dot_chain_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<4x3x5x6xf32>) -> tensor<360xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x5x6xf32>) -> tensor<90xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3x5x6xf32>) -> tensor<90xf32>
    %3:2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 3 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "dot_chain", num_stages = 1 : i32, num_warps = 2 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "7575"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<360xf32>, tensor<90xf32>, tensor<90xf32>) -> (tensor<360xf32>, tensor<75xf32>)
    %4 = stablehlo.reshape %3#0 : (tensor<360xf32>) -> tensor<3x4x5x6xf32>
    %5 = stablehlo.reshape %3#1 : (tensor<75xf32>) -> tensor<3x5x5xf32>
    return %4, %5 : tensor<3x4x5x6xf32>, tensor<3x5x5xf32>
  }
  func.func private @dot_chain_twin(%arg0: tensor<4x3x5x6xf32>, %arg1: tensor<3x5x6xf32>, %arg2: tensor<3x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x5x5xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [0], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x4x5x5xf32>
    %1 = stablehlo.slice %0 [0:3, 0:1, 0:5, 0:5] : (tensor<3x4x5x5xf32>) -> tensor<3x1x5x5xf32>
    %2 = stablehlo.tanh %1 : tensor<3x1x5x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.dynamic_update_slice %0, %2, %c, %c_0, %c_1, %c_2 : (tensor<3x4x5x5xf32>, tensor<3x1x5x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x5x5xf32>
    %4 = stablehlo.dot_general %3, %arg2, batching_dims = [0] x [0], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x4x5x5xf32>, tensor<3x5x6xf32>) -> tensor<3x4x5x6xf32>
    %5 = stablehlo.slice %3 [0:3, 1:4, 0:5, 0:5] : (tensor<3x4x5x5xf32>) -> tensor<3x3x5x5xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<3x3x5x5xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<3x3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
    return %4, %7 : tensor<3x4x5x6xf32>, tensor<3x5x5xf32>
  }
}
