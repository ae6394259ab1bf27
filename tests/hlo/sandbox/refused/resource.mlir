// refused: there is a stablehlo.constant whose elements are in a resource of the file in @main, line 3
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}
