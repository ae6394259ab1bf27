// What stands for the body of donated.mlir and no pass can keep: each begins with its name and what the reason says.
// -----
// sharding_call: stablehlo.custom_call would lose its mhlo.sharding
stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
// -----
// sharding_attribute: stablehlo.sine would lose its mhlo.sharding
stablehlo.sine %y {mhlo.sharding = "{replicated}"} : tensor<4xf32>
// -----
// custom_call: custom call @write_it in the body cannot be raised
stablehlo.custom_call @write_it(%y) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
// -----
// outfeed: stablehlo.after_all in the body cannot be raised
stablehlo.sine %y : tensor<4xf32>
    %t = stablehlo.after_all : !stablehlo.token
    %u = "stablehlo.outfeed"(%q, %t) {outfeed_config = ""} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
// -----
// infeed: stablehlo.after_all in the body cannot be raised
stablehlo.sine %y : tensor<4xf32>
    %t = stablehlo.after_all : !stablehlo.token
    %u:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
// -----
// all_reduce: stablehlo.all_reduce in the body cannot be raised
"stablehlo.all_reduce"(%y) ({
^bb0(%l: tensor<f32>, %m: tensor<f32>):
%a = stablehlo.add %l, %m : tensor<f32>
stablehlo.return %a : tensor<f32>
}) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
// -----
// partition: stablehlo.partition_id in the body cannot be raised
stablehlo.sine %y : tensor<4xf32>
    %p = stablehlo.partition_id : tensor<ui32>
