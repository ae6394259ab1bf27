// pipeline: fold-constant-loops{most_bytes=7}
// declined unprofitable: a value on the way has 8 bytes
func.func public @main() -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.0> : tensor<2xf32>
  %r:2 = stablehlo.while(%x = %x0, %k = %zero) : tensor<2xf32>, tensor<i32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %x, %next : tensor<2xf32>, tensor<i32>
  }
  return %r#0 : tensor<2xf32>
}
