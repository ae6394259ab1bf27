// One branch captures a value and an argument, the other one an argument.
func.func public @main(%x: tensor<f32>, %p: tensor<i1>, %y: tensor<f32>) -> tensor<f32> {
  %s = stablehlo.sine %x : tensor<f32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %s, %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
