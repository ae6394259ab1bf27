// refused: there is the attribute #theirs.sparse (function_type of func.func) in @main, line 2: theirs is no dialect of StableHLO
func.func public @main(%x: tensor<4xf32, #theirs.sparse<1>>) -> tensor<4xf32, #theirs.sparse<1>> {
  return %x : tensor<4xf32, #theirs.sparse<1>>
}
