module {
  func.func public @main(%arg0: tensor<6x3x12xf32>, %arg1: tensor<12x8xf32>, %arg2: tensor<8xf32>) -> tensor<6x3x8xf32> {
    %0 = call @jet_layer(%arg0, %arg1, %arg2) : (tensor<6x3x12xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<6x3x8xf32>
    return %0 : tensor<6x3x8xf32>
  }
  func.func private @jet_layer(%arg0: tensor<6x3x12xf32>, %arg1: tensor<12x8xf32>, %arg2: tensor<8xf32>) -> tensor<6x3x8xf32> attributes {twin = @jet_layer_twin} {
    %0 = stablehlo.reshape %arg0 : (tensor<6x3x12xf32>) -> tensor<216xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<12x8xf32>) -> tensor<96xf32>
    %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%0, %1, %arg2) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 2 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "...", name = "jet_layer", num_stages = 1 : i32, num_warps = 4 : i32}, mhlo.frontend_attributes = {fusionlab_flops = "3888"}, operand_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<216xf32>, tensor<96xf32>, tensor<8xf32>) -> tensor<144xf32>
    %3 = stablehlo.reshape %2 : (tensor<144xf32>) -> tensor<6x3x8xf32>
    return %3 : tensor<6x3x8xf32>
  }
  func.func private @jet_layer_twin(%arg0: tensor<6x3x12xf32>, %arg1: tensor<12x8xf32>, %arg2: tensor<8xf32>) -> tensor<6x3x8xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<3x8xf32>
    %cst_0 = stablehlo.constant dense<-2.000000e+00> : tensor<3x8xf32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<6x3x12xf32>, tensor<12x8xf32>) -> tensor<6x3x8xf32>
    %1 = stablehlo.slice %0 [0:1, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<1x3x8xf32>
    %2 = stablehlo.slice %0 [1:2, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<1x3x8xf32>
    %3 = stablehlo.slice %0 [2:6, 0:3, 0:8] : (tensor<6x3x8xf32>) -> tensor<4x3x8xf32>
    %4 = stablehlo.reshape %1 : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
    %5 = stablehlo.reshape %2 : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
    %6 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<8xf32>) -> tensor<3x8xf32>
    %7 = stablehlo.add %4, %6 : tensor<3x8xf32>
    %8 = stablehlo.tanh %7 : tensor<3x8xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<3x8xf32>
    %10 = stablehlo.subtract %cst, %9 : tensor<3x8xf32>
    %11 = stablehlo.multiply %cst_0, %8 : tensor<3x8xf32>
    %12 = stablehlo.multiply %11, %10 : tensor<3x8xf32>
    %13 = stablehlo.multiply %3, %3 : tensor<4x3x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<4x3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
    %15 = stablehlo.multiply %12, %14 : tensor<3x8xf32>
    %16 = stablehlo.multiply %10, %5 : tensor<3x8xf32>
    %17 = stablehlo.add %16, %15 : tensor<3x8xf32>
    %18 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<3x8xf32>) -> tensor<4x3x8xf32>
    %19 = stablehlo.multiply %18, %3 : tensor<4x3x8xf32>
    %20 = stablehlo.reshape %8 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %21 = stablehlo.reshape %17 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %22 = stablehlo.concatenate %20, %21, %19, dim = 0 : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<4x3x8xf32>) -> tensor<6x3x8xf32>
    return %22 : tensor<6x3x8xf32>
  }
}
