// platform: cuda
// declined unprofitable: there is no layer of at most 128 features in a loop
func.func public @main(%i: tensor<i32>, %n: tensor<i32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<i32>) {
  %r = stablehlo.while(%k = %i) : tensor<i32>
  cond {
    %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %k2 = stablehlo.add %k, %k : tensor<i32>
    stablehlo.return %k2 : tensor<i32>
  }
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %h = stablehlo.tanh %a : tensor<4x8xf32>
  return %h, %b, %r : tensor<4x8xf32>, tensor<4x8xf32>, tensor<i32>
}
