// ----- chlo._asin_acos_kernel
module { func.func public @main(%a0: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>) { %0 = "chlo._asin_acos_kernel"(%a0) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> return %0 : tensor<4xcomplex<f32>> } }
// ----- chlo.acos
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.acos"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.acosh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.acosh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.asin
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.asin"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.asinh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.asinh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.atan
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.atan"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.atanh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.atanh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.bessel_i1e
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.bessel_i1e"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_add
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_add"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_and
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_and"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_atan2
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_atan2"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_compare
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "chlo.broadcast_compare"(%a0, %a1) {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- chlo.broadcast_complex
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xcomplex<f32>>) { %0 = "chlo.broadcast_complex"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>> return %0 : tensor<4xcomplex<f32>> } }
// ----- chlo.broadcast_divide
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_divide"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_maximum
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_maximum"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_minimum
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_minimum"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_multiply
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_multiply"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_next_after
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_next_after"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_or
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_or"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_polygamma
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_polygamma"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_power
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_power"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_remainder
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_remainder"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_select
module { func.func public @main(%a0: tensor<4xi1>, %a1: tensor<4xf32>, %a2: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_select"(%a0, %a1, %a2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_shift_left
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_shift_left"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_shift_right_arithmetic
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_shift_right_arithmetic"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_shift_right_logical
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_shift_right_logical"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_subtract
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_subtract"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.broadcast_xor
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.broadcast_xor"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.broadcast_zeta
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.broadcast_zeta"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.conj
module { func.func public @main(%a0: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>) { %0 = "chlo.conj"(%a0) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> return %0 : tensor<4xcomplex<f32>> } }
// ----- chlo.constant
module { func.func public @main() -> (tensor<2xf32>) { %0 = "chlo.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- chlo.constant_like
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.constant_like"(%a0) {value = 3.0 : f32} : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.cosh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.cosh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.digamma
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.digamma"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.erf
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.erf"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.erf_inv
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.erf_inv"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.erfc
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.erfc"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.is_inf
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "chlo.is_inf"(%a0) : (tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- chlo.is_neg_inf
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "chlo.is_neg_inf"(%a0) : (tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- chlo.is_pos_inf
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "chlo.is_pos_inf"(%a0) : (tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- chlo.lgamma
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.lgamma"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.mulhi
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "chlo.mulhi"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- chlo.next_after
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.next_after"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.polygamma
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.polygamma"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.ragged_dot
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<2x3x5xf32>, %a2: tensor<2xi64>) -> (tensor<4x5xf32>) { %0 = "chlo.ragged_dot"(%a0, %a1, %a2) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<2xi64>) -> tensor<4x5xf32> return %0 : tensor<4x5xf32> } }
// ----- chlo.scan
module { func.func public @main(%a0: tensor<4x2xf32>, %a1: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>) { %0:2 = "chlo.scan"(%a0, %a1) ({ ^bb0(%x: tensor<2xf32>, %c: tensor<2xf32>): %s = stablehlo.add %x, %c : tensor<2xf32> stablehlo.return %s, %s : tensor<2xf32>, tensor<2xf32> }) {dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>} : (tensor<4x2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>) return %0#0, %0#1 : tensor<4x2xf32>, tensor<2xf32> } }
// ----- chlo.sinh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.sinh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.square
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.square"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.tan
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.tan"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- chlo.top_k
module { func.func public @main(%a0: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) { %0:2 = "chlo.top_k"(%a0) {k = 2 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32> } }
// ----- chlo.zeta
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "chlo.zeta"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.abs
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.abs"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.add
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.add"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.after_all
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token %u = stablehlo.after_all %t, %t : !stablehlo.token return %a0 : tensor<f32> } }
// ----- stablehlo.all_gather
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.all_gather"(%a0) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.all_reduce
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.all_reduce"(%a0) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.all_to_all
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.all_to_all"(%a0) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.and
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.and"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.async_start
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.async_start"(%a0) ({ ^bb0(%x: tensor<2xf32>): %y = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> stablehlo.return %y : tensor<2xf32> }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>> %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32> return %1 : tensor<2xf32> } }
// ----- stablehlo.atan2
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.atan2"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.batch_norm_grad
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) { %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32> } }
// ----- stablehlo.batch_norm_inference
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<4x3xf32>) { %0 = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32> return %0 : tensor<4x3xf32> } }
// ----- stablehlo.batch_norm_training
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) { %0:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32> } }
// ----- stablehlo.bitcast_convert
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi32>) { %0 = "stablehlo.bitcast_convert"(%a0) : (tensor<4xf32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.broadcast
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<3x1x2xf32>) { %0 = "stablehlo.broadcast"(%a0) {broadcast_sizes = array<i64: 3, 1>} : (tensor<2xf32>) -> tensor<3x1x2xf32> return %0 : tensor<3x1x2xf32> } }
// ----- stablehlo.broadcast_in_dim
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<3x2xf32>) { %0 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32> return %0 : tensor<3x2xf32> } }
// ----- stablehlo.case
module { func.func public @main(%a0: tensor<i32>, %a1: tensor<f32>) -> (tensor<f32>) { %0 = "stablehlo.case"(%a0) ({ stablehlo.return %a1 : tensor<f32> }, { %n = stablehlo.negate %a1 : tensor<f32> stablehlo.return %n : tensor<f32> }) : (tensor<i32>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.cbrt
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.cbrt"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.ceil
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.ceil"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.cholesky
module { func.func public @main(%a0: tensor<3x3xf32>) -> (tensor<3x3xf32>) { %0 = "stablehlo.cholesky"(%a0) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32> return %0 : tensor<3x3xf32> } }
// ----- stablehlo.clamp
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>) -> (tensor<4xf32>) { %0 = stablehlo.clamp %a0, %a1, %a2 : tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.collective_broadcast
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.collective_broadcast"(%a0) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.collective_permute
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.collective_permute"(%a0) {source_target_pairs = dense<0> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.compare
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "stablehlo.compare"(%a0, %a1) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- stablehlo.complex
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xcomplex<f32>>) { %0 = "stablehlo.complex"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>> return %0 : tensor<4xcomplex<f32>> } }
// ----- stablehlo.composite
module { func.func private @impl(%x: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %x, %x : tensor<f32> return %0 : tensor<f32> }  func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %0 = stablehlo.composite "my.op" %a0 {decomposition = @impl} : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.concatenate
module { func.func public @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<4xf32>) { %0 = stablehlo.concatenate %a0, %a1, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.constant
module { func.func public @main() -> (tensor<2xf32>) { %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.convert
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi32>) { %0 = "stablehlo.convert"(%a0) : (tensor<4xf32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.convolution
module { func.func public @main(%a0: tensor<1x4x1xf32>, %a1: tensor<2x1x1xf32>) -> (tensor<1x3x1xf32>) { %0 = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x3x1xf32> return %0 : tensor<1x3x1xf32> } }
// ----- stablehlo.cosine
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.cosine"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.count_leading_zeros
module { func.func public @main(%a0: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.count_leading_zeros"(%a0) : (tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.create_token
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token return %a0 : tensor<f32> } }
// ----- stablehlo.cross-replica-sum
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.cross-replica-sum"(%a0) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.custom_call
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = stablehlo.custom_call @mine(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.divide
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.divide"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.dot
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<f32>) { %0 = "stablehlo.dot"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.dot_general
module { func.func public @main(%a0: tensor<2x3xf32>, %a1: tensor<3x2xf32>) -> (tensor<2x2xf32>) { %0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32> return %0 : tensor<2x2xf32> } }
// ----- stablehlo.dynamic_broadcast_in_dim
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<3x2xf32>) { %s = stablehlo.constant dense<[3, 2]> : tensor<2xi64> %0 = stablehlo.dynamic_broadcast_in_dim %a0, %s, dims = [1] : (tensor<2xf32>, tensor<2xi64>) -> tensor<3x2xf32> return %0 : tensor<3x2xf32> } }
// ----- stablehlo.dynamic_conv
module { func.func public @main(%a0: tensor<1x4x1xf32>, %a1: tensor<2x1x1xf32>) -> (tensor<1x3x1xf32>) { %p = stablehlo.constant dense<0> : tensor<1x2xi64> %0 = "stablehlo.dynamic_conv"(%a0, %a1, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>} : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x3x1xf32> return %0 : tensor<1x3x1xf32> } }
// ----- stablehlo.dynamic_gather
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) { %s = stablehlo.constant dense<[1, 3]> : tensor<2xi32> %0 = "stablehlo.dynamic_gather"(%a0, %a1, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x3xf32> return %0 : tensor<2x3xf32> } }
// ----- stablehlo.dynamic_iota
module { func.func public @main() -> (tensor<4xi32>) { %s = stablehlo.constant dense<[4]> : tensor<1xi64> %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.dynamic_pad
module { func.func public @main(%a0: tensor<2xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) { %l = stablehlo.constant dense<[1]> : tensor<1xi64> %0 = stablehlo.dynamic_pad %a0, %a1, %l, %l, %l : (tensor<2xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32> return %0 : tensor<5xf32> } }
// ----- stablehlo.dynamic_reshape
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<2x2xf32>) { %s = stablehlo.constant dense<[2, 2]> : tensor<2xi64> %0 = stablehlo.dynamic_reshape %a0, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32> return %0 : tensor<2x2xf32> } }
// ----- stablehlo.dynamic_slice
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<i32>) -> (tensor<2xf32>) { %0 = stablehlo.dynamic_slice %a0, %a1, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.dynamic_update_slice
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<2xf32>, %a2: tensor<i32>) -> (tensor<4xf32>) { %0 = stablehlo.dynamic_update_slice %a0, %a1, %a2 : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.einsum
module { func.func public @main(%a0: tensor<2x3xf32>, %a1: tensor<3x2xf32>) -> (tensor<2x2xf32>) { %0 = "stablehlo.einsum"(%a0, %a1) {einsum_config = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32> return %0 : tensor<2x2xf32> } }
// ----- stablehlo.exponential
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.exponential"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.exponential_minus_one
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.exponential_minus_one"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.fft
module { func.func public @main(%a0: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>) { %0 = stablehlo.fft %a0, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> return %0 : tensor<4xcomplex<f32>> } }
// ----- stablehlo.floor
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.floor"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.gather
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) { %0 = "stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>} : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32> return %0 : tensor<2x3xf32> } }
// ----- stablehlo.get_dimension_size
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<i32>) { %0 = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<4xf32>) -> tensor<i32> return %0 : tensor<i32> } }
// ----- stablehlo.get_tuple_element
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.custom_call @two(%a0) : (tensor<f32>) -> tuple<tensor<f32>, tensor<f32>> %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<f32>>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.if
module { func.func public @main(%a0: tensor<i1>, %a1: tensor<f32>) -> (tensor<f32>) { %0 = "stablehlo.if"(%a0) ({ stablehlo.return %a1 : tensor<f32> }, { %n = stablehlo.negate %a1 : tensor<f32> stablehlo.return %n : tensor<f32> }) : (tensor<i1>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.imag
module { func.func public @main(%a0: tensor<4xcomplex<f32>>) -> (tensor<4xf32>) { %0 = "stablehlo.imag"(%a0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.infeed
module { func.func public @main() -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token) return %0#0 : tensor<f32> } }
// ----- stablehlo.iota
module { func.func public @main() -> (tensor<2x3xi32>) { %0 = stablehlo.iota dim = 1 : tensor<2x3xi32> return %0 : tensor<2x3xi32> } }
// ----- stablehlo.is_finite
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xi1>) { %0 = "stablehlo.is_finite"(%a0) : (tensor<4xf32>) -> tensor<4xi1> return %0 : tensor<4xi1> } }
// ----- stablehlo.log
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.log"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.log_plus_one
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.log_plus_one"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.logistic
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.logistic"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.map
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.map"(%a0, %a1) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %m = stablehlo.multiply %x, %y : tensor<f32> %s = stablehlo.add %m, %x : tensor<f32> stablehlo.return %s : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.maximum
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.maximum"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.minimum
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.minimum"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.multiply
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.multiply"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.negate
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.negate"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.not
module { func.func public @main(%a0: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.not"(%a0) : (tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.optimization_barrier
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.optimization_barrier"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.or
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.or"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.outfeed
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token %0 = "stablehlo.outfeed"(%a0, %t) {outfeed_config = ""} : (tensor<f32>, !stablehlo.token) -> !stablehlo.token return %a0 : tensor<f32> } }
// ----- stablehlo.pad
module { func.func public @main(%a0: tensor<2xf32>, %a1: tensor<f32>) -> (tensor<4xf32>) { %0 = stablehlo.pad %a0, %a1, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.partition_id
module { func.func public @main() -> (tensor<ui32>) { %0 = stablehlo.partition_id : tensor<ui32> return %0 : tensor<ui32> } }
// ----- stablehlo.popcnt
module { func.func public @main(%a0: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.popcnt"(%a0) : (tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.power
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.power"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.real
module { func.func public @main(%a0: tensor<4xcomplex<f32>>) -> (tensor<4xf32>) { %0 = "stablehlo.real"(%a0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.real_dynamic_slice
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<2xf32>) { %l = stablehlo.constant dense<[1]> : tensor<1xi64> %h = stablehlo.constant dense<[3]> : tensor<1xi64> %0 = stablehlo.real_dynamic_slice %a0, %l, %h, %l : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.recv
module { func.func public @main() -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token %0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token) return %0#0 : tensor<f32> } }
// ----- stablehlo.reduce
module { func.func public @main(%a0: tensor<4x2xf32>, %a1: tensor<f32>) -> (tensor<2xf32>) { %0 = stablehlo.reduce(%a0 init: %a1) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.reduce_precision
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = stablehlo.reduce_precision %a0, format = e5m10 : tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.reduce_scatter
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.reduce_scatter"(%a0) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) {scatter_dimension = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.reduce_window
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<f32>) -> (tensor<3xf32>) { %0 = "stablehlo.reduce_window"(%a0, %a1) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) {window_dimensions = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32> return %0 : tensor<3xf32> } }
// ----- stablehlo.remainder
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.remainder"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.replica_id
module { func.func public @main() -> (tensor<ui32>) { %0 = stablehlo.replica_id : tensor<ui32> return %0 : tensor<ui32> } }
// ----- stablehlo.reshape
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<2x2xf32>) { %0 = stablehlo.reshape %a0 : (tensor<4xf32>) -> tensor<2x2xf32> return %0 : tensor<2x2xf32> } }
// ----- stablehlo.reverse
module { func.func public @main(%a0: tensor<2x3xf32>) -> (tensor<2x3xf32>) { %0 = stablehlo.reverse %a0, dims = [1] : tensor<2x3xf32> return %0 : tensor<2x3xf32> } }
// ----- stablehlo.rng
module { func.func public @main() -> (tensor<4xf32>) { %a = stablehlo.constant dense<0.0> : tensor<f32> %b = stablehlo.constant dense<1.0> : tensor<f32> %s = stablehlo.constant dense<[4]> : tensor<1xi64> %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.rng_bit_generator
module { func.func public @main(%a0: tensor<2xui64>) -> (tensor<4xui32>) { %0:2 = stablehlo.rng_bit_generator %a0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) return %0#1 : tensor<4xui32> } }
// ----- stablehlo.round_nearest_afz
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.round_nearest_afz"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.round_nearest_even
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.round_nearest_even"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.rsqrt
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.rsqrt"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.scatter
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.scatter"(%a0, %a1, %a2) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.select
module { func.func public @main(%a0: tensor<4xi1>, %a1: tensor<4xf32>, %a2: tensor<4xf32>) -> (tensor<4xf32>) { %0 = stablehlo.select %a0, %a1, %a2 : tensor<4xi1>, tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.select_and_scatter
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<2xf32>, %a2: tensor<f32>) -> (tensor<4xf32>) { %0 = "stablehlo.select_and_scatter"(%a0, %a1, %a2) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %s : tensor<i1> }, { ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.send
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.create_token : !stablehlo.token %0 = "stablehlo.send"(%a0, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : (tensor<f32>, !stablehlo.token) -> !stablehlo.token return %a0 : tensor<f32> } }
// ----- stablehlo.set_dimension_size
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<i32>) -> (tensor<4xf32>) { %0 = stablehlo.set_dimension_size %a0, %a1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.shift_left
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.shift_left"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.shift_right_arithmetic
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.shift_right_arithmetic"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.shift_right_logical
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.shift_right_logical"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
// ----- stablehlo.sign
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.sign"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.sine
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.sine"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.slice
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<2xf32>) { %0 = stablehlo.slice %a0 [1:3] : (tensor<4xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.sort
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.sort"(%a0) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %s : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.sqrt
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.sqrt"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.subtract
module { func.func public @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.subtract"(%a0, %a1)  : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.tan
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.tan"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.tanh
module { func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) { %0 = "stablehlo.tanh"(%a0) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }
// ----- stablehlo.torch_index_select
module { func.func public @main(%a0: tensor<4x3xf32>, %a1: tensor<2xi32>) -> (tensor<2x3xf32>) { %0 = "stablehlo.torch_index_select"(%a0, %a1) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32> return %0 : tensor<2x3xf32> } }
// ----- stablehlo.transpose
module { func.func public @main(%a0: tensor<2x3xf32>) -> (tensor<3x2xf32>) { %0 = stablehlo.transpose %a0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32> return %0 : tensor<3x2xf32> } }
// ----- stablehlo.triangular_solve
module { func.func public @main(%a0: tensor<3x3xf32>, %a1: tensor<3x2xf32>) -> (tensor<3x2xf32>) { %0 = "stablehlo.triangular_solve"(%a0, %a1) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32> return %0 : tensor<3x2xf32> } }
// ----- stablehlo.tuple
module { func.func public @main(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) { %t = stablehlo.tuple %a0, %a1 : tuple<tensor<f32>, tensor<f32>> %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<f32>>) -> tensor<f32> return %0 : tensor<f32> } }
// ----- stablehlo.unary_einsum
module { func.func public @main(%a0: tensor<2x3xf32>) -> (tensor<2xf32>) { %0 = "stablehlo.unary_einsum"(%a0) {einsum_config = "ij->i"} : (tensor<2x3xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.uniform_quantize
module { func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) { %q = stablehlo.uniform_quantize %a0 : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>> %0 = stablehlo.uniform_dequantize %q : (tensor<2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<2xf32> return %0 : tensor<2xf32> } }
// ----- stablehlo.while
module { func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) { %c0 = stablehlo.constant dense<0> : tensor<i32> %0:2 = stablehlo.while(%i = %c0, %x = %a0) : tensor<i32>, tensor<f32> cond { %n = stablehlo.constant dense<3> : tensor<i32> %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> } do { %1 = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %1 : tensor<i32> %y = stablehlo.multiply %x, %x : tensor<f32> stablehlo.return %j, %y : tensor<i32>, tensor<f32> } return %0#1 : tensor<f32> } }
// ----- stablehlo.xor
module { func.func public @main(%a0: tensor<4xi32>, %a1: tensor<4xi32>) -> (tensor<4xi32>) { %0 = "stablehlo.xor"(%a0, %a1)  : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> return %0 : tensor<4xi32> } }
