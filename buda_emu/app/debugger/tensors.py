"""Values of queues and ops at a moment: where they are found, and what they are as rows, columns, tiles and bits."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.expressions import OF_TWO, Tensor
from buda_emu.app.debugger.names import Names
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensor.tilize import untilize
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
class Found:
    """A tensor: `tiles` float32[t * R * C, 1024]; `slot`: of a queue; `bits`: as the machine holds them, in precision
    "device"."""

    of: Queue | Op
    slot: int | None
    df: str
    shape: tuple[int, int, int]  # t, rows and columns in tiles
    tiles: NDArray[np.float32]
    bits: Bits | None = None

    @property
    def name(self) -> str:
        """With the slot."""
        return self.of.name if self.slot is None else f"{self.of.name}[{self.slot}]"

    @property
    def tile_dim(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        return self.of.blocking.tile_dim

    def values(self) -> NDArray[Any]:
        """[t, rows, columns] in elements; uint32 for raw words."""
        runs = is_raw(self.df) or (isinstance(self.of, Queue) and self.of.layout == "flat")  # LAYOUT 2 Megarow
        whole = untilize(self.tiles.reshape(1, *self.shape, 32, 32), self.tile_dim, runs)[0]
        return whole.view(np.uint32) if is_raw(self.df) else whole

    def with_tile(self, place: tuple[int, int, int], values: NDArray[Any]) -> "Found":
        """Another value of one tile, one number or [rows, columns]. Raises HostError for a tile that is not there, or
        another size."""
        which = self.number(*place)
        (height, width) = self.tile_dim
        if values.ndim and values.size != height * width:
            raise HostError(f"a tile has {height} x {width} elements, not {values.shape}")
        kind = np.uint32 if is_raw(self.df) else np.float32
        tiles = self.tiles.copy()
        part = tiles.view(kind)[which].reshape(32, 32)[:height, :width]
        part[...] = values.reshape(height, width) if values.ndim else values
        return replace(self, tiles=tiles)

    def number(self, t: int, row: int, column: int) -> int:
        """Of a tile. Raises HostError for one that is not there."""
        depth, rows, columns = self.shape
        if not (0 <= t < depth and 0 <= row < rows and 0 <= column < columns):
            raise HostError(
                f"{self.name} has t {depth}, {rows} x {columns} tiles: no tile {t},{row},{column} (t,row,column from 0)"
            )
        return (t * rows + row) * columns + column

    def coded(self, number: int) -> Bits:
        """The bits of one tile: as they are held, else as its format has them."""
        if self.bits is not None:
            return self.bits[number]
        return Bits.encode(self.df, self.tiles[number])


def shape_of(item: Queue | Op, tiles: int) -> tuple[int, int, int]:
    """In tiles; of an op whose result has other dims than its blocking one row."""
    t, rows, columns = item.blocking.shape
    return (t, rows, columns) if t * rows * columns == tiles else (1, 1, tiles)


def newest(engine: "Steps", queue: str) -> int:
    """The slot that was written last. Raises HostError where none was."""
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


def of_queue(engine: "Steps", queue: Queue, slot: int | None) -> Found:
    """An entry, the newest without `slot`. Raises HostError for one that is not there or was never written."""
    view = engine.channels[queue.name].view
    if slot is None:
        slot = newest(engine, queue.name)
    if not 0 <= slot < queue.entries:
        raise HostError(f"{queue.name} has slots 0..{queue.entries - 1}, not {slot}")
    if not view.label(slot):
        raise HostError(f"{queue.name}[{slot}] was never written")
    bits = view.bits(slot, 1)[0].copy() if isinstance(view, BitView) else None
    return Found(
        of=queue, slot=slot, df=queue.df, shape=queue.blocking.shape, tiles=np.array(view.entry(slot)), bits=bits
    )


def of_op(engine: "Steps", op: Op) -> Found:
    """What it gave in the running input. Raises HostError where it has not run there."""
    found = held(engine, op)
    if found is None:
        raise HostError(f"op {op.name} has given nothing in this input yet")
    return found


def held(engine: "Steps", item: Queue | Op) -> Found | None:
    """What an op gave, or the epoch read of a queue, in the running input; None where it has not done so yet."""
    tiles: Tiles | None = engine.values.get(item.name)
    if tiles is None:
        return None
    df = item.df if isinstance(item, Queue) else item.out_df
    return Found(of=item, slot=None, df=df, shape=shape_of(item, tiles.shape[1]), tiles=tiles[0])


def here(engine: "Steps", names: Names, which: Tensor) -> Found:
    """At the moment at which the machine stands. Raises HostError."""
    if which.kind == "op":
        return of_op(engine, names.op(which.name))
    item = names.queue(which.name) if which.kind == "queue" else names.either(which.name)
    if isinstance(item, Queue):
        return of_queue(engine, item, which.slot)
    if which.slot is not None:
        raise HostError(f"{item.name} is an op: only queues and rams have slots")
    return of_op(engine, item)


_ROWS: Final = 8
"""Rows and columns of a tile that are printed without `all`."""
MOST_WORST: Final = 5


def figures(values: NDArray[Any]) -> dict[str, Any]:
    """Of all elements; of those that are finite the extremes and the mean."""
    with np.errstate(all="ignore"):
        plain = values.astype(np.float64) if values.dtype != np.float64 else values
        finite = plain[np.isfinite(plain)]
        return {
            "elements": int(values.size),
            "nan": int(np.isnan(plain).sum()),
            "inf": int(np.isinf(plain).sum()),
            "zeros": int((plain == 0).sum()),
            "min": float(finite.min()) if finite.size else None,
            "max": float(finite.max()) if finite.size else None,
            "mean": float(finite.mean()) if finite.size else None,
            "rms": float(np.sqrt(np.square(finite).mean())) if finite.size else None,
        }


def summary(found: Found) -> str:
    """One line."""
    told = figures(found.values())
    t, rows, columns = found.shape
    bad = "".join(f", {told[what]} {word}" for what, word in (("nan", "NaN"), ("inf", "infinite")) if told[what])
    return (
        f"{found.name}: {found.df}, t {t}, {rows} x {columns} tiles ({shape(found.values().shape)}), "
        f"min {number(told['min'])}, max {number(told['max'])}, mean {number(told['mean'])}, "
        f"rms {number(told['rms'])}, {told['zeros']} of {told['elements']} zero{bad}"
    )


def extremes(found: Found, *, worded: bool = True) -> tuple[str, str]:
    """What a picture has room for: the least and the greatest element, `worded` or bare, or how many are not finite."""
    told = figures(found.values())
    slot = "" if found.slot is None else f"[{found.slot}] "
    bad = [f"{told[what]} {word}" for what, word in (("nan", "NaN"), ("inf", "infinite")) if told[what]]
    if told["min"] is None or bad:
        return f"{slot}{bad[0]}", bad[1] if len(bad) > 1 else f"of {told['elements']}"
    least = number(told["min"])
    greatest = number(told["max"])
    return (f"{slot}min {least}", f"max {greatest}") if worded else (f"{slot}{least}", greatest)


def whole(found: Found) -> Answer:
    """Its figures, and the first rows of its first tile."""
    values = found.values()
    lines = [summary(found), *_grid(values[0, :_ROWS, :_ROWS])]
    return answer("tensor", lines, name=found.name, format=found.df, shape=list(values.shape), figures=figures(values))


def tile(found: Found, place: tuple[int, int, int], *, bits: bool, all_of_it: bool) -> Answer:
    """One tile, (t, row, column): the upper left corner, or `all_of_it`."""
    which = found.number(*place)
    height, width = found.tile_dim
    values = found.tiles[which].reshape(32, 32)[:height, :width]
    upto = slice(None) if all_of_it else slice(_ROWS)
    data: dict[str, Any] = {
        "name": found.name,
        "format": found.df,
        "tile": list(place),
        "shape": [height, width],
        "values": [[float(value) for value in row] for row in values],
        "figures": figures(values),
    }
    lines = [f"{found.name} tile {place[0]},{place[1]},{place[2]} of {found.df}"]
    if not bits:
        return answer("tile", [*lines, *_grid(values[upto, upto])], **data, words=None, exponents=None)
    coded = found.coded(which)
    digits = max(2, coded.datums.dtype.itemsize * 2)
    words = coded.datums.reshape(32, 32)[:height, :width]
    lines += ["  ".join(f"{int(word):0{digits}x}" for word in row) for row in words[upto, upto]]
    exponents = None
    if coded.exponents is not None:
        shared = coded.exponents.reshape(32, 2)[:height]
        exponents = shared.tolist()
        lines.append("shared exponents, for each row and 16 columns:")
        lines += ["  ".join(f"{int(one):02x}" for one in row) for row in shared[upto]]
    return answer("tile", lines, **data, words=[[int(word) for word in row] for row in words], exponents=exponents)


def _grid(values: NDArray[Any]) -> list[str]:
    cells = [[f"{value:.5g}" for value in row] for row in values.tolist()]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return ["  ".join(cell.rjust(width) for cell in row) for row in cells]


def difference(first: str, a: NDArray[Any], second: str, b: NDArray[Any]) -> Answer:
    """Two tensors of one size: figures, and where they are furthest apart. Raises HostError for other sizes."""
    if a.size != b.size:
        raise HostError(f"{first} has {a.size} elements ({shape(a.shape)}), {second} {b.size} ({shape(b.shape)})")
    b = b.reshape(a.shape)
    with np.errstate(all="ignore"):
        one = a.astype(np.float64)
        other = b.astype(np.float64)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        apart = np.where(same, 0.0, np.abs(one - other))
        apart = np.where(np.isnan(apart), np.inf, apart)
        differ = int((~same).sum())
        largest = float(apart.max()) if apart.size else 0.0
        correlation = OF_TWO["pcc"][1](a, b)
    order: list[int] = np.argsort(-apart, axis=None, kind="stable")[:MOST_WORST].tolist()
    worst = [tuple(map(int, np.unravel_index(index, a.shape))) for index in order]
    worst = [place for place in worst if not same[place]]
    told = f"{differ} of {a.size} elements differ" if differ else f"all {a.size} elements are equal"
    lines = [f"{first} and {second}: {told}, largest difference {number(largest)}, PCC {correlation:.6f}"]
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
