// declined unprofitable: 1 of 1 dot_general: no batch axis is the first of both operands
func.func public @main(%table: tensor<2x3x4xf32>, %x: tensor<6x2x4xf32>) -> tensor<2x3x6xf32> {
  %r = stablehlo.dot_general %table, %x, batching_dims = [0] x [1], contracting_dims = [2] x [2]
    : (tensor<2x3x4xf32>, tensor<6x2x4xf32>) -> tensor<2x3x6xf32>
  return %r : tensor<2x3x6xf32>
}
