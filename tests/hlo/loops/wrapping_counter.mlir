// The step stands on the left of the counter, whose second value, 130, is -126 in eight bits.
func.func public @main(%x: tensor<f32>) -> tensor<i8> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %start = stablehlo.constant dense<120> : tensor<i8>
  %step = stablehlo.constant dense<10> : tensor<i8>
  %0 = stablehlo.while(%k = %start) : tensor<i8>
  cond {
    %go = stablehlo.compare GT, %k, %zero : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %step, %k : tensor<i8>
    stablehlo.return %next : tensor<i8>
  }
  return %0 : tensor<i8>
}
