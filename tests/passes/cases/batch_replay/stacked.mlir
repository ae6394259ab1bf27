// applied: 3 trips batched at once (1 stacked values)
func.func public @main(%x: tensor<2xf32>) -> tensor<3x2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%k = %zero, %w = %x, %rows = %init) : tensor<i32>, tensor<2xf32>, tensor<3x2xf32> cond {
    %trips = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %k, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %term = stablehlo.multiply %w, %b : tensor<2xf32>
    %row = stablehlo.reshape %term : (tensor<2xf32>) -> tensor<1x2xf32>
    %put = stablehlo.dynamic_update_slice %rows, %row, %k, %none : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    stablehlo.return %next, %w, %put : tensor<i32>, tensor<2xf32>, tensor<3x2xf32>
  }
  return %0#2 : tensor<3x2xf32>
}
