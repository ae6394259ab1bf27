// declined unprofitable: there is no layer of features put side by side
func.func public @main(%h: tensor<3x5x4xf32>, %m: tensor<3x2xf32>, %w: tensor<6x6xf32>) -> tensor<3x5x6xf32> {
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x5x2xf32>
  %x = stablehlo.concatenate %h, %b, dim = 2 : (tensor<3x5x4xf32>, tensor<3x5x2xf32>) -> tensor<3x5x6xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<3x5x6xf32>, tensor<6x6xf32>) -> tensor<3x5x6xf32>
  return %y : tensor<3x5x6xf32>
}
