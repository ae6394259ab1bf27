// declined unsafe: the trip count is not known at compile time: the condition reads more than counters and constants
func.func public @main(%x: tensor<3xf32>, %keys: tensor<4x3xf32>, %n: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond {
    %go = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %row = stablehlo.dynamic_slice %keys, %k, %first, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %key = stablehlo.reshape %row : (tensor<1x3xf32>) -> tensor<3xf32>
    %t = stablehlo.tanh %s : tensor<3xf32>
    %r = stablehlo.add %t, %key : tensor<3xf32>
    stablehlo.return %next, %r : tensor<i32>, tensor<3xf32>
  }
  return %0#1, %0#0 : tensor<3xf32>, tensor<i32>
}
