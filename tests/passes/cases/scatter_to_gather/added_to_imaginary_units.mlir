// applied: 1 scatters became gathers
func.func public @main(%u: tensor<2x3xcomplex<f32>>) -> tensor<2x4xcomplex<f32>> {
  %imaginary_unit = stablehlo.constant dense<(0.0, 1.0)> : tensor<complex<f32>>
  %x = stablehlo.broadcast_in_dim %imaginary_unit, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
  %i = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
    %s = stablehlo.add %a, %b : tensor<complex<f32>>
    stablehlo.return %s : tensor<complex<f32>>
  }) : (tensor<2x4xcomplex<f32>>, tensor<3x1xi32>, tensor<2x3xcomplex<f32>>) -> tensor<2x4xcomplex<f32>>
  return %r : tensor<2x4xcomplex<f32>>
}
