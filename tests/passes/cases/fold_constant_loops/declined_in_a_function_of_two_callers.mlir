// declined unsupported: it reads what its function is given, which may be called with other constants
func.func public @main() -> (tensor<i32>, tensor<i32>) {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %a = call @count(%three) : (tensor<i32>) -> tensor<i32>
  %b = call @count(%four) : (tensor<i32>) -> tensor<i32>
  return %a, %b : tensor<i32>, tensor<i32>
}
func.func private @count(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %twice = stablehlo.add %n, %n : tensor<i32>
  %r:3 = stablehlo.while(%x = %twice, %k = %zero, %m = %twice) : tensor<i32>, tensor<i32>, tensor<i32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %y = stablehlo.multiply %x, %m : tensor<i32>
    stablehlo.return %y, %next, %m : tensor<i32>, tensor<i32>, tensor<i32>
  }
  return %r#0 : tensor<i32>
}
