// declined unprofitable: 1 of 1 dot_general: it has no batch axes, or contracts nothing
func.func public @main(%x: tensor<5x6x4xf32>, %w: tensor<4x8xf32>) -> tensor<5x6x8xf32> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<5x6x4xf32>, tensor<4x8xf32>) -> tensor<5x6x8xf32>
  return %r : tensor<5x6x8xf32>
}
