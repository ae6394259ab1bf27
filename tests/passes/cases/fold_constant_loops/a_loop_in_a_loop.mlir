// applied: a loop of constants was run once and for all (9 trips)
func.func public @main(%y: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %x0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %r:2 = stablehlo.while(%x = %x0, %k = %zero) : tensor<4xf32>, tensor<i32>
  cond {
    %go = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %inner:2 = stablehlo.while(%z = %x, %j = %k) : tensor<4xf32>, tensor<i32>
    cond {
      %more = stablehlo.compare LT, %j, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %w = stablehlo.add %z, %x0 : tensor<4xf32>
      %i = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %w, %i : tensor<4xf32>, tensor<i32>
    }
    %next = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %inner#0, %next : tensor<4xf32>, tensor<i32>
  }
  %s = stablehlo.multiply %r#0, %y : tensor<4xf32>
  return %s : tensor<4xf32>
}
