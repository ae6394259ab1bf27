// refused: @a calls itself
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %1 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @a(%x: tensor<f32>) -> tensor<f32> {
  %1 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  %2 = call @a(%1) : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
