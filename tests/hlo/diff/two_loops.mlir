// A loop in a loop; both start alike, and the inner one adds its own value.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<3> : tensor<i32>
  %outer:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %going = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %going : tensor<i1>
  } do {
    %inner:2 = stablehlo.while(%j = %zero, %b = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %on = stablehlo.compare LT, %j, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %on : tensor<i1>
    } do {
      %c = stablehlo.add %b, %b : tensor<4xf32>
      %k = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %k, %c : tensor<i32>, tensor<4xf32>
    }
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %inner#1 : tensor<i32>, tensor<4xf32>
  }
  return %outer#1 : tensor<4xf32>
}
