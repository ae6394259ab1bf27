module {
  func.func public @main(%arg0: tensor<3x2x4x5xf32>, %arg1: tensor<3x4x2x5xf32>) -> (tensor<3x2x4x4xf32>, tensor<3x2x4x4xf32>) {
    %0 = stablehlo.negate %arg0 : tensor<3x2x4x5xf32>
    %1 = call @batched_product(%arg0, %0, %arg1) : (tensor<3x2x4x5xf32>, tensor<3x2x4x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
    %2 = stablehlo.negate %arg1 : tensor<3x4x2x5xf32>
    %3 = call @batched_product_0(%2, %arg1) : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
    return %1, %3 : tensor<3x2x4x4xf32>, tensor<3x2x4x4xf32>
  }
  func.func private @batched_product(%arg0: tensor<3x2x4x5xf32>, %arg1: tensor<3x2x4x5xf32>, %arg2: tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32> attributes {twin = @batched_product_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x4x5xf32>) -> tensor<120xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x2x4x5xf32>) -> tensor<120xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3x4x2x5xf32>) -> tensor<120xf32>
    %3 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 6 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "batched_product", num_stages = 1 : i32, num_warps = 1 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "2880"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<120xf32>, tensor<120xf32>, tensor<120xf32>) -> tensor<96xf32>
    %4 = stablehlo.reshape %3 : (tensor<96xf32>) -> tensor<3x2x4x4xf32>
    return %4 : tensor<3x2x4x4xf32>
  }
  func.func private @batched_product_twin(%arg0: tensor<3x2x4x5xf32>, %arg1: tensor<3x2x4x5xf32>, %arg2: tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg0, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x2x4x5xf32>, tensor<3x2x4x5xf32>) -> tensor<3x2x4x4xf32>
    %1 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x2x4x5xf32>, tensor<3x2x4x5xf32>) -> tensor<3x2x4x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x2x4x4xf32>
    %3 = stablehlo.dot_general %arg2, %arg2, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
    %4 = stablehlo.add %2, %3 : tensor<3x2x4x4xf32>
    return %4 : tensor<3x2x4x4xf32>
  }
  func.func private @batched_product_0(%arg0: tensor<3x4x2x5xf32>, %arg1: tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32> attributes {twin = @batched_product_twin_0} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x4x2x5xf32>) -> tensor<120xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x4x2x5xf32>) -> tensor<120xf32>
    %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 6 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "batched_product", num_stages = 1 : i32, num_warps = 1 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "960"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<120xf32>, tensor<120xf32>) -> tensor<96xf32>
    %3 = stablehlo.reshape %2 : (tensor<96xf32>) -> tensor<3x2x4x4xf32>
    return %3 : tensor<3x2x4x4xf32>
  }
  func.func private @batched_product_twin_0(%arg0: tensor<3x4x2x5xf32>, %arg1: tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
    return %0 : tensor<3x2x4x4xf32>
  }
}
