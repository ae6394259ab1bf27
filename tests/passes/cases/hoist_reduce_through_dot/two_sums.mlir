// pipeline: hoist-reduce-through-dot{fewest=2}
// applied: 1 layers sum before they contract
func.func public @main(%x: tensor<3x5x4xf32>, %w: tensor<7x4xf32>) -> (tensor<3x5x2xf32>, tensor<3x1x3xf32>, tensor<3x2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [1] : (tensor<3x5x4xf32>, tensor<7x4xf32>) -> tensor<3x5x7xf32>
  %a = stablehlo.slice %y [0:3, 0:5, 0:2] : (tensor<3x5x7xf32>) -> tensor<3x5x2xf32>
  %b = stablehlo.slice %y [0:3, 0:5, 2:5] : (tensor<3x5x7xf32>) -> tensor<3x5x3xf32>
  %c = stablehlo.slice %y [0:3, 0:5, 5:7] : (tensor<3x5x7xf32>) -> tensor<3x5x2xf32>
  %wide = stablehlo.reshape %b : (tensor<3x5x3xf32>) -> tensor<3x5x1x1x3xf32>
  %t = stablehlo.reduce(%wide init: %zero) applies stablehlo.add across dimensions = [1, 3] : (tensor<3x5x1x1x3xf32>, tensor<f32>) -> tensor<3x1x3xf32>
  %u = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  return %a, %t, %u : tensor<3x5x2xf32>, tensor<3x1x3xf32>, tensor<3x2xf32>
}
