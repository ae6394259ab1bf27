// pipeline: merge-dots{widest=11}
// applied: 2 layers were merged with others of the same input
func.func public @main(%x: tensor<64x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>, %u: tensor<3x4xf32>) -> (tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  %r = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<64x3xf32>, tensor<3x4xf32>) -> tensor<64x4xf32>
  return %p, %q, %r : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>
}
