// declined unsupported: 1 of 1 dot_general: its operands and result are not of one type
func.func public @main(%q: tensor<2x3xi32>, %k: tensor<3x2xi32>) -> tensor<2x2xi32> {
  %r = stablehlo.dot_general %q, %k, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %r : tensor<2x2xi32>
}
