module {
  func.func public @main(%arg0: tensor<3x2x5x5xf32>, %arg1: tensor<6x3x2x5x5xf32>) -> tensor<3x2xf32> {
    %0 = call @dot_chain(%arg0, %arg1) : (tensor<3x2x5x5xf32>, tensor<6x3x2x5x5xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
  func.func private @dot_chain(%arg0: tensor<3x2x5x5xf32>, %arg1: tensor<6x3x2x5x5xf32>) -> tensor<3x2xf32> attributes {twin = @dot_chain_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x5x5xf32>) -> tensor<150xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<6x3x2x5x5xf32>) -> tensor<900xf32>
    %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 6 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "dot_chain", num_stages = 1 : i32, num_warps = 2 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "7806"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<150xf32>, tensor<900xf32>) -> tensor<6xf32>
    %3 = stablehlo.reshape %2 : (tensor<6xf32>) -> tensor<3x2xf32>
    return %3 : tensor<3x2xf32>
  }
  func.func private @dot_chain_twin(%arg0: tensor<3x2x5x5xf32>, %arg1: tensor<6x3x2x5x5xf32>) -> tensor<3x2xf32> {
    %0 = stablehlo.slice %arg1 [2:6, 0:3, 0:2, 0:5, 0:5] : (tensor<6x3x2x5x5xf32>) -> tensor<4x3x2x5x5xf32>
    %1 = stablehlo.dot_general %arg0, %0, batching_dims = [0, 1] x [1, 2], contracting_dims = [3] x [3], precision = [HIGHEST, HIGHEST] : (tensor<3x2x5x5xf32>, tensor<4x3x2x5x5xf32>) -> tensor<3x2x5x4x5xf32>
    %2 = stablehlo.transpose %1, dims = [0, 1, 4, 3, 2] : (tensor<3x2x5x4x5xf32>) -> tensor<3x2x5x4x5xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<3x2x5x4x5xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [4, 3, 2] : (tensor<3x2x5x4x5xf32>, tensor<f32>) -> tensor<3x2xf32>
    return %4 : tensor<3x2xf32>
  }
}
