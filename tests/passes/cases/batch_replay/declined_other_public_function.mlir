// declined unsupported: @helper also belongs to another public function of the module
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %0 = call @helper(%x, %start) : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func public @other(%x: tensor<3xf32>) -> tensor<3xf32> {
  %start = stablehlo.constant dense<2> : tensor<i32>
  %0 = call @helper(%x, %start) : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @helper(%x: tensor<3xf32>, %start: tensor<i32>) -> tensor<3xf32> {
  %trips = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = stablehlo.while(%k = %start, %s = %x, %y = %x) : tensor<i32>, tensor<3xf32>, tensor<3xf32> cond {
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %sum = stablehlo.add %s, %y : tensor<3xf32>
    stablehlo.return %next, %sum, %y : tensor<i32>, tensor<3xf32>, tensor<3xf32>
  }
  return %0#1 : tensor<3xf32>
}
