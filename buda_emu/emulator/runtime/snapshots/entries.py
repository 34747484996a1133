"""The entries of queues and rams in a snapshot: written tiles with their format labels, row-major host data, and sums
of gradient ops."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.bit_store import BitStore
from buda_emu.emulator.memory.store import Arrays, TileStore
from buda_emu.emulator.runtime.machine.memory import Channel, Memory
from buda_emu.emulator.runtime.snapshots.archive import MOST, Fields, Reader
from buda_emu.netlist.model import Execute, Netlist
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS

Tensor = NDArray[np.float32]
_ROW_BYTES = 4 * TILE_ELEMENTS


def stores(memory: Memory, *, written_only: bool = True) -> dict[str, TileStore]:
    """Return the stores by the name of their base queue, those that hold entries or all; rams that are views of the
    same memory share one (NETLIST 1.10)."""
    stores_by_name = {channel.view.store.name: channel.view.store for channel in memory.channels.values()}
    return {name: store for name, store in stores_by_name.items() if not written_only or any(store.labels)}


def changing_stores(netlist: Netlist, memory: Memory) -> frozenset[str]:
    """Return the names of the stores that programs may change: fed by an op, or set to zero by an execute."""
    zeroed: set[str] = set()
    for program in netlist.programs.values():
        for instruction in program.instructions:
            if isinstance(instruction, Execute):
                zeroing = (settings for settings in instruction.queue_settings if settings.zero not in ("false", "0"))
                zeroed.update(settings.queue for settings in zeroing)
    return frozenset(
        channel.view.store.name
        for name, channel in memory.channels.items()
        if not netlist.queues[name].host_fed or name in zeroed
    )


def runs_of_labels(labels: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield (first slice, count, label) of each run of consecutive written slices with the same label; `labels` has ""
    for one not written."""
    position = 0
    for label, group in groupby(labels):
        count = len(list(group))
        if label:
            yield position, count, label
        position += count


def written_slices(arrays: Arrays, labels: list[str]) -> Iterator[Arrays]:
    """Yield the written slices of each array of a store, run by run."""
    for first, count, _ in runs_of_labels(labels):
        yield tuple(array[first : first + count] for array in arrays)


Run = tuple[int, int, str]  # first slice, count, label


def check_sizes(
    netlist: Netlist,
    memory: Memory,
    reader: Reader,
    runs: Mapping[TileStore, list[Run]],
    slots: Mapping[str, list[int]],
    sums: Mapping[str, int],
    referred: Collection[str],
) -> None:
    """Check, before memory is taken, that the saved state is within the machine's limit and that each array has its
    size in the file. `runs`: written slices by store; `slots`: slots with row-major data by queue; `sums`: tiles by
    gradient op; `referred`: names of stores whose data is in an image instead. Raises HostError."""
    reached = sum(
        store.slice_bytes(sum(runs_of_store[-1][:2]) if runs_of_store else 0) for store, runs_of_store in runs.items()
    )
    members = {
        **{
            f"stores/{s.name}": s.slice_bytes(sum(count for _, count, _ in runs_of_store))
            for s, runs_of_store in runs.items()
            if s.name not in referred
        },
        **{
            f"flat/{name}": len(runs_of_store) * _flat_rows(netlist, name) * _ROW_BYTES
            for name, runs_of_store in slots.items()
        },
        **{f"gradients/{name}": tiles * _ROW_BYTES for name, tiles in sums.items()},
    }
    rest = sum(size for name, size in members.items() if not name.startswith("stores/"))
    memory.check_room(reached + rest)
    for name, size in members.items():
        reader.require_size(name, size)


def read_label_runs(fields: Fields, store: TileStore | None) -> list[Run]:
    """Read and check the runs of written slices of a store (None: the memory has none of that name), in order. Raises
    HostError."""
    if store is None or fields.integer("tiles", 1, MOST) != store.tiles:
        raise fields.bad("is not a memory of this netlist")
    reached = 0
    runs: list[Run] = fields.rows("labels", int, int, str)
    for first, count, label in runs:
        if isinstance(store, BitStore):
            is_known = label == store.df
        else:
            is_known = label in FORMATS
        if first < reached or count < 1 or first + count > store.slices or not is_known:
            raise fields.bad("has slices that overlap, lie outside or have an unknown format")
        reached = first + count
    return runs


def labels_of(runs: list[Run]) -> list[str]:
    """Return one label for each slice up to the last written one, "" for one that was not written."""
    labels: list[str] = []
    for first, count, label in runs:
        labels += [""] * (first - len(labels)) + [label] * count
    return labels


def own_labels(memory: Memory) -> dict[str, dict[int, str]]:
    """Return the label of each slot by ram, for rams that are views of another ram's memory and so keep labels of their
    own; other queues and rams are left out."""
    views = {name: channel.view.labels for name, channel in memory.channels.items()}
    return {name: labels for name, labels in views.items() if labels is not None}


def read_view_labels(fields: Fields, name: str, memory: Memory) -> dict[int, str]:
    """Read the labels that the ram `name`, a view of another ram's memory, keeps of its own, by slot. Raises HostError
    for impossible ones."""
    view = memory.channels[name].view
    labels: dict[int, str] = {}
    for slot, label in fields.rows(name, int, str):
        if isinstance(view.store, BitStore):
            is_known = label == view.store.df
        else:
            is_known = label in FORMATS
        if slot in labels or not 0 <= slot < view.entries or not is_known:
            raise fields.bad(f"has a label of {name} that is twice there, of no entry, or of an unknown format")
        labels[slot] = label
    return labels


def read_store(reader: Reader, name: str, store: TileStore, labels: list[str]) -> Arrays:
    """Read the arrays of the store `name`, [slices, ...] in the types in which the store holds them; `labels` say which
    slices are written. Raises HostError for a damaged file, or codes that the format has not."""
    arrays = store.fresh(len(labels))
    parts = list(written_slices(arrays, labels))
    reader.fill(f"stores/{name}", chain.from_iterable(parts))
    if not all(map(store.may_hold, parts)):
        raise reader.refusal(f"stores/{name} holds codes that its format has not")
    return arrays


def row_major(memory: Memory) -> dict[str, dict[int, Tensor]]:
    """Return the row-major data that the host pushed for tilizers, by queue and slot: float32[rows, 1024]. Queues
    without any are left out."""
    return {name: channel.flat for name, channel in memory.channels.items() if channel.flat}


def read_slots(fields: Fields, channel: Channel | None) -> list[int]:
    """Read which slots of a queue (None: there is none of that name) have row-major data. Raises HostError for
    impossible ones."""
    slots = [slot for (slot,) in fields.rows("slots", int)]
    entries = 0
    if channel is not None and channel.flat is not None:
        entries = channel.view.entries
    if len(set(slots)) < len(slots) or any(not 0 <= slot < entries for slot in slots) or not entries:
        raise fields.bad("is not row-major data of a queue")
    return slots


def _flat_rows(netlist: Netlist, name: str) -> int:
    """Return the number of rows of 1024 elements that one entry of a queue has as row-major data."""
    t, height, width = netlist.queues[name].blocking.element_shape
    return -(-t * height * width // TILE_ELEMENTS)


def read_row_major(reader: Reader, name: str, netlist: Netlist, slots: list[int]) -> dict[int, Tensor]:
    """Read the row-major data of a queue, by slot float32[rows, 1024]. Raises HostError for a damaged file."""
    rows = _flat_rows(netlist, name)
    data = {slot: np.empty((rows, TILE_ELEMENTS), np.float32) for slot in slots}
    reader.fill(f"flat/{name}", data.values())
    return data


def read_sum_tiles(header: Fields, name: str, netlist: Netlist) -> int:
    """Read how many tiles the saved sum of the gradient op `name` has. Raises HostError where there is no such op, or
    it has another number of tiles."""
    op = netlist.ops.get(name)
    if op is None or not op.gradient_op:
        raise header.bad(f"has a sum of {name}, which is not a gradient op")
    t, rows, cols = op.blocking.shape
    tiles = header.at("gradients").at(name).integer("tiles", 1, MOST)
    if tiles != t * rows * cols:
        raise header.bad(f"has a sum of {name} with {tiles} tiles, not {t * rows * cols}")
    return tiles


def read_sum(reader: Reader, name: str, tiles: int) -> Tensor:
    """Read the saved sum of a gradient op, float32[tiles, 1024]. Raises HostError for a damaged file."""
    array = np.empty((tiles, TILE_ELEMENTS), np.float32)
    reader.fill(f"gradients/{name}", [array])
    return array
