// pipeline: merge-dots{widest=8}
// applied: 3 layers were merged with others of the same input
func.func public @main(%x: tensor<512x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x16xf32>, %u: tensor<3x4xf32>) -> (tensor<512x4xf32>, tensor<512x16xf32>, tensor<512x4xf32>, tensor<512x4xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x3xf32>, tensor<3x4xf32>) -> tensor<512x4xf32>
  %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<512x3xf32>, tensor<3x16xf32>) -> tensor<512x16xf32>
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x3xf32>, tensor<3x4xf32>) -> tensor<512x4xf32>
  %s = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<512x3xf32>, tensor<3x4xf32>) -> tensor<512x4xf32>
  return %p, %q, %r, %s : tensor<512x4xf32>, tensor<512x16xf32>, tensor<512x4xf32>, tensor<512x4xf32>
}
