// A shard_map over two devices, which is a program of several devices and is not studied.
sdy.mesh @mesh = <["walkers"=2]>
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"walkers"}]>] out_shardings=[<@mesh, [{"walkers"}]>]
      manual_axes={"walkers"} (%part: tensor<2xf32>) {
    %1 = stablehlo.sine %part : tensor<2xf32>
    sdy.return %1 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
