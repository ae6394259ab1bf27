// A product with zero of what MADE makes: nothing reads it once the product is a zero (test_matcher.py).
func.func private @seen(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.custom_call @callback(%x) {has_side_effect = true} : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = stablehlo.exponential %x : tensor<3xf32>
  %y = MADE
  %zero = stablehlo.constant dense<0.0> : tensor<3xf32>
  %z = stablehlo.multiply %y, %zero : tensor<3xf32>
  return %z : tensor<3xf32>
}
