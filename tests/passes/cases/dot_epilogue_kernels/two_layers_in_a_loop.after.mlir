module {
  func.func public @main(%arg0: tensor<3x2x4xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<3x6xf32>) -> tensor<3x2x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<3x2x4xf32>
    cond {
      %c_1 = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      %2 = stablehlo.broadcast_in_dim %arg3, dims = [0, 2] : (tensor<3x6xf32>) -> tensor<3x2x6xf32>
      %3 = func.call @fused_layers(%iterArg_0, %arg3, %arg1, %arg2) : (tensor<3x2x4xf32>, tensor<3x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<3x2x4xf32>
      stablehlo.return %1, %3 : tensor<i32>, tensor<3x2x4xf32>
    }
    return %0#1 : tensor<3x2x4xf32>
  }
  func.func private @fused_layers(%arg0: tensor<3x2x4xf32>, %arg1: tensor<3x6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<4x6xf32>) -> tensor<3x2x4xf32> attributes {twin = @fused_layers_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x4xf32>) -> tensor<24xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x6xf32>) -> tensor<18xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<4x6xf32>) -> tensor<24xf32>
    %3 = stablehlo.reshape %arg3 : (tensor<4x6xf32>) -> tensor<24xf32>
    %4 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2, %3) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 1 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "row_program", num_stages = 1 : i32, num_warps = 8 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "672"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<24xf32>, tensor<18xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
    %5 = stablehlo.reshape %4 : (tensor<24xf32>) -> tensor<3x2x4xf32>
    return %5 : tensor<3x2x4xf32>
  }
  func.func private @fused_layers_twin(%arg0: tensor<3x2x4xf32>, %arg1: tensor<3x6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<4x6xf32>) -> tensor<3x2x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x2x4xf32>, tensor<4x6xf32>) -> tensor<3x2x6xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<3x6xf32>) -> tensor<3x2x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x2x6xf32>
    %3 = stablehlo.tanh %2 : tensor<3x2x6xf32>
    %4 = stablehlo.dot_general %3, %arg3, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x2x6xf32>, tensor<4x6xf32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.add %arg0, %4 : tensor<3x2x4xf32>
    return %5 : tensor<3x2x4xf32>
  }
}
