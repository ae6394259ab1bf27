// declined unprofitable: no model of time for this target; name a GPU that is absent, of a known compute capability
func.func public @main(%x: tensor<8xf32>) -> tensor<16xf32> {
  %t = stablehlo.tanh %x : tensor<8xf32>
  %c = stablehlo.concatenate %x, %t, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %c : tensor<16xf32>
}
