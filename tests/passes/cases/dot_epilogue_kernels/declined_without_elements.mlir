// platform: cuda
// pipeline: dot-epilogue-kernels{everywhere=true}
// declined unprofitable: no layer has elementwise work beside it in arrays of 1 to 2^31 - 1 elements
func.func public @main(%x: tensor<3x0x4xf32>, %w: tensor<4x6xf32>) -> tensor<3x0x6xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<3x0x4xf32>, tensor<4x6xf32>) -> tensor<3x0x6xf32>
  %z = stablehlo.tanh %y : tensor<3x0x6xf32>
  return %z : tensor<3x0x6xf32>
}
