// platform: cuda
// pipeline: jet-layer-kernels{narrowest=8}
// declined unprofitable: 1 of 1 dot_general: no sum over its rows follows: it is no layer of a jet
func.func public @main(%u: tensor<6x3x12xf32>, %w: tensor<12x8xf32>) -> tensor<6x3x8xf32> {
  %z = stablehlo.dot_general %u, %w, contracting_dims = [2] x [0] : (tensor<6x3x12xf32>, tensor<12x8xf32>) -> tensor<6x3x8xf32>
  %s = stablehlo.tanh %z : tensor<6x3x8xf32>
  return %s : tensor<6x3x8xf32>
}
