// refused: @a calls itself
// Though nothing calls it.
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @a(%x: tensor<f32>) -> tensor<f32> {
  %1 = call @b(%x) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @b(%x: tensor<f32>) -> tensor<f32> {
  %1 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
