// declined unsupported: custom call @another is opaque
func.func public @main() -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%k = %zero) : tensor<i32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %step = stablehlo.custom_call @another(%one) {has_side_effect = false} : (tensor<i32>) -> tensor<i32>
    %next = stablehlo.add %k, %step : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %r : tensor<i32>
}
