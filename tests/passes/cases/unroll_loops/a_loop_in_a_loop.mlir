// applied: a loop became its 2 trips
// applied: a loop became its 2 trips
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %go = stablehlo.compare LT, %k, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %1:2 = stablehlo.while(%j = %first, %t = %s) : tensor<i32>, tensor<3xf32> cond {
      %inner = stablehlo.constant dense<2> : tensor<i32>
      %more = stablehlo.compare LT, %j, %inner : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %after = stablehlo.add %j, %one : tensor<i32>
      %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %sin = stablehlo.sine %t : tensor<3xf32>
      %u = stablehlo.add %sin, %b : tensor<3xf32>
      stablehlo.return %after, %u : tensor<i32>, tensor<3xf32>
    }
    stablehlo.return %next, %1#1 : tensor<i32>, tensor<3xf32>
  }
  return %0#1 : tensor<3xf32>
}
