// platform: cuda
// pipeline: dot-epilogue-kernels{everywhere=true}
// declined unprofitable: no layer has elementwise work beside it in arrays of 1 to 2^31 - 1 elements
func.func public @main(%x: tensor<65536x8192x4xf32>, %w: tensor<4x2xf32>) -> tensor<65536x8192x2xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<65536x8192x4xf32>, tensor<4x2xf32>) -> tensor<65536x8192x2xf32>
  %z = stablehlo.tanh %y : tensor<65536x8192x2xf32>
  return %z : tensor<65536x8192x2xf32>
}
