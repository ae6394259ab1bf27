module {
  func.func public @main(%arg0: tensor<3x2x5x4xf32>, %arg1: tensor<3x2x5x4xf32>, %arg2: tensor<3x6x5x2x4xf32>, %arg3: tensor<3x6x5x2x4xf32>) -> tensor<3x6x2x5x5xf32> {
    %0 = call @batched_product(%arg2, %arg1, %arg0, %arg3) : (tensor<3x6x5x2x4xf32>, tensor<3x2x5x4xf32>, tensor<3x2x5x4xf32>, tensor<3x6x5x2x4xf32>) -> tensor<3x6x2x5x5xf32>
    return %0 : tensor<3x6x2x5x5xf32>
  }
  func.func private @batched_product(%arg0: tensor<3x6x5x2x4xf32>, %arg1: tensor<3x2x5x4xf32>, %arg2: tensor<3x2x5x4xf32>, %arg3: tensor<3x6x5x2x4xf32>) -> tensor<3x6x2x5x5xf32> attributes {twin = @batched_product_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<3x6x5x2x4xf32>) -> tensor<720xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<3x2x5x4xf32>) -> tensor<120xf32>
    %2 = stablehlo.reshape %arg2 : (tensor<3x2x5x4xf32>) -> tensor<120xf32>
    %3 = stablehlo.reshape %arg3 : (tensor<3x6x5x2x4xf32>) -> tensor<720xf32>
    %4 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %2, %3) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 36 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "batched_product", num_stages = 1 : i32, num_warps = 1 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "14400"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<720xf32>, tensor<120xf32>, tensor<120xf32>, tensor<720xf32>) -> tensor<900xf32>
    %5 = stablehlo.reshape %4 : (tensor<900xf32>) -> tensor<3x6x2x5x5xf32>
    return %5 : tensor<3x6x2x5x5xf32>
  }
  func.func private @batched_product_twin(%arg0: tensor<3x6x5x2x4xf32>, %arg1: tensor<3x2x5x4xf32>, %arg2: tensor<3x2x5x4xf32>, %arg3: tensor<3x6x5x2x4xf32>) -> tensor<3x6x2x5x5xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 3] x [0, 1], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x6x5x2x4xf32>, tensor<3x2x5x4xf32>) -> tensor<3x2x6x5x5xf32>
    %1 = stablehlo.dot_general %arg3, %arg2, batching_dims = [0, 3] x [0, 1], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<3x6x5x2x4xf32>, tensor<3x2x5x4xf32>) -> tensor<3x2x6x5x5xf32>
    %2 = stablehlo.transpose %1, dims = [0, 1, 2, 4, 3] : (tensor<3x2x6x5x5xf32>) -> tensor<3x2x6x5x5xf32>
    %3 = stablehlo.add %0, %2 : tensor<3x2x6x5x5xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 1, 3, 4] : (tensor<3x2x6x5x5xf32>) -> tensor<3x6x2x5x5xf32>
    return %4 : tensor<3x6x2x5x5xf32>
  }
}
