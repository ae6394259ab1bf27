// Two values are added to and change places in every trip.
func.func public @main(%x: tensor<f32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %0:3 = stablehlo.while(%k = %zero, %p = %x, %q = %x) : tensor<i32>, tensor<f32>, tensor<f32>
  cond {
    %go = stablehlo.compare LT, %k, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %a = stablehlo.add %q, %x : tensor<f32>
    %b = stablehlo.add %p, %x : tensor<f32>
    stablehlo.return %next, %a, %b : tensor<i32>, tensor<f32>, tensor<f32>
  }
  return %0#0 : tensor<i32>
}
