// declined unsafe: the loop computes second derivatives of
func.func public @main(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %xx = stablehlo.multiply %x, %x : tensor<2x3xf32>
  %xxx = stablehlo.multiply %xx, %x : tensor<2x3xf32>
  %f = stablehlo.reduce(%xxx init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %six = stablehlo.constant dense<6.0> : tensor<2x3xf32>
  %hessian = stablehlo.multiply %six, %x : tensor<2x3xf32>
  %init = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0:3 = stablehlo.while(%k = %start, %w = %hessian, %s = %init) : tensor<i32>, tensor<2x3xf32>, tensor<2xf32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %iota = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %at = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %is = stablehlo.compare EQ, %iota, %at : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %e = stablehlo.convert %is : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %once = stablehlo.multiply %w, %e : tensor<2x3xf32>
    %he = stablehlo.multiply %once, %once : tensor<2x3xf32>
    %term = stablehlo.reduce(%he init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %sum = stablehlo.add %s, %term : tensor<2xf32>
    stablehlo.return %next, %w, %sum : tensor<i32>, tensor<2x3xf32>, tensor<2xf32>
  }
  return %f, %0#2 : tensor<2xf32>, tensor<2xf32>
}
