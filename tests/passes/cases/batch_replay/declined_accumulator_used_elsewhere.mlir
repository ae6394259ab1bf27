// declined unsafe: carried value 1 (tensor<f32>) is neither a sum nor stacked: the accumulator is also used elsewhere in the body
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%k = %zero, %s = %x, %t = %x) : tensor<i32>, tensor<f32>, tensor<f32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
    %sum = stablehlo.add %s, %f : tensor<f32>
    %other = stablehlo.sine %s : tensor<f32>
    stablehlo.return %next, %sum, %other : tensor<i32>, tensor<f32>, tensor<f32>
  }
  return %0#2 : tensor<f32>
}
