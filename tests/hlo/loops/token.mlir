// A token is carried, and followed by another in every trip.
func.func public @main(%x: tensor<f32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = stablehlo.while(%k = %zero, %u = %t) : tensor<i32>, !stablehlo.token
  cond {
    %go = stablehlo.compare LT, %k, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %after = stablehlo.after_all %u : !stablehlo.token
    stablehlo.return %next, %after : tensor<i32>, !stablehlo.token
  }
  return %0#0 : tensor<i32>
}
