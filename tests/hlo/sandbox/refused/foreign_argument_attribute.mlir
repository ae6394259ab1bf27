// refused: there is the attribute #theirs.mark (arg_attrs of func.func) in @main, line 2: theirs is no dialect of StableHLO
func.func public @main(%x: tensor<4xf32> {mhlo.kept = #theirs.mark<3>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
