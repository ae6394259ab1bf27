// applied: 3 trips batched at once (1 sums)
// declined unsafe: carried value 1 (tensor<f32>) is neither a sum nor stacked: its next value depends on carried values in another way than adding to it
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%k = %zero, %w = %x, %s = %x) : tensor<i32>, tensor<f32>, tensor<f32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %sum = stablehlo.add %s, %w : tensor<f32>
    stablehlo.return %next, %w, %sum : tensor<i32>, tensor<f32>, tensor<f32>
  }
  %1:2 = stablehlo.while(%k = %zero, %s = %0#2) : tensor<i32>, tensor<f32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %sum = stablehlo.sine %s : tensor<f32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<f32>
  }
  return %1#1 : tensor<f32>
}
