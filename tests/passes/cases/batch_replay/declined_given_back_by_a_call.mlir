// declined unsupported: the loop captures what a call made, or what is outside of @main
func.func private @double(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @same(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %trips = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %y = call @double(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %0:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond {
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %z = func.call @same(%y) : (tensor<3xf32>) -> tensor<3xf32>
    %sum = stablehlo.add %s, %z : tensor<3xf32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<3xf32>
  }
  return %0#1 : tensor<3xf32>
}
