"""The functions of the vector unit as ops (DEVICE_NUMERICS 3)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.kernels.functions.elementary import keep_scale
from buda_emu.arithmetic.kernels.tensix.functions.vector_unit import random_words as random_words_kernel
from buda_emu.arithmetic.tensix.functions.elementary import dropout_threshold, seed_registers
from buda_emu.arithmetic.tensix.functions.table import Bound, bf16_cut, bind
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode, touched_mask
from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.emulator.ops.base import PlannedOp
from buda_emu.emulator.ops.moves import core_blocks, ublock_tiles
from buda_emu.emulator.ops.on_device.base import DeviceOp, DstTiles, Job, Maker, on_device, vector_mode
from buda_emu.emulator.ops.on_device.operands import OperandSource
from buda_emu.emulator.ops.on_device.units import Units
from buda_emu.spec.blocking import TILE_ELEMENTS, Shape
from buda_emu.spec.ops import SFPU_TYPES
from buda_emu.support.errors import UnsupportedError


def bound_function(call: PlannedOp, core: Core, approximate: bool) -> Bound:
    """Return the vector unit's function of an sfpu op, with the parameters that its attributes give (DEVICE_NUMERICS
    3.3). `approximate`: the kernel's approximate mode."""
    attributes = call.attributes
    match call.type:
        case "power":
            return bind("power", core, exponent=attributes.exp)
        case "lrelu":
            return bind("lrelu", core, slope=bf16_cut(attributes.slope))
        case "dropout":
            scale = bf16_cut(float(keep_scale(attributes.p, "p" in attributes.given)))
            return bind("dropout", core, scale=scale, below=dropout_threshold(attributes.p))
        case name:
            return bind(name, core, approximate=approximate)


@on_device(*SFPU_TYPES)
class Sfpu(DeviceOp):
    """A function of the vector unit: copied to Dst, computed on the part that the vector mode names, packed. The other
    elements are the copied input."""

    def maker(self, job: Job) -> Maker:
        """Return the function that makes tiles of the op's result. Raises UnsupportedError for a gradient op or
        integers."""
        job.no_gradient()
        op = job.call.op
        approximate = op.attributes.approximate_mode
        shape = op.operands[0].map.shape
        return sfpu_maker(op, job.call.core, job.sources[0], job.registers.dst, approximate, shape, job.units)


def sfpu_maker(
    op: PlannedOp, core: Core, source: OperandSource, mode: DstMode, approximate: bool, shape: Shape, units: Units
) -> Maker:
    """Return the function that makes tiles of an sfpu op on `source`, stand-alone or in a fused op. `shape`: that of an
    entry of the result; `approximate`: the kernel's approximate mode. Raises UnsupportedError for integers."""
    vector = vector_mode(op)
    if mode == "int32":
        raise UnsupportedError(f"op {op.name}: {op.type} of integers is not known on the device")
    bound = bound_function(op, core, approximate)
    if op.type != "dropout":
        return lambda start, stop: DstTiles(
            units.function(bound, mode, source.image(units, start, stop), vector=vector), mode
        )
    words, number = _random_tiles(op.attributes.seed, vector, shape, op.blocking.grid_size, *_ublock_order(op))

    def drop_out(start: int, stop: int) -> DstTiles:
        """Compute tiles start..stop from the copied input and the random words of their places."""
        random: U32 = words[number[np.arange(start, stop) % len(number)]]
        return DstTiles(units.function(bound, mode, source.image(units, start, stop), random, vector=vector), mode)

    return drop_out


def _ublock_order(op: PlannedOp) -> tuple[tuple[int, int], str]:
    """Return ublock dims and ublock order, by which a core orders its tiles."""
    return op.blocking.ublock, op.blocking.ublock_order


@lru_cache(maxsize=16)
def _random_tiles(
    seed: int, vector: VectorMode, shape: Shape, grid: tuple[int, int], ublock: tuple[int, int], order: str
) -> tuple[U32, NDArray[np.int64]]:
    """Return random words uint32[tiles of a core, 1024], and for each tile of an entry the number of its words.

    Each core goes through its tiles in the order of its buffer (OPS 2). Here the generators are seeded for every input,
    on every core as at (0, 0) (3.3, 6.3): the words of one input do not depend on those before it."""
    t, rows, cols = shape
    if rows % grid[0] or cols % grid[1] or rows // grid[0] % ublock[0] or cols // grid[1] % ublock[1]:
        grid = (1, 1)
        ublock = (1, 1)  # a shape of its own, as of a fused op's buffer
    cores = core_blocks(shape, grid)
    places = cores.reshape(len(cores) * t, -1)[:, ublock_tiles(cores.shape[2], cores.shape[3], ublock, order)]
    places = places.reshape(len(cores), -1)
    number = np.empty(t * rows * cols, np.int64)
    number[places] = np.arange(places.shape[1])
    words = np.zeros((places.shape[1], 32, 32), np.uint32)
    random_words_kernel(seed_registers(seed), words, touched_mask(vector))
    words = words.reshape(-1, TILE_ELEMENTS)
    words.flags.writeable = False
    return words, number
