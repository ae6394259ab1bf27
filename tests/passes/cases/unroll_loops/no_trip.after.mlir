module {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = call @unroll_loops(%c, %arg0, %arg1) : (tensor<i32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<i32>, tensor<3xf32>)
    return %0#1, %0#0 : tensor<3xf32>, tensor<i32>
  }
  func.func private @unroll_loops(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<4x3xf32>) -> (tensor<i32>, tensor<3xf32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c, %arg1 : tensor<i32>, tensor<3xf32>
  }
}
