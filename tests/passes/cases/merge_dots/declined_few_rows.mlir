// pipeline: merge-dots{widest=8}
// declined unprofitable: no layers of one value would read less as one
func.func public @main(%x: tensor<8x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>, %u: tensor<3x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %r = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %p, %q, %r : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
