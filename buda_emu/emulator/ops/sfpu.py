"""Functions of the vector unit as ops: exp, log, gelu and others, on the part of each tile that the vector mode
names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from buda_emu.arithmetic.kernels.functions import elementary, transcendental
from buda_emu.arithmetic.kernels.functions.elementary import keep_mask, keep_scale
from buda_emu.arithmetic.kernels.tiles.tile_memory import gather_tiles
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import arrange_tiles, blank, items, kernel_operand, require_operands, unblanked_dims
from buda_emu.emulator.ops.operands import blank_in_place
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.ops import SFPU_TYPES
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass

_BLOCK: Final = 256  # tiles that are gathered, then computed on: 1 MiB, so that they stay in the cache in between


class Region(NamedTuple):
    """The first `rows` rows and `columns` columns of a tile."""

    rows: int
    columns: int

    @property
    def runs(self) -> tuple[int, int]:
        """The region as (runs, length): runs of consecutive elements, whose starts are 32 apart."""
        if self.columns == 32:
            return (1, self.rows * 32)
        return (self.rows, self.columns)


_REGIONS: Final = {"rc": Region(32, 32), "r": Region(4, 32), "c": Region(32, 16)}
"""By vector mode: `r` is two passes over the upper faces, `c` the left faces (OPS 5.2)."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its reference on the region float32[..., rows, columns], and the last arguments of its kernel.

    The kernel takes (start, stop, tiles, runs, length, *arguments) and works in place. Where it `marks` the tiles with
    an element on which the reference aborts, an array for that comes before the arguments. `fails` computes the same
    for the reference's input; `failure` is the problem in words."""

    reference: Callable[[Tiles, Attributes], Tiles]
    kernel: Callable[..., Any]
    arguments: Callable[[Attributes, Region], tuple[Any, ...]] = lambda _attributes, _region_of_mode: ()
    fails: Callable[[Tiles], Any] | None = None
    failure: str = ""
    marks: bool = False


def _dropout(x: Tiles, attributes: Attributes) -> Tiles:
    """Return x times the scale where the generator's mask keeps the element, else 0. The mask is that of the region
    [rows, columns] that x has."""
    rows, columns = x.shape[-2:]
    keep = keep_mask(attributes.p, rows, columns).reshape(32, 32)[:rows, :columns]
    return keep * x * keep_scale(attributes.p, "p" in attributes.given)


def _dropout_arguments(attributes: Attributes, region: Region) -> tuple[Any, ...]:
    """Return the kernel's mask and scale for a region."""
    return keep_mask(attributes.p, *region), keep_scale(attributes.p, "p" in attributes.given)


def _power(x: Tiles, attributes: Attributes) -> Tiles:
    """Return x to the integer power `exp`, by repeated multiplication, each rounded."""
    result = np.ones_like(x)
    for _ in range(attributes.exp):
        result = x * result
    return result


def _lrelu(x: Tiles, attributes: Attributes) -> Tiles:
    """Return x where it is positive, else x * slope; NaN stays."""
    return np.where(x > 0, x, x * np.float32(attributes.slope))


def _reciprocal(x: Tiles, _attributes: Attributes) -> Tiles:
    """Return 1 / x, but 2^23 for zeros of either sign, and the default NaN for any NaN."""
    inverse = np.where(x == 0, np.float32(1 / 2.0**-23), np.float32(1) / x)
    return np.where(np.isnan(x), np.float32(np.nan), inverse)


def _elementary_function(
    reference: Callable[[Tiles, Attributes], Tiles],
    code: int,
    fails: Callable[[Tiles], Any] | None = None,
    failure: str = "",
) -> Function:
    """Return the record of a function that the kernel for elementary functions computes, selected by `code`. The kernel
    marks tiles with elements on which the reference aborts; `fails` and `failure` are those of `Function`."""

    def arguments(attributes: Attributes, _region_of_mode: Region) -> tuple[Any, ...]:
        """Return code, slope and exponent; the kernel reads those that its function has."""
        return code, np.float32(attributes.slope), attributes.exp

    return Function(
        reference=reference,
        kernel=elementary.elementary_tiles,
        arguments=arguments,
        fails=fails,
        failure=failure,
        marks=True,
    )


def _transcendental_function(kernel: Callable[..., Any], scalar: Callable[[Any], Any]) -> Function:
    """Return the record of a function whose reference calls, for each element, the same scalar function as the kernel,
    so that there is one implementation."""

    def reference(x: Tiles, _attributes: Attributes) -> Tiles:
        """Apply the scalar function to each element."""
        return np.fromiter((scalar(value) for value in x.reshape(-1)), np.float32, x.size).reshape(x.shape)

    return Function(reference, kernel)


_FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": _elementary_function(lambda x, _: np.abs(x), elementary.ABS),
    "square": _elementary_function(lambda x, _: x * x, elementary.SQUARE),
    "sqrt": _elementary_function(
        lambda x, _: np.where(x >= 0, np.sqrt(x), np.float32(np.nan)),
        elementary.SQRT,
        lambda x: ~(x >= 0),
        "of NaN or of a negative number",
    ),
    "reciprocal": _elementary_function(
        _reciprocal,
        elementary.RECIPROCAL,
        lambda x: ~(_reciprocal(x, Attributes()) > -np.inf),
        "of NaN, or of a number whose inverse is -inf",
    ),
    "power": _elementary_function(_power, elementary.POWER),
    "lrelu": _elementary_function(_lrelu, elementary.LRELU),
    "dropout": Function(_dropout, elementary.dropout_tiles, _dropout_arguments),
    **{name: _transcendental_function(*pair) for name, pair in transcendental.FUNCTIONS.items()},
}


def _region_of_mode(vector: str, op_name: str) -> Region:
    """Return the region of a vector mode. Raises ProgramError for an unknown word."""
    if vector not in _REGIONS:
        raise ProgramError(f"op {op_name}: vector mode {vector!r} is not r, c or rc")
    return _REGIONS[vector]


def region_of(call: PlannedOp) -> Region:
    """Return the region of an op that is not part of a fused op: the vector mode's, the whole tile for tiny input tiles
    (OPS 5.2)."""
    height, width = call.operands[0].tile_dim
    region = _region_of_mode(call.vector, call.name)
    if height <= 16 or width <= 16:
        return _REGIONS["rc"]
    return region


def on_region(call: PlannedOp, type: str, region: Region, tiles: Tiles, outside: Tiles | float) -> Tiles:
    """Return function `type` of float32[..., 32, 32] by its definition: its results on the region, `outside` elsewhere.
    Raises ProgramError where the reference aborts on an element of the region, unless the netlist takes undefined
    results as NaN."""
    function = _FUNCTIONS[type]
    part = tiles[..., : region.rows, : region.columns]
    result = np.array(np.broadcast_to(np.float32(outside), tiles.shape))
    with np.errstate(all="ignore"):
        if function.fails is not None:
            _require_no_failures(call, type, int(np.count_nonzero(function.fails(part))))
        result[..., : region.rows, : region.columns] = function.reference(part, call.attributes)
    return result


def run_in_place(call: PlannedOp, type: str, region: Region, tiles: Tiles, parallel: Parallel) -> None:
    """Run the kernel of function `type` on the region of each tile of float32[w, n, 1024], in place; other elements
    keep their values. Raises ProgramError as `on_region`."""
    function = _FUNCTIONS[type]
    arguments = function.arguments(call.attributes, region)
    if not function.marks:
        parallel(function.kernel, items(tiles), tiles, region.runs, *arguments)
        return
    failed = np.zeros(items(tiles), np.bool_)
    parallel(function.kernel, items(tiles), tiles, region.runs, failed, *arguments)
    _require_no_failures(call, type, int(failed.sum()))


def _require_no_failures(call: PlannedOp, type: str, failures: int) -> None:
    """Raise ProgramError if there are failures (elements or tiles on which the reference aborts), unless the netlist
    takes undefined results as NaN."""
    if failures and not call.undefined_is_nan:
        raise ProgramError(f"op {call.name}: {type} {_FUNCTIONS[type].failure}")


@implements(*SFPU_TYPES)
class Sfpu(Implementation):
    """An op out = f(in0) on the region, 0 elsewhere; the in-tile transpose flag turns the input first."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the shape of the input. Raises ProgramError for another number of inputs or an unknown vector mode."""
        require_operands(call, 1)
        region_of(call)
        return call.operands[0].map.shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the function on the region of each tile by its definition, 0 elsewhere, blanked outside the tile
        dims."""
        result = on_region(call, call.type, region_of(call), arrange_tiles(call, 0, inputs[0]), outside=0.0)
        return blank(result, unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the function by kernels, a few entries at a time so that they stay in the cache: gather, clear
        outside the region, apply, blank."""
        region = region_of(call)
        dims = unblanked_dims(call)
        source, index, pad_value, arrange = kernel_operand(call, 0, inputs)
        entries, tiles = out.shape[:2]
        at_once = max(1, _BLOCK // tiles)
        for begin in range(0, entries, at_once):
            part = out[begin : begin + at_once]
            if len(source) == 1:
                some = source
            else:
                some = source[begin : begin + at_once]
            parallel(gather_tiles, items(part), part, some, index, pad_value, arrange, FULL_TILE)
            if region != FULL_TILE:
                parallel(elementary.clear_outside, items(part), part, region.runs)
            run_in_place(call, call.type, region, part, parallel)
            blank_in_place(part, dims, parallel)
