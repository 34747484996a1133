"""Lower bounds of cycles: the ideal rates of FPU, unpackers and packers (PERF 1.3)."""

from buda_emu.errors import UnsupportedError
from buda_emu.spec.devices import device
from buda_emu.spec.formats import tile_bytes
from buda_emu.timing.op.call import OpCall
from buda_emu.timing.op.forms import fpu_cycles

ELTWISE_CYCLES = 8
"""FPU cycles of a tile: element-wise operation, copy to Dst, spill and reload of a partial sum (PERF 1.3)."""
UNTILIZE_PACK_BYTES = 16
"""Bytes for each cycle where rows leave through a single packer interface."""


def ideal_cycles(call: OpCall) -> float:
    """Cycles for one input that no implementation can undercut: the slowest of FPU, unpack and pack at full rate."""
    return max(ideal_threads(call))


def ideal_threads(call: OpCall) -> tuple[float, float, float]:
    """Cycles that unpackers, FPU and packers need for one input at full rate."""
    results = call.tiles
    if call.kind == "reduce_r":
        results = call.t * call.mblock_n * call.ublock_ct
    elif call.kind == "reduce_c":
        results = call.t * call.mblock_m * call.ublock_rt
    rate = UNTILIZE_PACK_BYTES if call.untilize else device(call.arch).pack_bytes_per_clock
    return _ideal_unpack(call), ideal_math(call), results * tile_fraction(call) * payload(call.result_df) / rate


def tile_fraction(call: OpCall) -> float:
    """Elements of a tile, as a share of the full 32x32."""
    return call.tile_rows * call.tile_cols / 1024


def payload(df: str) -> int:
    """Bytes of a full tile's datums and exponents."""
    return tile_bytes(df, 32, 32, 32, False)


def ideal_math(call: OpCall) -> float:
    """FPU cycles at full rate. The vector unit's work comes on top and is not counted here."""
    fraction = tile_fraction(call)
    if call.sparse:
        return call.nz_tiles * call.mblock_n * call.ublock_ct * fpu_cycles(call) * fraction
    if call.op_type == "matmul":
        return call.products * fpu_cycles(call) * fraction
    phases = call.phases if call.op_type == "multiply" else 1
    return call.tiles * max(call.z if call.kind == "reduce_z" else 1, 1) * ELTWISE_CYCLES / 2 * phases * fraction


def _ideal_unpack(call: OpCall) -> float:
    if call.sparse:
        return 0.0  # encoded operand and reuse of the dense one: no simple lower bound
    if call.op_type == "matmul":
        tiles = call.ublocks * call.m_k * call.u_kt * call.ublock_rt  # the left operand, once for each row of an ublock
    else:
        tiles = call.tiles * max(call.z if call.kind == "reduce_z" else 1, 1)
    return tiles * tile_fraction(call) * payload(call.data_df) / device(call.arch).unpack_bytes_per_clock


def math_active_cycles(call: OpCall) -> int:
    """Cycles in which the FPU works on one input of a dense matmul, as the chip's own counter gives them.

    FPU cycles of all tile products, and 8 for each partial sum spilled and reloaded. With l1_acc partial sums stay in
    L1, and only a block format reloads them once, to round the result. Int32 results accumulate in Dst.
    (Silicon sweeps of wormhole_b0.) Raises UnsupportedError for other ops.
    """
    if call.op_type != "matmul" or call.sparse:
        raise UnsupportedError(f"math-active cycles are known of dense matmul only, not of {call.kind}")
    spills = call.m_k - 1
    if call.l1_acc:
        spills = min(spills, 1) if call.result_df.startswith("Bfp") else 0
    if call.result_df == "Int32":
        spills = 0
    return call.products * fpu_cycles(call) + ELTWISE_CYCLES * spills * call.tiles
