// refused: @main calls @outside, which has no body
func.func private @outside(tensor<f32>) -> tensor<f32>
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %1 = call @outside(%x) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
