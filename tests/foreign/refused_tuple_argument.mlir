// argument 0 of @main has type tuple<tensor<f32>>
func.func public @main(%x: tuple<tensor<f32>>) -> tensor<f32> {
  %0 = stablehlo.get_tuple_element %x[0] : (tuple<tensor<f32>>) -> tensor<f32>
  return %0 : tensor<f32>
}
