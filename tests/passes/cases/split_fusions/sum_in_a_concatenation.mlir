// pipeline: split-fusions{at=2}
// applied: 1 value is computed once, in kernels of their own: split as asked for
func.func public @main(%x: tensor<8x4xf32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  %t = stablehlo.tanh %s : tensor<8xf32>
  %c = stablehlo.concatenate %s, %t, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %c : tensor<16xf32>
}
