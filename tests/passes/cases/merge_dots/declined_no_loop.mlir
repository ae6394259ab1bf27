// declined unprofitable: there is no loop in the program
func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %r = stablehlo.add %p, %q : tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
