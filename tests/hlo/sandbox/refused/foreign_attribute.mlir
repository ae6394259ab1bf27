// refused: there is the attribute #theirs.mark (kept of stablehlo.sine) in @main, line 3: theirs is no dialect of StableHLO
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.sine %x {kept = [1 : i32, #theirs.mark<"a">]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
