"""L2 allocation: a schedule without addresses (dialect B) becomes one with addresses (dialect A) (facts GEMINI 7):
which tensors a core holds and how long, where they lie, and the schedule that says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from buda_emu.foreign.gemini.boxes import ORIGIN, Box, hull, tile
from buda_emu.foreign.gemini.document import Document, load
from buda_emu.foreign.gemini.index import Index
from buda_emu.foreign.gemini.model import IR, Destination, Ofmap, Source, Tensor, Workload
from buda_emu.foreign.gemini.rules import check
from buda_emu.foreign.gemini.sizes import UNIT, fmap_bytes, padded, weight_bytes
from buda_emu.foreign.gemini.time.plan import load_key
from buda_emu.support.checker.render import render
from buda_emu.support.errors import HostError, ProgramError, ScheduleError, UnsupportedError

INT8 = 8


@dataclass(frozen=True, slots=True)
class Resident:
    """A tensor from its first snapshot to its last. `sources`: transfer and its box in the tensor; `reader`:
    position of the workload whose operand it is (`input`); `piece`: what is stored from it (`store`)."""

    kind: Literal["input", "weight", "store"]
    box: Box
    size: int
    first: int
    last: int
    sources: tuple[tuple[Source, Box], ...] = ()
    reader: int = -1
    piece: Ofmap | None = None
    layer_name: str = ""
    number: int = -1  # tensor_id
    address: int = 0

    @property
    def room(self) -> int:
        """Bytes to the next address that a tensor may begin at."""
        return padded(self.size, UNIT)

    @property
    def from_dram(self) -> bool:
        """It is loaded."""
        return any(source.type == "DRAM" for source, _box in self.sources)


def residents(ir: IR, index: Index) -> dict[int, list[Resident]]:
    """By core (key of the file), numbered. Raises UnsupportedError for weights that are activations."""
    for work in ir.workloads():
        if work.weight is not None and work.weight.from_ofmap:
            raise UnsupportedError(f"{work}: activations as weights (from_ofmap) are not allocated")
    found: dict[int, list[Resident]] = {}
    for core, works in ir.cores.items():
        items = [*_inputs(index, works), *_weights(index, works), *_stores(works)]
        items.sort(key=lambda item: (item.first, item.last))
        found[core] = [replace(item, number=number) for number, item in enumerate(items)]
    return found


def _entries(works: Sequence[Workload]) -> dict[tuple[str | None, int | None], list[tuple[int, Tensor]]]:
    """Entries of operands by the layer and id of their reader, with the snapshots that show them."""
    found: dict[tuple[str | None, int | None], list[tuple[int, Tensor]]] = {}
    for work in works:
        for tensor in work.buffer:
            if tensor.type == "ifmap":
                found.setdefault((tensor.layer_name, tensor.workload_id), []).append((work.index, tensor))
    return found


def _inputs(index: Index, works: Sequence[Workload]) -> Iterator[Resident]:
    entries = _entries(works)
    for work in works:
        for operand in work.ifmap:
            shown = entries.get((work.layer_name, work.workload_id))
            if not shown:
                raise ProgramError(f"{work}: its buffer has no entry of its layer and id")
            origin = operand.box.lower
            placed = [(source, _local(source, origin)) for source in shown[-1][1].source]
            for group in _tensors(placed):
                makers = [index.made.get(source.transfer_id) for source, _box in group if source.type == "core"]
                own = [made.work.index for made in makers if made is not None and made.work.core == work.core]
                whole = hull(box for _source, box in group)
                sources = tuple((source, box.within(whole)) for source, box in group)
                box = whole.within(whole)
                first = min([shown[0][0], work.index, *own])
                yield Resident(
                    kind="input",
                    box=box,
                    size=fmap_bytes(box, INT8),
                    first=first,
                    last=work.index,
                    sources=sources,
                    reader=work.index,
                )


def _local(source: Source, origin: Sequence[int]) -> Box:
    """In coordinates of the operand: N, H, W less its lower corner, C from `channel`."""
    box = source.box.moved([-value for value in origin])
    low, high = source.channel or (box.lower[1], box.upper[1])
    if low < 0 or high - low != box.upper[1] - box.lower[1]:
        raise ProgramError(
            f"{source.place}/channel: [{low}, {high}] is not a range of the source's {box.shape[1]} channels"
        )
    return Box((box.lower[0], low, *box.lower[2:]), (box.upper[0], high, *box.upper[2:]))


Placed = list[tuple[Source, Box]]


def _tensors(placed: Placed) -> Iterator[Placed]:
    """One tensor of all sources, else one for each producing layer, else one for each source."""
    if placed and _one(placed):
        yield placed
        return
    layers: dict[str | None, Placed] = {}
    for source, box in placed:
        layers.setdefault(source.layer_name, []).append((source, box))
    for group in layers.values():
        if _one(group):
            yield group
        else:
            yield from ([item] for item in group)


def _one(group: Placed) -> bool:
    """All come from cores and tile their bounding box."""
    boxes = [box for _source, box in group]
    return all(source.type == "core" for source, _box in group) and tile(boxes, hull(boxes))


def _weights(index: Index, works: Sequence[Workload]) -> Iterator[Resident]:
    lives: dict[int, list[int]] = {}
    readers: dict[int, Workload] = {}
    for work in works:
        for number in work.weight.transfer_id if work.weight else ():
            lives.setdefault(number, []).append(work.index)
            readers.setdefault(number, work)
    for work in works:
        for tensor in work.buffer:
            for number in tensor.transfer_id if tensor.type == "weight" else ():
                if number in lives:
                    lives[number].append(work.index)
    for number, at in lives.items():
        out = index.outs.get(number)
        if out is None:
            raise ProgramError(f"{readers[number]}: its weight {number} does not come from DRAM")
        box = weight_box(out.box, out.size)
        source = Source(
            place="",
            type="DRAM",
            core_id=-1,
            transfer_id=number,
            size=weight_bytes(box),
            box=box,
            layer_name=None,
            channel=None,
        )
        yield Resident(
            kind="weight",
            box=box,
            size=weight_bytes(box),
            first=min(at),
            last=max(at),
            sources=((source, box),),
            layer_name=readers[number].layer_name,
        )


def weight_box(channels: Box, bits: int) -> Box:
    """Of dialect A for a weight of which dialect B tells output channels and bits."""
    count = channels.shape[1]
    return Box(ORIGIN, (0, count - 1, max(bits // 8 // count, 1) - 1, 0))


def _stores(works: Sequence[Workload]) -> Iterator[Resident]:
    for work in works:
        for piece in work.ofmap:
            if piece.to_dram:
                box = piece.box.within(piece.box)
                last = min(work.index + 1, len(works) - 1)
                yield Resident(
                    kind="store",
                    box=box,
                    size=fmap_bytes(box, INT8),
                    first=work.index,
                    last=last,
                    piece=piece,
                    layer_name=work.layer_name,
                )


_ORDERS: Final[Sequence[Callable[[Resident], tuple[int, ...]]]] = (
    lambda item: (item.first, -item.room, item.number),
    lambda item: (-item.room, item.first, item.number),
    lambda item: (item.first - item.last, -item.room, item.number),
)
"""Tried one after the other: by time, by size, by length of life."""


def place(ir: IR, core: int, items: Sequence[Resident], buffersize: int) -> list[Resident]:
    """Tensors of a core with addresses, so that none share a byte in a snapshot. Raises ProgramError where first fit
    finds no room in any order, naming core and workload."""
    stuck: Resident | None = None
    for order in _ORDERS:
        placed: list[Resident] = []
        for item in sorted(items, key=order):
            address = _first_fit(item, placed)
            if address + item.room > buffersize:
                stuck = stuck or item
                break
            placed.append(replace(item, address=address))
        else:
            return sorted(placed, key=lambda item: item.number)
    assert stuck is not None  # no order was gone through whole
    x, y = ir.position(core)
    work = ir.cores[core][stuck.first]
    raise ProgramError(
        f"a buffer of {buffersize} bytes is too small for first fit: core {y * ir.xlen + x} has no room for "
        f"{stuck.room} "
        f"more at workload {work.workload_id}",
        kind="allocation",
    )


def _first_fit(item: Resident, placed: Sequence[Resident]) -> int:
    """The lowest address below which nothing that lives at the same time is in the way."""
    beside = sorted(
        (other.address, other.address + other.room)
        for other in placed
        if other.first <= item.last and item.first <= other.last
    )
    at = 0
    for low, high in beside:
        if at + item.room <= low:
            break
        at = max(at, high)
    return at


_PE = ("conv2d", "fc")


class _Writer:
    def __init__(self, ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> None:
        self.ir = ir
        self.index = index
        self.placed = placed
        self.buffersize = buffersize
        self.orders, self.count = self._orders()

    def _orders(self) -> tuple[dict[tuple[int, int], int], int]:
        """tensor_order by core and tensor_id: the DRAM queue of dialect B, with each core's own loads."""
        keys: list[tuple[tuple[int, int, int], int, int]] = []
        for core, items in self.placed.items():
            works = self.ir.cores[core]
            for item in items:
                if item.piece is not None:
                    keys.append(((works[item.first].workload_id, 1, item.piece.transfer_id), core, item.number))
                elif item.from_dram:
                    number = item.sources[0][0].transfer_id
                    keys.append((load_key(self.index, number, works[item.first]), core, item.number))
        orders = {(core, number): order for order, (_key, core, number) in enumerate(sorted(keys))}
        return orders, len(keys)

    def core(self, key: int) -> int:
        """Core id of dialect A."""
        x, y = self.ir.position(key)
        return y * self.ir.xlen + x

    def document(self) -> dict[str, Any]:
        """The whole object."""
        return {
            "-1": {"in": self._arrives(), "out": self._leaves()},
            "buffersize": self.buffersize,
            "top_batch_cut": self.ir.document.get("top_batch_cut", 1),
            "xlen": self.ir.xlen,
            "ylen": self.ir.ylen,
            **{str(self.core(key)): [self._workload(work) for work in works] for key, works in self.ir.cores.items()},
        }

    def _arrives(self) -> list[dict[str, Any]]:
        return [
            {
                "core_id": self.core(entry.core_id),
                "workload_id": entry.workload_id,
                "layer_name": self.index.made[entry.transfer_id].work.layer_name,
                "transfer_id": entry.transfer_id,
                **_corners(entry.box),
                "related_ofmap": list(entry.related_ofmap),
            }
            for entry in self.ir.dram_in
        ]

    def _leaves(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for out in self.ir.dram_out:
            box = weight_box(out.box, out.size) if out.type == "weight" else out.box
            size = weight_bytes(box) if out.type == "weight" else fmap_bytes(box, INT8)
            to = [{**self._target(item), "layer_name": out.layer_name} for item in out.destination]
            found.append(
                {
                    "transfer_id": out.transfer_id,
                    "type": out.type,
                    "size": size,
                    **_corners(box),
                    "destination": to,
                    "related_ifmap": list(out.related_ifmap),
                }
            )
        return found

    def _target(self, to: Destination) -> dict[str, Any]:
        if to.type == "DRAM":
            return {"type": "DRAM", "core_id": -1}
        return {"type": "core", "core_id": self.core(to.core_id), "workload_id": to.workload_id}

    def _workload(self, work: Workload) -> dict[str, Any]:
        items = self.placed[work.core]
        sizes = [fmap_bytes(piece.box, INT8) for piece in work.ofmap]
        read = work.ifmap[0].box if work.ifmap else work.box
        tile = {
            "ofmap_lower": list(work.box.lower),
            "ofmap_upper": list(work.box.upper),
            "ifmap_lower": list(read.lower),
            "ifmap_upper": list(read.upper),
            "tile_padding_tblr": [0, 0, 0, 0],
            "single_tile_time_pred": work.time,
        }
        content: dict[str, Any] = {
            "workload_id": work.workload_id,
            "layer_name": work.layer_name,
            "layer_type": "pe" if work.layer_type in _PE else "vp",
            "workload": [list(work.box.lower), list(work.box.upper)],
            "time": work.time,
            "tile_info": {"tile_num_0": tile},
            "tile_padding_tblr": [0, 0, 0, 0],
            "ifmap": [
                {
                    "transfer_id": [source.transfer_id for source, _box in item.sources],
                    "size": item.size,
                    **_int8(),
                    **_corners(item.box),
                }
                for item in items
                if item.reader == work.index
            ],
            "ofmap": [
                {
                    "transfer_id": piece.transfer_id,
                    "size": size,
                    **_corners(piece.box.within(work.box)),
                    "destination": [self._target(to) for to in piece.destination],
                }
                for piece, size in zip(work.ofmap, sizes, strict=True)
            ],
            "ofmap_size": sum(sizes),
            "buffer": [self._tensor(work, item) for item in items if item.first <= work.index <= item.last],
            "ring_buffer_info": [[0, self.buffersize]],
            "wl0_buffer": None,
        }
        ids = work.weight.transfer_id if work.weight else ()
        for item in items:
            if item.kind == "weight" and item.sources[0][0].transfer_id in ids:
                content["weight"] = {"transfer_id": list(ids), "size": item.size, **_corners(item.box)}
        return content

    def _tensor(self, work: Workload, item: Resident) -> dict[str, Any]:
        content: dict[str, Any] = {
            "tensor_id": item.number,
            "address": item.address,
            "size": item.size,
            **_int8(),
            **_corners(item.box),
            "type": {"input": "ifmap"}.get(item.kind, item.kind),
            "tensor_order": self.orders.get((work.core, item.number), self.count),
        }
        if item.kind == "store":
            last = len(self.ir.cores[work.core]) - 1
            sent = work.index > item.first or item.first == last
            return {**content, "type": "ofmap", "layer_name": item.layer_name, "start_send": sent}
        content["transfer_id"] = [source.transfer_id for source, _box in item.sources]
        content["newly_added"] = work.index == item.first
        pieces: list[dict[str, Any]] = []
        for source, box in item.sources:
            dram = source.type == "DRAM"
            entry: dict[str, Any] = {
                "core_id": -1 if dram else self.core(source.core_id),
                "type": source.type,
                "transfer_id": source.transfer_id,
                **_corners(box),
                "size": weight_bytes(box) if item.kind == "weight" else fmap_bytes(box, INT8),
            }
            if item.kind == "input":
                entry["layer_name"] = source.layer_name
            pieces.append(entry)
        content["source"] = pieces
        if item.kind == "weight":
            content["layer_name"] = item.layer_name
        elif item.reader == work.index:
            content["cur_wl_ifmap"] = True
        return content


def write(ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> dict[str, Any]:
    """A schedule of dialect A."""
    return _Writer(ir, index, placed, buffersize).document()


def _corners(box: Box) -> dict[str, list[int]]:
    return {"lower": list(box.lower), "upper": list(box.upper)}


def _int8() -> dict[str, int]:
    return {"align": UNIT // INT8, "bitwidth": INT8}


def peak(ir: IR) -> tuple[int, int, int]:
    """(bytes, core id of dialect A, workload_id) of the fullest snapshot: what a buffer must hold at least.

    Raises UnsupportedError for weights that are activations, ScheduleError for a schedule that breaks rules, HostError
    for one that has addresses.
    """
    return _fullest(ir, _residents(ir))


def allocate(ir: IR, buffersize: int) -> Document:
    """A schedule of dialect A with every tensor at an address of an L2 of so many bytes.

    Raises ProgramError naming core and workload where there is no room, else as `peak`.
    """
    if isinstance(buffersize, bool) or not isinstance(buffersize, int) or not 0 < buffersize < 1 << 62:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostError(f"a buffer has 1 byte or more, not {buffersize!r}")
    found = _residents(ir)
    size, core, workload = _fullest(ir, found)
    if size > buffersize:
        raise ProgramError(
            f"a buffer of {buffersize} bytes is too small: core {core} needs {size} for workload {workload}",
            kind="allocation",
        )
    placed = {core: place(ir, core, items, buffersize) for core, items in found.items()}
    return load(write(ir, Index(ir), placed, buffersize))


def _residents(ir: IR) -> dict[int, list[Resident]]:
    if ir.form.addressed:
        raise HostError("the schedule has addresses: there is nothing to allocate")
    errors = [item for item in check(ir) if item.severity == "error"]
    if errors:
        raise ScheduleError(f"a schedule that breaks rules is not allocated\n{render(errors)}", errors)
    return residents(ir, Index(ir))


def _fullest(ir: IR, found: dict[int, list[Resident]]) -> tuple[int, int, int]:
    best = (0, 0, 0)
    for core, works in ir.cores.items():
        held = [0] * len(works)
        for item in found[core]:
            for at in range(item.first, item.last + 1):
                held[at] += item.room
        for at, size in enumerate(held):
            if size > best[0]:
                x, y = ir.position(core)
                best = (size, y * ir.xlen + x, works[at].workload_id)
    return best
