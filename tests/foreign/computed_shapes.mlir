// Shapes that only look dynamic: all are computed of constants and of sizes that are known.
func.func public @main(%y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<2xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>) {
  %four = stablehlo.constant dense<4> : tensor<1xi64>
  %two = stablehlo.constant dense<2> : tensor<2xi64>
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.dynamic_broadcast_in_dim %c, %four, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %1 = stablehlo.dynamic_reshape %y, %two : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %end = stablehlo.constant dense<3> : tensor<1xi64>
  %3 = stablehlo.real_dynamic_slice %y, %one, %end, %one
    : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %4 = stablehlo.dynamic_pad %y, %c, %one, %one, %zero
    : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
  %5 = stablehlo.dynamic_iota %four, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>
  %n = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
  %any = stablehlo.dynamic_broadcast_in_dim %c, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %sine = stablehlo.sine %any : tensor<?xf32>
  %6 = stablehlo.dynamic_reshape %sine, %four : (tensor<?xf32>, tensor<1xi64>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5, %6
    : tensor<4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<2xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>
}
