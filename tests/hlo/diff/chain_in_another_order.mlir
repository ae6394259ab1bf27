// What chain.mlir computes: in another order, under other names, with a call and an op that nothing reads.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %unread = stablehlo.negate %x : tensor<4xf32>
  %c = stablehlo.cosine %x : tensor<4xf32>
  %s = call @sine(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %a = stablehlo.add %s, %c : tensor<4xf32>
  %t = stablehlo.tanh %a : tensor<4xf32>
  return %t : tensor<4xf32>
}
func.func private @sine(%y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}
