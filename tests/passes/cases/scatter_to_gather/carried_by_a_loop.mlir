// applied: 1 scatters became gathers
func.func public @main(%u: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %k0 = stablehlo.constant dense<0> : tensor<i32>
  %i0 = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  %0:5 = stablehlo.while(%k = %k0, %i = %i0, %x = %z0, %v = %u, %sum = %z0) : tensor<i32>, tensor<3x1xi32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x4xf32> cond {
    %trips = stablehlo.constant dense<4> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %w = stablehlo.tanh %v : tensor<2x3xf32>
    %r = "stablehlo.scatter"(%x, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x4xf32>, tensor<3x1xi32>, tensor<2x3xf32>) -> tensor<2x4xf32>
    %total = stablehlo.add %sum, %r : tensor<2x4xf32>
    stablehlo.return %next, %i, %x, %w, %total : tensor<i32>, tensor<3x1xi32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x4xf32>
  }
  return %0#4 : tensor<2x4xf32>
}
