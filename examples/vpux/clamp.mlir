// Load, clamp, store: one kernel between two transfers, ordered by two barriers.
// Split 0 is right; in split 1 the store does not wait for the kernel.
#NHWC = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @network {
VPURT.SW.Runtime entryPoint : @VPU.SW::@runtime stack_configuration : [4096, 4096, 4096, 4096]
module @VPU.SW {
  func.func private @builtin_clamp(memref<*xf16>, memref<*xf16>, f64, f64)
      attributes {VPU.kernel_code = "activation_clamp.cpp", VPU.kernel_entry = "activation_clamp"}
  func.func private @runtime() attributes {VPU.kernel_code = "nnActEntry"}
}
func.func @main(%arg0: memref<1x8x4x4xf16, #NHWC, @DDR>, %arg1: memref<1x8x4x4xf16, #NHWC, @DDR>)
    -> memref<1x8x4x4xf16, #NHWC, @DDR> {
  %in = VPURT.DeclareBuffer <CMX_NN> [0] <0> -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  %out = VPURT.DeclareBuffer <CMX_NN> [0] <256> -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  %b0 = VPURT.ConfigureBarrier<0> -> !VPURT.Barrier
  %b1 = VPURT.ConfigureBarrier<1> -> !VPURT.Barrier
  VPURT.Task updates(%b0 : !VPURT.Barrier) {
    VPUIP.NNDMA {port = 0 : i64} inputs(%arg0 : memref<1x8x4x4xf16, #NHWC, @DDR>) outputs(%in : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  }
  VPURT.Task waits(%b0 : !VPURT.Barrier) updates(%b1 : !VPURT.Barrier) {
    VPUIP.SW.Kernel @VPU.SW::@builtin_clamp inputs(%in as %x: memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) outputs(%out as %y: memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) on tile 0 -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]> {
      VPUIP.SW.Kernel.run {attrs = [-1.0, 2.5]}(%x, %y) : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>, memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
    }
  }
  VPURT.Task waits(%b1 : !VPURT.Barrier) {
    VPUIP.NNDMA {port = 1 : i64} inputs(%out : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) outputs(%arg1 : memref<1x8x4x4xf16, #NHWC, @DDR>) -> memref<1x8x4x4xf16, #NHWC, @DDR>
  }
  return %arg1 : memref<1x8x4x4xf16, #NHWC, @DDR>
}
}

// -----

#NHWC = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @network {
VPURT.SW.Runtime entryPoint : @VPU.SW::@runtime stack_configuration : [4096, 4096, 4096, 4096]
module @VPU.SW {
  func.func private @builtin_clamp(memref<*xf16>, memref<*xf16>, f64, f64)
      attributes {VPU.kernel_code = "activation_clamp.cpp", VPU.kernel_entry = "activation_clamp"}
  func.func private @runtime() attributes {VPU.kernel_code = "nnActEntry"}
}
func.func @main(%arg0: memref<1x8x4x4xf16, #NHWC, @DDR>, %arg1: memref<1x8x4x4xf16, #NHWC, @DDR>)
    -> memref<1x8x4x4xf16, #NHWC, @DDR> {
  %in = VPURT.DeclareBuffer <CMX_NN> [0] <0> -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  %out = VPURT.DeclareBuffer <CMX_NN> [0] <256> -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  %b0 = VPURT.ConfigureBarrier<0> -> !VPURT.Barrier
  %b1 = VPURT.ConfigureBarrier<1> -> !VPURT.Barrier
  VPURT.Task updates(%b0 : !VPURT.Barrier) {
    VPUIP.NNDMA {port = 0 : i64} inputs(%arg0 : memref<1x8x4x4xf16, #NHWC, @DDR>) outputs(%in : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
  }
  VPURT.Task waits(%b0 : !VPURT.Barrier) updates(%b1 : !VPURT.Barrier) {
    VPUIP.SW.Kernel @VPU.SW::@builtin_clamp inputs(%in as %x: memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) outputs(%out as %y: memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) on tile 0 -> memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]> {
      VPUIP.SW.Kernel.run {attrs = [-1.0, 2.5]}(%x, %y) : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>, memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>
    }
  }
  VPURT.Task {
    VPUIP.NNDMA {port = 1 : i64} inputs(%out : memref<1x8x4x4xf16, #NHWC, [@CMX_NN, 0]>) outputs(%arg1 : memref<1x8x4x4xf16, #NHWC, @DDR>) -> memref<1x8x4x4xf16, #NHWC, @DDR>
  }
  return %arg1 : memref<1x8x4x4xf16, #NHWC, @DDR>
}
}
