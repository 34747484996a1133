"""Tensors of queues and ops at a moment of a run: lookup, elements, tiles, bits and figures."""

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.expressions import PAIR_FUNCTIONS, Tensor
from buda_emu.app.debugger.names import Names
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensor.layout import untilize
from buda_emu.emulator.memory.bit_store import BitView
from buda_emu.emulator.memory.channel import Fifo
from buda_emu.emulator.runtime.machine.gate import Tiles
from buda_emu.netlist.model import Op, Queue
from buda_emu.report.terminal.text import number, shape, table
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.support.screen import lines_of

if TYPE_CHECKING:
    from buda_emu.app.debugger.machine.steps import Steps


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor at a moment: `tiles` are float32[t * R * C, 1024]; `slot` is that of a queue's entry; `bits` are those
    that the machine holds in precision "device"."""

    of: Queue | Op
    slot: int | None
    df: str
    shape: tuple[int, int, int]  # t, rows and columns in tiles
    tiles: NDArray[np.float32]
    bits: Bits | None = None

    def __repr__(self) -> str:
        values = self.values()
        sizes = "x".join(map(str, values.shape))
        return f"<TensorValue {self.name}: {self.df} {sizes}, {float(values.min()):.6g} to {float(values.max()):.6g}>"

    @property
    def name(self) -> str:
        """The name of the queue or op, with the slot."""
        return self.of.name if self.slot is None else f"{self.of.name}[{self.slot}]"

    @property
    def tile_dim(self) -> tuple[int, int]:
        """Rows and columns of a tile in elements."""
        return self.of.blocking.tile_dim

    def values(self) -> NDArray[Any]:
        """Return the elements [t, rows, columns]: float32, or uint32 for raw formats."""
        runs = is_raw(self.df) or (isinstance(self.of, Queue) and self.of.layout == "flat")  # LAYOUT 2 Megarow
        elements = untilize(self.tiles.reshape(1, *self.shape, 32, 32), self.tile_dim, runs)[0]
        if is_raw(self.df):
            return elements.view(np.uint32)
        return elements

    def with_tile(self, place: tuple[int, int, int], values: NDArray[Any]) -> "TensorValue":
        """Return a copy in which one tile (t, row, column) has other values, a number or [rows, columns]. Raises
        HostError for a tile that does not exist, and for another size."""
        number = self.number(*place)
        height, width = self.tile_dim
        if values.ndim:
            if values.size != height * width:
                raise HostError(f"a tile has {height} x {width} elements, not {values.shape}")
            values = values.reshape(height, width)
        kind = np.uint32 if is_raw(self.df) else np.float32
        tiles = self.tiles.copy()
        tiles.view(kind)[number].reshape(32, 32)[:height, :width] = values
        return replace(self, tiles=tiles)

    def number(self, t: int, row: int, column: int) -> int:
        """Return the index of a tile (t, row, column). Raises HostError for one that does not exist."""
        depth, rows, columns = self.shape
        if not (0 <= t < depth and 0 <= row < rows and 0 <= column < columns):
            raise HostError(
                f"{self.name} has t {depth}, {rows} x {columns} tiles: no tile {t},{row},{column} (t,row,column from 0)"
            )
        return (t * rows + row) * columns + column

    def encode_tile(self, number: int) -> Bits:
        """Return the bits of tile `number`: those that the machine holds, else the encoding of its values in the
        tensor's format."""
        if self.bits is not None:
            return self.bits[number]
        return Bits.encode(self.df, self.tiles[number])


def shape_of(source: Queue | Op, tiles: int) -> tuple[int, int, int]:
    """Return t, rows and columns in tiles of an entry or result of `tiles` tiles: those of the blocking, or (1, 1,
    tiles) for an op whose result has another size than its blocking."""
    t, rows, columns = source.blocking.shape
    return (t, rows, columns) if t * rows * columns == tiles else (1, 1, tiles)


def newest_slot(engine: "Steps", queue: str) -> int:
    """Return the slot of a queue or ram that was written last, by an op or the host. Raises HostError where none was
    written."""
    for chunk in engine.log.latest():
        slots = chunk.writes.get(queue)
        if chunk.stored and slots:
            return slots[-1]
    channel = engine.channels[queue]
    if isinstance(channel, Fifo):
        if channel.ring.occupancy:
            return channel.ring.slot(channel.ring.wr - 1)
        last = channel.ring.slot(channel.ring.wr - 1)
        if channel.view.label(last):
            return last
    elif channel.view.label(channel.rd):
        return channel.rd
    raise HostError(f"{queue} holds nothing yet")


def queue_entry(engine: "Steps", queue: Queue, slot: int | None) -> TensorValue:
    """Return an entry of a queue or ram, the newest where `slot` is None. Raises HostError for a slot that does not
    exist or was never written."""
    view = engine.channels[queue.name].view
    if slot is None:
        slot = newest_slot(engine, queue.name)
    if not 0 <= slot < queue.entries:
        raise HostError(f"{queue.name} has slots 0..{queue.entries - 1}, not {slot}")
    if not view.label(slot):
        raise HostError(f"{queue.name}[{slot}] was never written")
    bits = None
    if isinstance(view, BitView):
        bits = view.bits(slot, 1)[0].copy()
    tiles = np.array(view.entry(slot))
    return TensorValue(of=queue, slot=slot, df=queue.df, shape=queue.blocking.shape, tiles=tiles, bits=bits)


def op_result(engine: "Steps", op: Op) -> TensorValue:
    """Return the result of an op in the running input. Raises HostError where the op has not run in it."""
    tensor = running_value(engine, op)
    if tensor is None:
        raise HostError(f"op {op.name} has given nothing in this input yet")
    return tensor


def running_value(engine: "Steps", source: Queue | Op) -> TensorValue | None:
    """Return the result of an op, or the entry that the epoch has read from a queue, in the running input; None where
    that has not happened yet in it."""
    tiles: Tiles | None = engine.values.get(source.name)
    if tiles is None:
        return None
    df = source.df if isinstance(source, Queue) else source.out_df
    return TensorValue(of=source, slot=None, df=df, shape=shape_of(source, tiles.shape[1]), tiles=tiles[0])


def find_tensor(engine: "Steps", names: Names, reference: Tensor) -> TensorValue:
    """Return the tensor that a reference names at the moment at which the machine stands. Raises HostError."""
    source = names.resolve(reference.kind, reference.name)
    if isinstance(source, Queue):
        return queue_entry(engine, source, reference.slot)
    if reference.slot is not None and reference.kind != "op":
        raise HostError(f"{source.name} is an op: only queues and rams have slots")
    return op_result(engine, source)


_ROWS: Final = 8
"""Rows and columns of a tile that are printed without `all`."""
MAX_WORST: Final = 5  # elements that are listed: enough to see whether they have a place in common


def figures(values: NDArray[Any]) -> dict[str, Any]:
    """Return counts of NaN, infinities and zeros over all elements, and extremes, mean and root mean square of the
    finite ones (None if there are none), by name."""
    with np.errstate(all="ignore"):
        elements = values.astype(np.float64, copy=False)
        finite = elements[np.isfinite(elements)]
        statistics: dict[str, Any] = {
            "elements": int(values.size),
            "nan": int(np.isnan(elements).sum()),
            "inf": int(np.isinf(elements).sum()),
            "zeros": int((elements == 0).sum()),
            **dict.fromkeys(("min", "max", "mean", "rms")),
        }
        if finite.size:
            statistics["min"] = float(finite.min())
            statistics["max"] = float(finite.max())
            statistics["mean"] = float(finite.mean())
            statistics["rms"] = float(np.sqrt(np.square(finite).mean()))
        return statistics


def summary(tensor: TensorValue) -> str:
    """Return name, format, size and figures of a tensor in one line."""
    statistics = figures(tensor.values())
    t, rows, columns = tensor.shape
    non_finite = "".join(f", {count}" for count in _non_finite_counts(statistics))
    return (
        f"{tensor.name}: {tensor.df}, t {t}, {rows} x {columns} tiles ({shape(tensor.values().shape)}), "
        f"min {number(statistics['min'])}, max {number(statistics['max'])}, mean {number(statistics['mean'])}, "
        f"rms {number(statistics['rms'])}, {statistics['zeros']} of {statistics['elements']} zero{non_finite}"
    )


def _non_finite_counts(statistics: dict[str, Any]) -> list[str]:
    """Return the counts of NaN and of infinities that are not zero, as text."""
    return [f"{statistics[key]} {word}" for key, word in (("nan", "NaN"), ("inf", "infinite")) if statistics[key]]


def extremes(tensor: TensorValue, *, worded: bool = True) -> tuple[str, str]:
    """Return two short texts for a picture: the least and the greatest element (with `worded` after "min" and "max"),
    or how many elements are not finite if some are not."""
    statistics = figures(tensor.values())
    slot = "" if tensor.slot is None else f"[{tensor.slot}] "
    non_finite = _non_finite_counts(statistics)
    if statistics["min"] is None or non_finite:
        first, second = (*non_finite, f"of {statistics['elements']}")[:2]
        return f"{slot}{first}", second
    least = number(statistics["min"])
    greatest = number(statistics["max"])
    if worded:
        return f"{slot}min {least}", f"max {greatest}"
    return f"{slot}{least}", greatest


def tensor_answer(tensor: TensorValue) -> Answer:
    """Return the debugger's answer to a command that shows a tensor: its figures, and the upper left corner of its
    first slice."""
    values = tensor.values()
    lines = [summary(tensor), *_aligned_rows(values[0, :_ROWS, :_ROWS])]
    return answer(
        "tensor", lines, name=tensor.name, format=tensor.df, shape=list(values.shape), figures=figures(values)
    )


def tile_answer(tensor: TensorValue, place: tuple[int, int, int], *, bits: bool, all_of_it: bool) -> Answer:
    """Return the answer that shows one tile (t, row, column): its values, with `bits` its words and shared exponents
    instead; all of them, or the upper left corner. Raises HostError for a tile that does not exist."""
    tile_number = tensor.number(*place)
    height, width = tensor.tile_dim
    values = tensor.tiles[tile_number].reshape(32, 32)[:height, :width]
    upto = slice(None) if all_of_it else slice(_ROWS)
    data: dict[str, Any] = {
        "name": tensor.name,
        "format": tensor.df,
        "tile": list(place),
        "shape": [height, width],
        "values": [[float(value) for value in row] for row in values],
        "figures": figures(values),
        "words": None,
        "exponents": None,
    }
    lines = [f"{tensor.name} tile {place[0]},{place[1]},{place[2]} of {tensor.df}"]
    if not bits:
        return answer("tile", [*lines, *_aligned_rows(values[upto, upto])], **data)
    encoding = tensor.encode_tile(tile_number)
    words = encoding.datums.reshape(32, 32)[:height, :width]
    data["words"] = [[int(word) for word in row] for row in words]
    lines += _hexadecimal_rows(words[upto, upto], max(2, encoding.datums.dtype.itemsize * 2))
    if encoding.exponents is not None:
        exponents = encoding.exponents.reshape(32, 2)[:height]
        data["exponents"] = exponents.tolist()
        lines.append("shared exponents, for each row and 16 columns:")
        lines += _hexadecimal_rows(exponents[upto], 2)
    return answer("tile", lines, **data)


def _hexadecimal_rows(words: NDArray[Any], digits: int) -> list[str]:
    """Format a matrix of unsigned integers as lines of hexadecimal numbers."""
    return ["  ".join(f"{int(word):0{digits}x}" for word in row) for row in words]


def _aligned_rows(values: NDArray[Any]) -> list[str]:
    """Format a matrix as lines of aligned columns."""
    cells = [[f"{value:.5g}" for value in row] for row in values.tolist()]
    width = max((len(cell) for cell in chain.from_iterable(cells)), default=0)
    return ["  ".join(cell.rjust(width) for cell in row) for row in cells]


def difference(first: str, a: NDArray[Any], second: str, b: NDArray[Any]) -> Answer:
    """Return the answer that compares two tensors of the same size, called `first` and `second`: figures, and the
    elements that differ most. Raises HostError for different sizes."""
    if a.size != b.size:
        raise HostError(f"{first} has {a.size} elements ({shape(a.shape)}), {second} {b.size} ({shape(b.shape)})")
    b = b.reshape(a.shape)
    with np.errstate(all="ignore"):
        first_values = a.astype(np.float64)
        second_values = b.astype(np.float64)
        is_equal = (first_values == second_values) | (np.isnan(first_values) & np.isnan(second_values))
        apart = np.where(is_equal, 0.0, np.abs(first_values - second_values))
        apart = np.where(np.isnan(apart), np.inf, apart)
        differ = int((~is_equal).sum())
        largest = float(apart.max()) if apart.size else 0.0
        correlation = PAIR_FUNCTIONS["pcc"][1](a, b)
    order: list[int] = np.argsort(-apart, axis=None, kind="stable")[:MAX_WORST].tolist()
    worst = [tuple(map(int, np.unravel_index(index, a.shape))) for index in order]
    worst = [place for place in worst if not is_equal[place]]
    verdict = f"{differ} of {a.size} elements differ" if differ else f"all {a.size} elements are equal"
    lines = [f"{first} and {second}: {verdict}, largest difference {number(largest)}, PCC {correlation:.6f}"]
    if worst:
        rows = [(",".join(map(str, place)), f"{a[place]:.6g}", f"{b[place]:.6g}") for place in worst]
        lines += lines_of(table(("at", first, second), rows, right=(1, 2)))
    places = [{"at": list(place), "first": float(a[place]), "second": float(b[place])} for place in worst]
    return answer(
        "difference",
        lines,
        first=first,
        second=second,
        elements=int(a.size),
        differ=differ,
        largest=largest,
        pcc=correlation,
        worst=places,
    )
