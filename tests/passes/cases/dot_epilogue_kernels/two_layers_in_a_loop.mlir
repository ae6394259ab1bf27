// platform: cuda
// applied: 2 layers went into kernels
func.func public @main(%x: tensor<3x2x4xf32>, %w: tensor<4x6xf32>, %v: tensor<4x6xf32>, %b: tensor<3x6xf32>) -> tensor<3x2x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<3x2x4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %wide = stablehlo.dot_general %y, %w, contracting_dims = [2] x [0] : (tensor<3x2x4xf32>, tensor<4x6xf32>) -> tensor<3x2x6xf32>
    %bias = stablehlo.broadcast_in_dim %b, dims = [0, 2] : (tensor<3x6xf32>) -> tensor<3x2x6xf32>
    %shifted = stablehlo.add %wide, %bias : tensor<3x2x6xf32>
    %hidden = stablehlo.tanh %shifted : tensor<3x2x6xf32>
    %narrow = stablehlo.dot_general %hidden, %v, contracting_dims = [2] x [1] : (tensor<3x2x6xf32>, tensor<4x6xf32>) -> tensor<3x2x4xf32>
    %sum = stablehlo.add %y, %narrow : tensor<3x2x4xf32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<3x2x4xf32>
  }
  return %r#1 : tensor<3x2x4xf32>
}
