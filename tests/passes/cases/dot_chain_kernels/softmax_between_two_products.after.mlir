module {
  func.func public @main(%arg0: tensor<3x4x10xf32>, %arg1: tensor<3x4x10xf32>, %arg2: tensor<3x4x10xf32>) -> tensor<3x4x10xf32> {
    %0 = call @dot_chain(%arg0, %arg1, %arg2) : (tensor<3x4x10xf32>, tensor<3x4x10xf32>, tensor<3x4x10xf32>) -> tensor<3x4x10xf32>
    return %0 : tensor<3x4x10xf32>
  }
  func.func private @dot_chain(%arg0: tensor<3x4x10xf32>, %arg1: tensor<3x4x10xf32>, %arg2: tensor<3x4x10xf32>) -> tensor<3x4x10xf32> attributes {twin = @dot_chain_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x4x10xf32>) -> tensor<120xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x4x10xf32>) -> tensor<120xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3x4x10xf32>) -> tensor<120xf32>
    %3 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 6 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "dot_chain", num_stages = 1 : i32, num_warps = 2 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "2400"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<120xf32>, tensor<120xf32>, tensor<120xf32>) -> tensor<120xf32>
    %4 = stablehlo.reshape %3 : (tensor<120xf32>) -> tensor<3x4x10xf32>
    return %4 : tensor<3x4x10xf32>
  }
  func.func private @dot_chain_twin(%arg0: tensor<3x4x10xf32>, %arg1: tensor<3x4x10xf32>, %arg2: tensor<3x4x10xf32>) -> tensor<3x4x10xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
    %3 = stablehlo.dot_general %0, %1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x4x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<3x2x4xf32>) -> tensor<3x2x4x4xf32>
    %6 = stablehlo.subtract %3, %5 : tensor<3x2x4x4xf32>
    %7 = stablehlo.exponential %6 : tensor<3x2x4x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<3x2x4x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<3x2x4xf32>) -> tensor<3x2x4x4xf32>
    %10 = stablehlo.divide %7, %9 : tensor<3x2x4x4xf32>
    %11 = stablehlo.dot_general %10, %2, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x2x4x4xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x5xf32>
    %12 = stablehlo.transpose %11, dims = [0, 2, 1, 3] : (tensor<3x2x4x5xf32>) -> tensor<3x4x2x5xf32>
    %13 = stablehlo.reshape %12 : (tensor<3x4x2x5xf32>) -> tensor<3x4x10xf32>
    return %13 : tensor<3x4x10xf32>
  }
}
