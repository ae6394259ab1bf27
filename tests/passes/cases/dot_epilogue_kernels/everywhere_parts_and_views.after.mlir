module {
  func.func public @main(%arg0: tensor<3x5x4xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) {
    %0 = stablehlo.slice %arg0 [0:3, 3:5, 0:4] : (tensor<3x5x4xf32>) -> tensor<3x2x4xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<3x2x4xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<3x2x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x2x2xf32>
    %3 = stablehlo.concatenate %1, %2, dim = 2 : (tensor<3x2x4xf32>, tensor<3x2x2xf32>) -> tensor<3x2x6xf32>
    %4:2 = call @fused_layers(%arg0, %arg1, %arg2) : (tensor<3x5x4xf32>, tensor<3x2xf32>, tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>)
    return %4#0, %4#1 : tensor<3x2x4xf32>, tensor<3x2x4xf32>
  }
  func.func private @fused_layers(%arg0: tensor<3x5x4xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) attributes {twin = @fused_layers_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x5x4xf32>) -> tensor<60xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x2xf32>) -> tensor<6xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<6x4xf32>) -> tensor<24xf32>
    %3:2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 1 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "row_program", num_stages = 1 : i32, num_warps = 8 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "360"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<60xf32>, tensor<6xf32>, tensor<24xf32>) -> (tensor<24xf32>, tensor<24xf32>)
    %4 = stablehlo.reshape %3#0 : (tensor<24xf32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.reshape %3#1 : (tensor<24xf32>) -> tensor<3x2x4xf32>
    return %4, %5 : tensor<3x2x4xf32>, tensor<3x2x4xf32>
  }
  func.func private @fused_layers_twin(%arg0: tensor<3x5x4xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<3x2x4xf32>
    %0 = stablehlo.slice %arg0 [0:3, 3:5, 0:4] : (tensor<3x5x4xf32>) -> tensor<3x2x4xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<3x2x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x2x2xf32>
    %3 = stablehlo.concatenate %1, %2, dim = 2 : (tensor<3x2x4xf32>, tensor<3x2x2xf32>) -> tensor<3x2x6xf32>
    %4 = stablehlo.dot_general %3, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x2x6xf32>, tensor<6x4xf32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.tanh %4 : tensor<3x2x4xf32>
    %6 = stablehlo.negate %5 : tensor<3x2x4xf32>
    return %5, %6 : tensor<3x2x4xf32>, tensor<3x2x4xf32>
  }
}
