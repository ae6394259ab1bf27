// refused: stablehlo.power cannot be expressed
// In the body of a loop, where passes raise it.
func.func public @main(%x: tensor<8xi32>) -> tensor<8xi32> {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<8xi32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %p = stablehlo.power %x, %x : tensor<8xi32>
    %t = stablehlo.add %s, %p : tensor<8xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t : tensor<i32>, tensor<8xi32>
  }
  return %0#1 : tensor<8xi32>
}
