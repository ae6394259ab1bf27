// applied: 1 invariant ops hoisted out of the loop
module {
  func.func public @main(%w: tensor<3xf32>) -> tensor<3xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.constant dense<0.0> : tensor<3xf32>
    %scale = stablehlo.constant dense<2.5> : tensor<3xf32>
    %r:4 = stablehlo.while(%k = %zero, %x = %w, %c = %scale, %s = %start) : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    cond {
      %trips = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %k, %trips, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      %t = stablehlo.tanh %x : tensor<3xf32>
      %scaled = stablehlo.multiply %s, %c : tensor<3xf32>
      %total = stablehlo.add %scaled, %t : tensor<3xf32>
      stablehlo.return %next, %x, %c, %total : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }
    return %r#3 : tensor<3xf32>
  }
}
