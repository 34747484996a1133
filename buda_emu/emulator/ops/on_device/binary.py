"""add, subtract, multiply, maximum and the quantization family (DEVICE_NUMERICS 2.4, 2.5, 3.3, 3.5, 5)."""

from collections.abc import Sequence

import numpy as np

from buda_emu.arithmetic.formats.bits import U32, single
from buda_emu.arithmetic.tensix.functions.table import Bound, bind
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import IN_DST
from buda_emu.emulator.ops.on_device.base import DeviceCall, DeviceOp, DstTiles, Job, Maker, on_device
from buda_emu.emulator.ops.on_device.operands import OperandSource
from buda_emu.emulator.ops.on_device.units import Units
from buda_emu.support.errors import UnsupportedError


@on_device("add", "subtract", "multiply", "maximum", "quantization", "requantization", "dequantization")
class Binary(DeviceOp):
    """A binary op: input 0 in SrcA with input 1 in SrcB on the matrix unit, or both copied to Dst for the vector
    unit."""

    def maker(self, job: Job) -> Maker:
        """Return the function that makes tiles of the op's result. Raises UnsupportedError."""
        return binary_maker(job.call, job.sources, job.previous, job.registers.dst, job.units)


def binary_maker(
    call: DeviceCall, sources: Sequence[OperandSource], previous: OperandSource | None, mode: DstMode, units: Units
) -> Maker:
    """Return the function that makes tiles of a binary op, stand-alone or in a fused op. `sources`: its two operands;
    `previous`: the running value of a gradient op; `mode`: that of Dst. Raises UnsupportedError."""
    a, b = sources
    type = call.op.type
    integer = mode == "int32"
    vector = _vector_function(call, integer)
    if vector is not None:
        if previous is not None:
            raise UnsupportedError(f"op {call.op.name}: gradient op of {type} in the vector unit")
        bound = vector
        result: DstMode = bound.modes(mode)[1]

        def by_vector_unit(start: int, stop: int) -> DstTiles:
            """Compute tiles start..stop from both images in Dst."""
            images = a.image(units, start, stop), b.image(units, start, stop)
            return DstTiles(units.function(bound, mode, *images), result)

        return by_vector_unit
    for source in (a, b):
        if source.register in IN_DST:
            raise UnsupportedError(f"op {call.op.name}: {type} of {source.register}, which is not in a Src register")

    def by_matrix_unit(start: int, stop: int) -> DstTiles:
        """Compute tiles start..stop from both Src registers, accumulated onto the running value of a gradient op."""
        left = a.words(units, start, stop)
        right = b.words(units, start, stop)
        if previous is None:
            running: U32 | None = None
        else:
            running = previous.image(units, start, stop)
        if type == "multiply":
            return DstTiles(units.multiply(left, right, a.register, mode, call.fidelity, running), mode)
        return DstTiles(units.add(left, right, a.register, mode, type == "subtract", running), mode)

    return by_matrix_unit


def _vector_function(call: DeviceCall, integer: bool) -> Bound | None:
    """Return the function by which the vector unit computes the op, None for ops of the matrix unit. `integer`: Dst
    holds integers."""
    zero_point = np.float32(call.op.attributes.zero_point)
    match call.op.type:
        case "maximum":
            return bind("integer_maximum" if integer else "maximum", call.core)
        case "add" if integer:
            return bind("integer_add", call.core)
        case "quantization" | "requantization":
            return bind(call.op.type, call.core, zero_point=single(float(zero_point)))
        case "dequantization":
            return bind(call.op.type, call.core, minus_zero_point=single(float(-zero_point)))
        case _:
            return None
