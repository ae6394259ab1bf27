// declined unsupported: @inner is called with different trip counts or constants
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = call @inner(%x, %three) : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>
  %1 = call @inner(%0, %four) : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
func.func private @inner(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%k = %zero, %w = %x, %s = %x, %m = %n) : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<i32> cond {
    %go = stablehlo.compare LT, %k, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %term = stablehlo.sine %w : tensor<3xf32>
    %sum = stablehlo.add %s, %term : tensor<3xf32>
    stablehlo.return %next, %w, %sum, %m : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>
  }
  return %0#2 : tensor<3xf32>
}
