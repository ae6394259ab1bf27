module {
  func.func public @main(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x4xcomplex<f32>> {
    %cst = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
    %c = stablehlo.constant dense<[[1], [0], [0], [0]]> : tensor<4x1xi32>
    %c_0 = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
    %c_1 = stablehlo.constant dense<[[0], [2], [0], [0]]> : tensor<4x1xi32>
    %c_2 = stablehlo.constant dense<[false, true, false, false]> : tensor<4xi1>
    %cst_3 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %1 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
    %2 = "stablehlo.gather"(%arg0, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xcomplex<f32>>, tensor<4x1xi32>) -> tensor<2x4xcomplex<f32>>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %4 = stablehlo.select %3, %2, %1 : tensor<2x4xi1>, tensor<2x4xcomplex<f32>>
    %cst_4 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
    %6 = "stablehlo.gather"(%arg0, %c_1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xcomplex<f32>>, tensor<4x1xi32>) -> tensor<2x4xcomplex<f32>>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [1] : (tensor<4xi1>) -> tensor<2x4xi1>
    %8 = stablehlo.select %7, %6, %5 : tensor<2x4xi1>, tensor<2x4xcomplex<f32>>
    %9 = stablehlo.add %4, %8 : tensor<2x4xcomplex<f32>>
    %10 = stablehlo.add %0, %9 : tensor<2x4xcomplex<f32>>
    return %10 : tensor<2x4xcomplex<f32>>
  }
}
