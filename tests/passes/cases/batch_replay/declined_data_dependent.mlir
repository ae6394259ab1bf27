// declined unsafe: the trip count is not known at compile time: no carried value is a counter with a constant start and step
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.while(%s = %x) : tensor<f32> cond {
    %ten = stablehlo.constant dense<1.0e+01> : tensor<f32>
    %go = stablehlo.compare LT, %s, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %sum = stablehlo.add %s, %s : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }
  return %0 : tensor<f32>
}
