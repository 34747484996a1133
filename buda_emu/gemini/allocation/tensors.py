"""Which tensors a core's L2 holds, and from which snapshot to which (facts GEMINI 7)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from buda_emu.errors import ProgramError, UnsupportedError
from buda_emu.gemini.boxes import ORIGIN, Box, hull, tile
from buda_emu.gemini.index import Index
from buda_emu.gemini.model import IR, Ofmap, Source, Tensor, Workload
from buda_emu.gemini.sizes import UNIT, fmap_bytes, padded, weight_bytes

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
                yield Resident("input", box, fmap_bytes(box, INT8), first, work.index, sources, work.index)


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
        source = Source("", "DRAM", -1, number, weight_bytes(box), box, None, None)
        yield Resident(
            "weight", box, weight_bytes(box), min(at), max(at), ((source, box),), layer_name=readers[number].layer_name
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
                    "store", box, fmap_bytes(box, INT8), work.index, last, piece=piece, layer_name=work.layer_name
                )
