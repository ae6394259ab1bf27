// As JAX's: zeros are made one and NaN are made one before they are compared.
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %pz = stablehlo.compare EQ, %p, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %p0 = stablehlo.select %pz, %zero, %p : tensor<i1>, tensor<f32>
    %pn = stablehlo.compare NE, %p, %p, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %p1 = stablehlo.select %pn, %nan, %p0 : tensor<i1>, tensor<f32>
    %qz = stablehlo.compare EQ, %q, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q0 = stablehlo.select %qz, %zero, %q : tensor<i1>, tensor<f32>
    %qn = stablehlo.compare NE, %q, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q1 = stablehlo.select %qn, %nan, %q0 : tensor<i1>, tensor<f32>
    %less = stablehlo.compare LT, %p1, %q1, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
