// platform: cuda
// pipeline: dot-epilogue-kernels{everywhere=true}
// applied: 1 layers went into kernels
func.func public @main(%x: tensor<3x5x4xf32>, %m: tensor<3x2xf32>, %w: tensor<6x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) {
  %some = stablehlo.slice %x [0:3, 3:5, 0:4] : (tensor<3x5x4xf32>) -> tensor<3x2x4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<3x2x4xf32>
  %less = stablehlo.multiply %some, %half : tensor<3x2x4xf32>
  %mean = stablehlo.broadcast_in_dim %m, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x2x2xf32>
  %all = stablehlo.concatenate %less, %mean, dim = 2 : (tensor<3x2x4xf32>, tensor<3x2x2xf32>) -> tensor<3x2x6xf32>
  %y = stablehlo.dot_general %all, %w, contracting_dims = [2] x [0] : (tensor<3x2x6xf32>, tensor<6x4xf32>) -> tensor<3x2x4xf32>
  %t = stablehlo.tanh %y : tensor<3x2x4xf32>
  %s = stablehlo.negate %t : tensor<3x2x4xf32>
  return %t, %s : tensor<3x2x4xf32>, tensor<3x2x4xf32>
}
