// declined unprofitable: a value on the way has 400,000,000,000 bytes
func.func public @main() -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%x = %x0, %k = %zero) : tensor<f32>, tensor<i32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %many = stablehlo.iota dim = 0 : tensor<100000000000xf32>
    %sum = stablehlo.reduce(%many init: %x) applies stablehlo.add across dimensions = [0] : (tensor<100000000000xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %sum, %next : tensor<f32>, tensor<i32>
  }
  return %r#0 : tensor<f32>
}
