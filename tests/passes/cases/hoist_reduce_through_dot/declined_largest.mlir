// pipeline: hoist-reduce-through-dot{fewest=1}
// declined unprofitable: there is no layer with columns that are summed over rows
func.func public @main(%x: tensor<3x5x4xf32>, %w: tensor<4x5xf32>) -> (tensor<3x5x2xf32>, tensor<3x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<3x5x4xf32>, tensor<4x5xf32>) -> tensor<3x5x5xf32>
  %a = stablehlo.slice %y [0:3, 0:5, 0:2] : (tensor<3x5x5xf32>) -> tensor<3x5x2xf32>
  %b = stablehlo.slice %y [0:3, 0:5, 2:5] : (tensor<3x5x5xf32>) -> tensor<3x5x3xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<3x5x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %a, %t : tensor<3x5x2xf32>, tensor<3x3xf32>
}
