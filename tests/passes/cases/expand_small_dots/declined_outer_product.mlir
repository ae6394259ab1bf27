// declined unprofitable: 1 of 1 dot_general: it has no batch axes, or contracts nothing
func.func public @main(%x: tensor<6x2xf32>, %w: tensor<5x2xf32>) -> tensor<2x6x5xf32> {
  %r = stablehlo.dot_general %x, %w, batching_dims = [1] x [1], contracting_dims = [] x []
    : (tensor<6x2xf32>, tensor<5x2xf32>) -> tensor<2x6x5xf32>
  return %r : tensor<2x6x5xf32>
}
