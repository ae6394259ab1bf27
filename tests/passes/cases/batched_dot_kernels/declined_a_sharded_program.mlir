// platform: cuda
// pipeline: batched-dot-kernels
// declined unsupported: the program is sharded
func.func public @main(%q: tensor<4x5x2x4xf32> {mhlo.sharding = "{devices=[2,1,1,1]<=[2]}"}, %k: tensor<4x5x2x4xf32>) -> tensor<4x2x5x5xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<4x5x2x4xf32>, tensor<4x5x2x4xf32>) -> tensor<4x2x5x5xf32>
  return %0 : tensor<4x2x5x5xf32>
}
