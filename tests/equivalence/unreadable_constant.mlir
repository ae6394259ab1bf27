// Elements of a type that the bindings do not read.
func.func public @main(%x: tensor<32x3xi4>) -> tensor<32x3xi4> {
  %0 = stablehlo.constant dense<[[0, 1, 2]]> : tensor<1x3xi4>
  %1 = stablehlo.reshape %0 : (tensor<1x3xi4>) -> tensor<3xi4>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<3xi4>) -> tensor<32x3xi4>
  %3 = stablehlo.constant dense<1> : tensor<32x3xi4>
  %4 = stablehlo.add %2, %3 : tensor<32x3xi4>
  %5 = stablehlo.add %x, %4 : tensor<32x3xi4>
  return %5 : tensor<32x3xi4>
}
