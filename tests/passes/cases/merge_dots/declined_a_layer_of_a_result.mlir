// pipeline: merge-dots{widest=99}
// declined unprofitable: no layers of one value would read less as one
func.func public @main(%x: tensor<64x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>, %u: tensor<3x4xf32>, %m: tensor<8x2xf32>) -> (tensor<64x4xf32>, tensor<64x4xf32>, tensor<32x2xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  %r = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  %s = stablehlo.reshape %q : (tensor<64x4xf32>) -> tensor<32x8xf32>
  %t = stablehlo.dot_general %s, %m, contracting_dims = [1] x [0] : (tensor<32x8xf32>, tensor<8x2xf32>) -> tensor<32x2xf32>
  return %p, %r, %t : tensor<64x4xf32>, tensor<64x4xf32>, tensor<32x2xf32>
}
