// platform: cuda
// pipeline: dot-chain-kernels{smallest=1}
// applied: 2 contractions became kernels with what lies between them
func.func public @main(%q: tensor<3x4x10xf32>, %k: tensor<3x4x10xf32>, %v: tensor<3x4x10xf32>) -> tensor<3x4x10xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %q : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
  %1 = stablehlo.reshape %k : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
  %2 = stablehlo.reshape %v : (tensor<3x4x10xf32>) -> tensor<3x4x2x5xf32>
  %3 = stablehlo.dot_general %0, %1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x4x2x5xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x4xf32>
  %4 = stablehlo.reduce(%3 init: %least) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x4x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<3x2x4xf32>) -> tensor<3x2x4x4xf32>
  %6 = stablehlo.subtract %3, %5 : tensor<3x2x4x4xf32>
  %7 = stablehlo.exponential %6 : tensor<3x2x4x4xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<3x2x4x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<3x2x4xf32>) -> tensor<3x2x4x4xf32>
  %10 = stablehlo.divide %7, %9 : tensor<3x2x4x4xf32>
  %11 = stablehlo.optimization_barrier %10 : tensor<3x2x4x4xf32>
  %12 = stablehlo.dot_general %11, %2, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x4x4xf32>, tensor<3x4x2x5xf32>) -> tensor<3x2x4x5xf32>
  %13 = stablehlo.transpose %12, dims = [0, 2, 1, 3] : (tensor<3x2x4x5xf32>) -> tensor<3x4x2x5xf32>
  %14 = stablehlo.reshape %13 : (tensor<3x4x2x5xf32>) -> tensor<3x4x10xf32>
  return %14 : tensor<3x4x10xf32>
}
