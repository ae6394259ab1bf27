// refused: there is the type !theirs.handle (function_type of func.func) in @helper, line 5: theirs is no dialect of StableHLO
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @helper(%x: !theirs.handle<2>) -> !theirs.handle<2> {
  return %x : !theirs.handle<2>
}
