// Three branches.
func.func public @main(%i: tensor<i32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    %c = stablehlo.constant dense<10.0> : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }, {
    %c = stablehlo.constant dense<20.0> : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }, {
    %c = stablehlo.constant dense<30.0> : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
