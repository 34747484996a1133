"""Allocate L2 for a schedule without addresses (dialect B) and write it as one with addresses (dialect A) (facts GEMINI
7). First the tensors that each core holds are collected with their lifetimes, then they get addresses, then the
schedule is written."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, Literal

from buda_emu.foreign.gemini.boxes import ORIGIN, Box, fills, hull
from buda_emu.foreign.gemini.document import ScheduleDocument, load
from buda_emu.foreign.gemini.index import Index
from buda_emu.foreign.gemini.model import IR, Destination, Ofmap, Source, Tensor, Workload
from buda_emu.foreign.gemini.rules import check
from buda_emu.foreign.gemini.sizes import UNIT, fmap_bytes, round_up, weight_bytes
from buda_emu.foreign.gemini.time.plan import load_order
from buda_emu.support.checker.render import render
from buda_emu.support.errors import HostError, ProgramError, ScheduleError, UnsupportedError

INT8 = 8  # bits


@dataclass(frozen=True, slots=True)
class Resident:
    """A tensor in the L2 of one core, resident from snapshot `first` to snapshot `last`. `sources` pairs each transfer
    with its box in the tensor, `reader` is the position of the workload that reads an `input`, `piece` is the result
    that a `store` waits to send to DRAM."""

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
        """Bytes from this tensor's address to the next address at which another tensor may begin."""
        return round_up(self.size, UNIT)

    @property
    def from_dram(self) -> bool:
        """True when a source of the tensor is DRAM, so the DRAM queue loads it."""
        return any(source.type == "DRAM" for source, _box in self.sources)


def collect_residents(ir: IR, index: Index) -> dict[int, list[Resident]]:
    """Return the numbered tensors that each core's L2 must hold, by the core's key in the file. Raises
    UnsupportedError for weights that are activations."""
    for work in ir.workloads():
        if work.weight is not None and work.weight.from_ofmap:
            raise UnsupportedError(f"{work}: activations as weights (from_ofmap) are not allocated")
    residents_by_core: dict[int, list[Resident]] = {}
    for core, works in ir.cores.items():
        items = [*_input_residents(index, works), *_weight_residents(index, works), *_store_residents(works)]
        items.sort(key=lambda resident: (resident.first, resident.last))
        residents_by_core[core] = [replace(resident, number=number) for number, resident in enumerate(items)]
    return residents_by_core


def _collect_ifmap_entries(works: Sequence[Workload]) -> dict[tuple[str | None, int | None], list[tuple[int, Tensor]]]:
    """Group the `ifmap` buffer entries by the layer and workload id of their reader, each with the position of the
    snapshot that shows it."""
    entries: dict[tuple[str | None, int | None], list[tuple[int, Tensor]]] = {}
    for work in works:
        for tensor in work.buffer:
            if tensor.type == "ifmap":
                entries.setdefault((tensor.layer_name, tensor.workload_id), []).append((work.index, tensor))
    return entries


def _input_residents(index: Index, works: Sequence[Workload]) -> Iterator[Resident]:
    """Yield the operand tensors of a core's workloads. Raises ProgramError for a workload without a buffer entry."""
    entries = _collect_ifmap_entries(works)
    for work in works:
        for operand in work.ifmap:
            shown = entries.get((work.layer_name, work.workload_id))
            if not shown:
                raise ProgramError(f"{work}: its buffer has no entry of its layer and id")
            origin = operand.box.lower
            placed = [(source, _to_operand_coordinates(source, origin)) for source in shown[-1][1].source]
            for group in _group_into_tensors(placed):
                bounds = hull(box for _source, box in group)
                sources = tuple((source, box.within(bounds)) for source, box in group)
                box = bounds.within(bounds)
                yield Resident(
                    kind="input",
                    box=box,
                    size=fmap_bytes(box, INT8),
                    first=min([shown[0][0], work.index, *_local_producers(index, work, group)]),
                    last=work.index,
                    sources=sources,
                    reader=work.index,
                )


def _local_producers(index: Index, work: Workload, group: Iterable[tuple[Source, Box]]) -> list[int]:
    """Return the indices of the workloads of the same core that produce parts of a tensor."""
    transfers = [source.transfer_id for source, _box in group if source.type == "core"]
    producers = [index.outputs_by_id.get(transfer) for transfer in transfers]
    return [producer.work.index for producer in producers if producer is not None and producer.work.core == work.core]


def _to_operand_coordinates(source: Source, origin: Sequence[int]) -> Box:
    """Return the source's box in coordinates of the operand: N, H and W count from the operand's lower corner, and so
    does C, unless the source has a range `channel`. Raises ProgramError where channels are negative or not as many as
    the box has."""
    box = source.box.shift([-value for value in origin])
    first_channel, last_channel = source.channel or (box.lower[1], box.upper[1])
    if first_channel < 0 or last_channel - first_channel != box.upper[1] - box.lower[1]:
        raise ProgramError(
            f"{source.place}/channel: [{first_channel}, {last_channel}] is not a range of the source's "
            f"{box.shape[1]} channels"
        )
    return Box((box.lower[0], first_channel, *box.lower[2:]), (box.upper[0], last_channel, *box.upper[2:]))


PlacedSources = list[tuple[Source, Box]]


def _group_into_tensors(pieces: PlacedSources) -> Iterator[PlacedSources]:
    """Yield the groups of sources that become one tensor each: all sources together if they tile a box, else the
    sources of each layer if those do, else every source alone."""
    if pieces and _is_one_tensor(pieces):
        yield pieces
        return
    layers: dict[str | None, PlacedSources] = {}
    for source, box in pieces:
        layers.setdefault(source.layer_name, []).append((source, box))
    for group in layers.values():
        if _is_one_tensor(group):
            yield group
        else:
            yield from ([pair] for pair in group)


def _is_one_tensor(pieces: PlacedSources) -> bool:
    """Return whether all pieces come from cores and tile their bounding box."""
    boxes = [box for _source, box in pieces]
    return all(source.type == "core" for source, _box in pieces) and fills(boxes, hull(boxes))


def _weight_residents(index: Index, works: Sequence[Workload]) -> Iterator[Resident]:
    """Yield the weights that a core's workloads use, resident from the first snapshot that shows or uses them to the
    last. Raises ProgramError for a weight that does not come from DRAM."""
    readers: dict[int, Workload] = {}
    for work in works:
        for number in _weight_transfers(work):
            readers.setdefault(number, work)
    for number, at in _weight_lives(works).items():
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


def _weight_transfers(work: Workload) -> Sequence[int]:
    """Return the ids of the transfers that bring a workload's weight; none for one without a weight."""
    if work.weight is None:
        return ()
    return work.weight.transfer_id


def _weight_lives(works: Sequence[Workload]) -> dict[int, list[int]]:
    """Return, by the transfer of each weight that a workload uses, the indices of the workloads that use it or whose
    snapshot shows it."""
    lives: dict[int, list[int]] = {}
    for work in works:
        for number in _weight_transfers(work):
            lives.setdefault(number, []).append(work.index)
    for work in works:
        shown = chain.from_iterable(tensor.transfer_id for tensor in work.buffer if tensor.type == "weight")
        for number in shown:
            if number in lives:
                lives[number].append(work.index)
    return lives


def weight_box(channels: Box, bits: int) -> Box:
    """Return the box [0, K, C * R*S, 0] of dialect A for a weight of which dialect B gives output channels and size in
    bits."""
    count = channels.shape[1]
    return Box(ORIGIN, (0, count - 1, max(bits // 8 // count, 1) - 1, 0))


def _store_residents(works: Sequence[Workload]) -> Iterator[Resident]:
    """Yield the results that wait to be stored, resident while their workload runs and during the next one."""
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
    """Return the tensors of a core with addresses in an L2 of `buffersize` bytes, so that no two share a byte in a
    snapshot. Raises ProgramError, naming core and workload, where first fit finds no room in any of the orders."""
    stuck: Resident | None = None
    for order in _ORDERS:
        placed: list[Resident] = []
        for resident in sorted(items, key=order):
            address = _find_first_fit(resident, placed)
            if address + resident.room > buffersize:
                stuck = stuck or resident
                break
            placed.append(replace(resident, address=address))
        else:
            return sorted(placed, key=lambda resident: resident.number)
    assert stuck is not None  # no order was gone through whole
    x, y = ir.position(core)
    work = ir.cores[core][stuck.first]
    raise ProgramError(
        f"a buffer of {buffersize} bytes is too small for first fit: core {y * ir.xlen + x} has no room for "
        f"{stuck.room} "
        f"more at workload {work.workload_id}",
        kind="allocation",
    )


def _find_first_fit(resident: Resident, placed: Sequence[Resident]) -> int:
    """Return the lowest address at which the tensor overlaps none of `placed`, tensors with addresses, that lives
    at the same time."""
    beside = sorted(
        (other.address, other.address + other.room)
        for other in placed
        if other.first <= resident.last and resident.first <= other.last
    )
    at = 0
    for low, high in beside:
        if at + resident.room <= low:
            break
        at = max(at, high)
    return at


_PE = ("conv2d", "fc")


class _Writer:
    """Writes a schedule of dialect A from one of dialect B and the addresses of its tensors."""

    def __init__(self, ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> None:
        self.ir = ir
        self.index = index
        self.placed = placed
        self.buffersize = buffersize
        self.orders, self.count = self._number_orders()

    def _number_orders(self) -> tuple[dict[tuple[int, int], int], int]:
        """Return `tensor_order` by core and tensor_id, and how many orders there are. The order is that of dialect B's
        DRAM queue, except that every core loads its own copy."""
        keys: list[tuple[tuple[int, int, int], int, int]] = []
        for core, items in self.placed.items():
            works = self.ir.cores[core]
            for resident in items:
                if resident.piece is not None:
                    keys.append(
                        ((works[resident.first].workload_id, 1, resident.piece.transfer_id), core, resident.number)
                    )
                elif resident.from_dram:
                    number = resident.sources[0][0].transfer_id
                    keys.append((load_order(self.index, number, works[resident.first]), core, resident.number))
        orders = {(core, number): order for order, (_key, core, number) in enumerate(sorted(keys))}
        return orders, len(keys)

    def core(self, key: int) -> int:
        """Return the core id of dialect A for a core's key in dialect B."""
        x, y = self.ir.position(key)
        return y * self.ir.xlen + x

    def document(self) -> dict[str, Any]:
        """Return the JSON object of the addressed schedule."""
        return {
            "-1": {"in": self._dram_in_entries(), "out": self._dram_out_entries()},
            "buffersize": self.buffersize,
            "top_batch_cut": self.ir.document.get("top_batch_cut", 1),
            "xlen": self.ir.xlen,
            "ylen": self.ir.ylen,
            **{
                str(self.core(key)): [self._workload_object(work) for work in works]
                for key, works in self.ir.cores.items()
            },
        }

    def _dram_in_entries(self) -> list[dict[str, Any]]:
        """Return the `in` entries of DRAM: the pieces of outputs that arrive there."""
        return [
            {
                "core_id": self.core(entry.core_id),
                "workload_id": entry.workload_id,
                "layer_name": self.index.outputs_by_id[entry.transfer_id].work.layer_name,
                "transfer_id": entry.transfer_id,
                **_corner_keys(entry.box),
                "related_ofmap": list(entry.related_ofmap),
            }
            for entry in self.ir.dram_in
        ]

    def _dram_out_entries(self) -> list[dict[str, Any]]:
        """Return the `out` entries of DRAM: the tensors that leave it, with sizes and boxes of dialect A."""
        entries: list[dict[str, Any]] = []
        for out in self.ir.dram_out:
            if out.type == "weight":
                box = weight_box(out.box, out.size)
                size = weight_bytes(box)
            else:
                box = out.box
                size = fmap_bytes(box, INT8)
            to = [{**self._target_object(destination), "layer_name": out.layer_name} for destination in out.destination]
            entries.append(
                {
                    "transfer_id": out.transfer_id,
                    "type": out.type,
                    "size": size,
                    **_corner_keys(box),
                    "destination": to,
                    "related_ifmap": list(out.related_ifmap),
                }
            )
        return entries

    def _target_object(self, to: Destination) -> dict[str, Any]:
        """Return the JSON object of a destination, without the name of its layer."""
        if to.type == "DRAM":
            return {"type": "DRAM", "core_id": -1}
        return {"type": "core", "core_id": self.core(to.core_id), "workload_id": to.workload_id}

    def _workload_object(self, work: Workload) -> dict[str, Any]:
        """Return the JSON object of a workload: one tile, one ring region, and the tensors that its snapshot shows."""
        items = self.placed[work.core]
        sizes = [fmap_bytes(piece.box, INT8) for piece in work.ofmap]
        content: dict[str, Any] = {
            "workload_id": work.workload_id,
            "layer_name": work.layer_name,
            "layer_type": "pe" if work.layer_type in _PE else "vp",
            "workload": [list(work.box.lower), list(work.box.upper)],
            "time": work.time,
            "tile_info": {"tile_num_0": _tile_object(work)},
            "tile_padding_tblr": [0, 0, 0, 0],
            "ifmap": [_operand_object(resident) for resident in items if resident.reader == work.index],
            "ofmap": [
                {
                    "transfer_id": piece.transfer_id,
                    "size": size,
                    **_corner_keys(piece.box.within(work.box)),
                    "destination": [self._target_object(to) for to in piece.destination],
                }
                for piece, size in zip(work.ofmap, sizes, strict=True)
            ],
            "ofmap_size": sum(sizes),
            "buffer": [
                self._tensor_object(work, resident)
                for resident in items
                if resident.first <= work.index <= resident.last
            ],
            "ring_buffer_info": [[0, self.buffersize]],
            "wl0_buffer": None,
        }
        ids = _weight_transfers(work)
        for resident in items:
            if resident.kind == "weight" and resident.sources[0][0].transfer_id in ids:
                content["weight"] = {"transfer_id": list(ids), "size": resident.size, **_corner_keys(resident.box)}
        return content

    def _tensor_object(self, work: Workload, resident: Resident) -> dict[str, Any]:
        """Return the JSON object of a tensor in the snapshot of a workload."""
        content: dict[str, Any] = {
            "tensor_id": resident.number,
            "address": resident.address,
            "size": resident.size,
            **_int8_keys(),
            **_corner_keys(resident.box),
            "type": {"input": "ifmap"}.get(resident.kind, resident.kind),
            "tensor_order": self.orders.get((work.core, resident.number), self.count),
        }
        if resident.kind == "store":
            last = len(self.ir.cores[work.core]) - 1
            sent = work.index > resident.first or resident.first == last
            return {**content, "type": "ofmap", "layer_name": resident.layer_name, "start_send": sent}
        content["transfer_id"] = [source.transfer_id for source, _box in resident.sources]
        content["newly_added"] = work.index == resident.first
        pieces: list[dict[str, Any]] = []
        for source, box in resident.sources:
            dram = source.type == "DRAM"
            entry: dict[str, Any] = {
                "core_id": -1 if dram else self.core(source.core_id),
                "type": source.type,
                "transfer_id": source.transfer_id,
                **_corner_keys(box),
                "size": weight_bytes(box) if resident.kind == "weight" else fmap_bytes(box, INT8),
            }
            if resident.kind == "input":
                entry["layer_name"] = source.layer_name
            pieces.append(entry)
        content["source"] = pieces
        if resident.kind == "weight":
            content["layer_name"] = resident.layer_name
        elif resident.reader == work.index:
            content["cur_wl_ifmap"] = True
        return content


def write_schedule(ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> dict[str, Any]:
    """Return the JSON object of dialect A for a schedule and the addresses of its tensors."""
    return _Writer(ir, index, placed, buffersize).document()


def _corner_keys(box: Box) -> dict[str, list[int]]:
    """Return the keys of a box in a JSON object."""
    return {"lower": list(box.lower), "upper": list(box.upper)}


def _tile_object(work: Workload) -> dict[str, Any]:
    """Return the JSON object of the only tile of a workload."""
    read = work.ifmap[0].box if work.ifmap else work.box
    return {
        "ofmap_lower": list(work.box.lower),
        "ofmap_upper": list(work.box.upper),
        "ifmap_lower": list(read.lower),
        "ifmap_upper": list(read.upper),
        "tile_padding_tblr": [0, 0, 0, 0],
        "single_tile_time_pred": work.time,
    }


def _operand_object(resident: Resident) -> dict[str, Any]:
    """Return the JSON object of an operand."""
    return {
        "transfer_id": [source.transfer_id for source, _box in resident.sources],
        "size": resident.size,
        **_int8_keys(),
        **_corner_keys(resident.box),
    }


def _int8_keys() -> dict[str, int]:
    """Return the keys align and bitwidth of an int8 tensor in a JSON object."""
    return {"align": UNIT // INT8, "bitwidth": INT8}


def peak(ir: IR) -> tuple[int, int, int]:
    """Return (bytes, core id of dialect A, workload_id) of the fullest snapshot: a buffer must have at least that many
    bytes.

    Raises UnsupportedError for weights that are activations, ScheduleError for a schedule that breaks rules, HostError
    for one that has addresses.
    """
    return _find_fullest_snapshot(ir, _collect_checked_residents(ir))


def allocate(ir: IR, buffersize: int) -> ScheduleDocument:
    """Return a schedule of dialect A in which every tensor has an address in an L2 of `buffersize` bytes.

    Raises ProgramError, naming core and workload, where there is no room, HostError for a size that is not a positive
    integer, and what `peak` raises.
    """
    if isinstance(buffersize, bool) or not isinstance(buffersize, int) or not 0 < buffersize < 1 << 62:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostError(f"a buffer has 1 byte or more, not {buffersize!r}")
    residents_by_core = _collect_checked_residents(ir)
    size, core, workload = _find_fullest_snapshot(ir, residents_by_core)
    if size > buffersize:
        raise ProgramError(
            f"a buffer of {buffersize} bytes is too small: core {core} needs {size} for workload {workload}",
            kind="allocation",
        )
    placed = {core: place(ir, core, items, buffersize) for core, items in residents_by_core.items()}
    return load(write_schedule(ir, Index(ir), placed, buffersize))


def _collect_checked_residents(ir: IR) -> dict[int, list[Resident]]:
    """Check that the schedule can be allocated, and return the tensors of each core. Raises HostError for a schedule
    with addresses, ScheduleError for one that breaks rules."""
    if ir.form.addressed:
        raise HostError("the schedule has addresses: there is nothing to allocate")
    errors = [finding for finding in check(ir) if finding.severity == "error"]
    if errors:
        raise ScheduleError(f"a schedule that breaks rules is not allocated\n{render(errors)}", errors)
    return collect_residents(ir, Index(ir))


def _find_fullest_snapshot(ir: IR, residents_by_core: dict[int, list[Resident]]) -> tuple[int, int, int]:
    """Return bytes, core id of dialect A and workload_id of the snapshot whose tensors need most room."""
    best = (0, 0, 0)
    for core, works in ir.cores.items():
        held = [0] * len(works)
        for resident in residents_by_core[core]:
            for at in range(resident.first, resident.last + 1):
                held[at] += resident.room
        for at, size in enumerate(held):
            if size > best[0]:
                x, y = ir.position(core)
                best = (size, y * ir.xlen + x, works[at].workload_id)
    return best
