module {
  func.func public @main(%arg0: tensor<3x2x8xf32>, %arg1: tensor<3x2x8xf32>) -> tensor<3x2x2x2xf32> {
    %0 = call @batched_product(%arg0, %arg1) : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x2x2xf32>
    return %0 : tensor<3x2x2x2xf32>
  }
  func.func private @batched_product(%arg0: tensor<3x2x8xf32>, %arg1: tensor<3x2x8xf32>) -> tensor<3x2x2x2xf32> attributes {twin = @batched_product_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x8xf32>) -> tensor<48xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x2x8xf32>) -> tensor<48xf32>
    %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 6 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "batched_product", num_stages = 1 : i32, num_warps = 1 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "192"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<48xf32>, tensor<48xf32>) -> tensor<24xf32>
    %3 = stablehlo.reshape %2 : (tensor<24xf32>) -> tensor<3x2x2x2xf32>
    return %3 : tensor<3x2x2x2xf32>
  }
  func.func private @batched_product_twin(%arg0: tensor<3x2x8xf32>, %arg1: tensor<3x2x8xf32>) -> tensor<3x2x2x2xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x8xf32>) -> tensor<3x2x2x4xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x2x8xf32>) -> tensor<3x2x2x4xf32>
    %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x2x2x4xf32>, tensor<3x2x2x4xf32>) -> tensor<3x2x2x2xf32>
    %3 = stablehlo.transpose %2, dims = [0, 2, 1, 3] : (tensor<3x2x2x2xf32>) -> tensor<3x2x2x2xf32>
    return %3 : tensor<3x2x2x2xf32>
  }
}
