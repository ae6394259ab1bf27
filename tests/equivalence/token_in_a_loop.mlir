// A loop that carries a token beside the walkers: its axes are not followed.
func.func public @main(%x: tensor<32x3xf32>) -> tensor<32x3xf32> {
  %token = stablehlo.create_token : !stablehlo.token
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%a = %token, %b = %x, %c = %zero) : !stablehlo.token, tensor<32x3xf32>, tensor<i32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %c, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.sine %b : tensor<32x3xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %d = stablehlo.add %c, %one : tensor<i32>
    stablehlo.return %a, %s, %d : !stablehlo.token, tensor<32x3xf32>, tensor<i32>
  }
  return %r#1 : tensor<32x3xf32>
}
