// declined unsupported: 
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<3xf32>
  %0:3 = stablehlo.while(%k = %zero, %w = %x, %s = %init) : tensor<i32>, tensor<3xf32>, tensor<3xf32> cond {
    %trips = stablehlo.constant dense<4> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %t = stablehlo.custom_call @their_print(%w) {has_side_effect = true} : (tensor<3xf32>) -> tensor<3xf32>
    %term = stablehlo.multiply %t, %b : tensor<3xf32>
    %sum = stablehlo.add %s, %term : tensor<3xf32>
    stablehlo.return %next, %w, %sum : tensor<i32>, tensor<3xf32>, tensor<3xf32>
  }
  return %0#2 : tensor<3xf32>
}
