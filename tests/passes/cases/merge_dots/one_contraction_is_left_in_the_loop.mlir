// pipeline: merge-dots,licm
// applied: 2 layers were merged with others of the same input
// applied: 1 invariant ops hoisted out of the loop
func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) {
  %k0 = stablehlo.constant dense<0> : tensor<i32>
  %a0 = stablehlo.constant dense<0.0> : tensor<2x4xf32>
  %b0 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
  %0:4 = stablehlo.while(%k = %k0, %y = %x, %a = %a0, %b = %b0) : tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %z = stablehlo.tanh %y : tensor<2x3xf32>
    %p = stablehlo.dot_general %z, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %q = stablehlo.dot_general %z, %v, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %c = stablehlo.add %a, %p : tensor<2x4xf32>
    %d = stablehlo.add %b, %q : tensor<2x2xf32>
    stablehlo.return %next, %z, %c, %d : tensor<i32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x2xf32>
  }
  return %0#2, %0#3 : tensor<2x4xf32>, tensor<2x2xf32>
}
