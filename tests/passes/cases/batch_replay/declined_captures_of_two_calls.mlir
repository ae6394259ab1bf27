// declined unsupported: the loop captures what a call made, or what is outside of @inner
func.func private @inner(%x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %trips = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond {
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %term = stablehlo.multiply %y, %z : tensor<3xf32>
    %sum = stablehlo.add %s, %term : tensor<3xf32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<3xf32>
  }
  return %0#1 : tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = call @inner(%x, %y, %y) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = call @inner(%x, %x, %y) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}
