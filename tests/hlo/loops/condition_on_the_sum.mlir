// The condition reads the sum, which no counter bounds.
func.func public @main(%x: tensor<f32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<f32>
  cond {
    %go = stablehlo.compare LT, %s, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %sum = stablehlo.add %s, %x : tensor<f32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<f32>
  }
  return %0#0 : tensor<i32>
}
