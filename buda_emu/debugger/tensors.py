"""Values of queues and ops at a moment: where they are found, and what they are as rows, columns, tiles and bits."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.debugger.expressions.tree import Tensor
from buda_emu.debugger.names import Names
from buda_emu.device.bit_store import BitView
from buda_emu.device.channel import Fifo
from buda_emu.errors import HostError
from buda_emu.formats.stored import Bits
from buda_emu.netlist.model import Op, Queue
from buda_emu.records import dataclass
from buda_emu.runtime.machine.stepper import Tiles
from buda_emu.spec.formats import is_raw
from buda_emu.tensor.tilize import untilize

if TYPE_CHECKING:
    from buda_emu.debugger.machine.steps import Steps


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
        which, (height, width) = self.number(*place), self.tile_dim
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
        return Bits.encoded(self.df, self.tiles[number])


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
    return Found(queue, slot, queue.df, queue.blocking.shape, np.array(view.entry(slot)), bits)


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
    return Found(item, None, df, shape_of(item, tiles.shape[1]), tiles[0])


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
