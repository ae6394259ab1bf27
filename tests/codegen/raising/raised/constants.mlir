// A constant of every type, whole and splat.
func.func public @main() -> (tensor<2xi1>, tensor<2xi8>, tensor<2xui8>, tensor<2xi64>, tensor<2xf16>, tensor<2xf64>, tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<2xcomplex<f64>>, tensor<2xbf16>, tensor<bf16>, tensor<complex<f32>>, tensor<2xbf16>) {
  %0 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %1 = stablehlo.constant dense<-3> : tensor<2xi8>
  %2 = stablehlo.constant dense<[250, 1]> : tensor<2xui8>
  %3 = stablehlo.constant dense<7> : tensor<2xi64>
  %4 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf16>
  %5 = stablehlo.constant dense<[1.5, 0x7FF8000000000000]> : tensor<2xf64>
  %6 = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
  %7 = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
  %8 = stablehlo.constant dense<[(1.0, 0x7FF0000000000000), (-3.5e-2, 4.0)]> : tensor<2xcomplex<f64>>
  %9 = stablehlo.constant dense<[1.5, 2.0]> : tensor<2xbf16>
  %10 = stablehlo.constant dense<1.5> : tensor<bf16>
  %11 = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  %12 = stablehlo.constant dense<1.5> : tensor<2xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12 : tensor<2xi1>, tensor<2xi8>, tensor<2xui8>, tensor<2xi64>, tensor<2xf16>, tensor<2xf64>, tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<2xcomplex<f64>>, tensor<2xbf16>, tensor<bf16>, tensor<complex<f32>>, tensor<2xbf16>
}
