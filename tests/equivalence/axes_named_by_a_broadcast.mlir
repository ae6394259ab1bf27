// Operands of two ranks: their axes do not correspond by position.
func.func public @main(%x: tensor<32x32xf32>, %w: tensor<32xf32>) -> tensor<32x32xf32> {
  %0 = chlo.broadcast_add %x, %w {broadcast_dimensions = array<i64: 1>} : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
