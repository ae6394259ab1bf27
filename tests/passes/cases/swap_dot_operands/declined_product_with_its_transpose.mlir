// declined unprofitable: there is no contraction that is read with the last axis of its left operand as the last one
func.func public @main(%v: tensor<3x5x4xf32>, %a: tensor<3x4x5xf32>) -> tensor<3x4x4xf32> {
  %0 = stablehlo.dot_general %v, %a, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<3x5x4xf32>, tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<3x4x4xf32>
  return %2 : tensor<3x4x4xf32>
}
