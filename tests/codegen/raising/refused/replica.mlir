// refused: stablehlo.replica_id has no raising rule
func.func public @main(%x: tensor<8xf32>) -> tensor<ui32> {
  %0 = stablehlo.replica_id : tensor<ui32>
  return %0 : tensor<ui32>
}
