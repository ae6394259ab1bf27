module {
  func.func public @main(%arg0: tensor<2x4xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x4xf32> {
    %c = stablehlo.constant dense<[[1], [0], [2], [0]]> : tensor<4x1xi32>
    %c_0 = stablehlo.constant dense<[true, true, true, false]> : tensor<4xi1>
    %0 = "stablehlo.gather"(%arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<2x4xf32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %2 = stablehlo.select %1, %0, %arg0 : tensor<2x4xi1>, tensor<2x4xf32>
    return %2 : tensor<2x4xf32>
  }
}
