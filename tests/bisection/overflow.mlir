// XLA's algebraic simplifier multiplies the two constants first: 1e30 * 1e30 is infinite in float32.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %large = stablehlo.constant dense<1.0e30> : tensor<4xf32>
  %far = stablehlo.constant dense<-75.0> : tensor<4xf32>
  %0 = stablehlo.add %x, %far : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  %2 = stablehlo.multiply %1, %large : tensor<4xf32>
  %3 = stablehlo.multiply %2, %large : tensor<4xf32>
  return %3 : tensor<4xf32>
}
