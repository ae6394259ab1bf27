// declined unprofitable: nothing that a trip computes is invariant
module {
  func.func public @main(%w: tensor<3xui32>) -> tensor<3xui32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %bits = stablehlo.constant dense<32> : tensor<3xui32>
    %number = stablehlo.constant dense<5> : tensor<ui32>
    %rows = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %r:3 = stablehlo.while(%k = %zero, %c = %bits, %s = %w) : tensor<i32>, tensor<3xui32>, tensor<3xui32>
    cond {
      %trips = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %k, %trips, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      %t = stablehlo.shift_right_logical %c, %rows : tensor<3xui32>
      %total = stablehlo.add %s, %t : tensor<3xui32>
      stablehlo.return %next, %c, %total : tensor<i32>, tensor<3xui32>, tensor<3xui32>
    }
    return %r#2 : tensor<3xui32>
  }
}
