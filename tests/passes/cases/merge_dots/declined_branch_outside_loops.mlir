// declined unprofitable: no loop applies several layers to one value
func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.case"(%n) ({
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %r = stablehlo.add %p, %q : tensor<2x4xf32>
    stablehlo.return %r : tensor<2x4xf32>
  }, {
    %s = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<2x4xi32>
    %t = stablehlo.convert %s : (tensor<2x4xi32>) -> tensor<2x4xf32>
    stablehlo.return %t : tensor<2x4xf32>
  }) : (tensor<i32>) -> tensor<2x4xf32>
  %k0 = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%k = %k0, %y = %0) : tensor<i32>, tensor<2x4xf32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %z = stablehlo.tanh %y : tensor<2x4xf32>
    stablehlo.return %next, %z : tensor<i32>, tensor<2x4xf32>
  }
  return %1#1 : tensor<2x4xf32>
}
