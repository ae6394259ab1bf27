module attributes {mhlo.num_partitions = 1 : i32} {  // Donations and a loop; a test fills in its body and what else is there.
func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32> {jax.buffer_donor = true},
    %unused: tensor<7xf32>) -> (tensor<4xf32> {jax.result_info = "r"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %q = BODY
    %s1 = stablehlo.add %s, %q : tensor<4xf32>
    stablehlo.return %k1, %s1 : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
OTHER
}
