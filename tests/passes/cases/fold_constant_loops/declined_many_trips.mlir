// declined unprofitable: it runs more operations than are tried
func.func public @main() -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%k = %zero) : tensor<i32>
  cond {
    %many = stablehlo.constant dense<50000> : tensor<i32>
    %go = stablehlo.compare LT, %k, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %r : tensor<i32>
}
