module {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x4xf32> {
    %c = stablehlo.constant dense<[[1], [0], [0], [0]]> : tensor<4x1xi32>
    %c_0 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
    %c_1 = stablehlo.constant dense<[[0], [2], [0], [0]]> : tensor<4x1xi32>
    %c_2 = stablehlo.constant dense<[false, true, false, false]> : tensor<4xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %1 = "stablehlo.gather"(%arg0, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %3 = stablehlo.select %2, %1, %0 : tensor<2x4xi1>, tensor<2x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %5 = "stablehlo.gather"(%arg0, %c_1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %7 = stablehlo.select %6, %5, %4 : tensor<2x4xi1>, tensor<2x4xf32>
    %8 = stablehlo.add %3, %7 : tensor<2x4xf32>
    %c_4 = stablehlo.constant dense<[[1], [0], [0], [0]]> : tensor<4x1xi32>
    %c_5 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
    %c_6 = stablehlo.constant dense<[[0], [2], [0], [0]]> : tensor<4x1xi32>
    %c_7 = stablehlo.constant dense<[false, true, false, false]> : tensor<4xi1>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %10 = "stablehlo.gather"(%arg1, %c_4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
    %11 = stablehlo.broadcast_in_dim %c_5, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %12 = stablehlo.select %11, %10, %9 : tensor<2x4xi1>, tensor<2x4xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %14 = "stablehlo.gather"(%arg1, %c_6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
    %15 = stablehlo.broadcast_in_dim %c_7, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %16 = stablehlo.select %15, %14, %13 : tensor<2x4xi1>, tensor<2x4xf32>
    %17 = stablehlo.add %12, %16 : tensor<2x4xf32>
    %18 = stablehlo.add %8, %17 : tensor<2x4xf32>
    return %18 : tensor<2x4xf32>
  }
}
