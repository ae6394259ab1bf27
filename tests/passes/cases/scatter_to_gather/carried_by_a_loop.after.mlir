module {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<2x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %1:5 = stablehlo.while(%iterArg = %c, %iterArg_1 = %c_0, %iterArg_2 = %0, %iterArg_3 = %arg0, %iterArg_4 = %0) : tensor<i32>, tensor<3x1xi32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x4xf32>
    cond {
      %c_5 = stablehlo.constant dense<4> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_5 : tensor<i32>
      %3 = stablehlo.tanh %iterArg_3 : tensor<2x3xf32>
      %c_6 = stablehlo.constant dense<[[1], [0], [0], [0]]> : tensor<4x1xi32>
      %c_7 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
      %c_8 = stablehlo.constant dense<[[0], [2], [0], [0]]> : tensor<4x1xi32>
      %c_9 = stablehlo.constant dense<[false, true, false, false]> : tensor<4xi1>
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %5 = "stablehlo.gather"(%3, %c_6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
      %6 = stablehlo.broadcast_in_dim %c_7, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
      %7 = stablehlo.select %6, %5, %4 : tensor<2x4xi1>, tensor<2x4xf32>
      %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %9 = "stablehlo.gather"(%3, %c_8) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
      %10 = stablehlo.broadcast_in_dim %c_9, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
      %11 = stablehlo.select %10, %9, %8 : tensor<2x4xi1>, tensor<2x4xf32>
      %12 = stablehlo.add %7, %11 : tensor<2x4xf32>
      %13 = stablehlo.add %iterArg_4, %12 : tensor<2x4xf32>
      stablehlo.return %2, %iterArg_1, %iterArg_2, %3, %13 : tensor<i32>, tensor<3x1xi32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x4xf32>
    }
    return %1#4 : tensor<2x4xf32>
  }
}
