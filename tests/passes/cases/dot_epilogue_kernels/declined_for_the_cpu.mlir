// pipeline: dot-epilogue-kernels{everywhere=true}
// declined unsupported: the program is for cpu
func.func public @main(%x: tensor<3x2x4xf32>, %w: tensor<4x6xf32>) -> tensor<3x2x6xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<3x2x4xf32>, tensor<4x6xf32>) -> tensor<3x2x6xf32>
  %r = stablehlo.tanh %y : tensor<3x2x6xf32>
  return %r : tensor<3x2x6xf32>
}
