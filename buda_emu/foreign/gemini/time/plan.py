"""What a schedule makes happen, and what each thing waits for: DRAM queue, pieces between cores, workloads
(facts GEMINI 5.3 to 5.5). Time (`schedule`) and bytes (`execute`) follow the same plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from buda_emu.foreign.gemini.index import Index, Life
from buda_emu.foreign.gemini.model import WeightStore, Workload
from buda_emu.support.errors import ProgramError

ItemKind = Literal["load", "weight", "store"]
Step = tuple[int, int]
"""A workload by core and position."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that the DRAM queue does. `after`: workloads that must have ended; `stores`: ids that must have been
    stored. `tensor_id` is None for what goes straight to a weight store, and in dialect B; `gate`: the first snapshot
    that shows it, or has start_send."""

    kind: ItemKind
    transfer_id: int
    bytes: int
    core: int
    after: tuple[Step, ...]
    stores: tuple[int, ...] = ()
    tensor_id: int | None = None
    gate: int = 0
    never: str = ""  # why a store cannot begin

    def __str__(self) -> str:
        way = "from" if self.kind == "store" else "to"
        return f"{self.kind} of transfer {self.transfer_id} {way} core {self.core}"


@dataclass(frozen=True, slots=True)
class Send:
    """A result that goes to other cores, once. `shown`: destination core to its first snapshot with the id."""

    transfer_id: int
    step: Step
    bytes: int
    cores: tuple[int, ...]
    after: tuple[Step, ...]
    shown: dict[int, int] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a workload waits for. `items`, `rooms`, `late`: places in the queue; `pieces`: ids from other cores."""

    items: tuple[int, ...] = ()
    pieces: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    late: tuple[int, ...] = ()  # loads that tiles 3 and on wait for


@dataclass(frozen=True, slots=True)
class Plan:
    """Of one schedule. `queue`: the DRAM queue in order; `sends`: by core, workload, piece."""

    queue: tuple[Item, ...]
    sends: tuple[Send, ...]
    needs: dict[Step, Needs]
    stored: dict[int, tuple[int, ...]]
    """Places in the queue of the stores of each transfer."""


def make_plan(index: Index) -> Plan:
    """Raises ProgramError for a schedule whose items cannot be told."""
    return _plan_a(index) if index.ir.form.addressed else _plan_b(index)


# ------------------------------------------------------------------------------------------------------- dialect A
def _plan_a(index: Index) -> Plan:
    ordered = sorted(_items_a(index), key=lambda pair: (pair[0], pair[1].core, pair[1].tensor_id or 0))
    queue = tuple(item for _order, item in ordered)
    feeds: dict[tuple[int, int], list[int]] = {}
    leaving: dict[Step, list[int]] = {}
    direct: dict[Step, list[int]] = {}
    stored: dict[int, list[int]] = {}
    for place, item in enumerate(queue):
        if item.kind == "store":
            stored.setdefault(item.transfer_id, []).append(place)
            last = index.lives[item.core, item.tensor_id or 0].at[-1]
            leaving.setdefault((item.core, last + 1), []).append(place)
        else:
            feeds.setdefault((item.core, item.transfer_id), []).append(place)
            if item.tensor_id is None:
                direct.setdefault((item.core, item.gate), []).append(place)
    needs: dict[Step, Needs] = {}
    for work in index.ir.workloads():
        step = (work.core, work.index)
        items: list[int] = []
        for number in work.reads:
            there = [place for place in feeds.get((work.core, number), ()) if queue[place].gate <= work.index]
            if there:  # of several with one id: the latest
                items.append(max(there, key=lambda place: queue[place].gate))
        late = tuple(direct.get(step, ())) if _tile_by_tile(work) else ()
        needs[step] = Needs(tuple(items), _pieces(index, work), tuple(leaving.get(step, ())), late)
    return Plan(queue, tuple(_sends(index, gated=True)), needs, {key: tuple(at) for key, at in stored.items()})


def _tile_by_tile(work: Workload) -> bool:
    """Its weight goes from L2 to the weight store after the loads of the same snapshot (third tile, facts 5.3)."""
    if work.weight is None or len(work.tiles) <= 2:
        return False
    ids = set(work.weight.transfer_id)
    return any(item.source == "CORE" and ids & set(item.transfer_id) for item in work.wl0)


def _items_a(index: Index) -> Iterator[tuple[int, Item]]:
    """With their tensor_order."""
    for life in index.lives.values():
        if life.first.type == "ofmap":
            yield life.first.tensor_order, _store(index, life)
        elif life.first.from_dram:
            yield life.first.tensor_order, _load(index, life)
    seen: dict[tuple[int, int], tuple[WeightStore, int]] = {}
    for work in index.ir.workloads():
        for entry in work.wl0:
            if entry.source == "DDR" and entry.tensor_order is not None:
                seen.setdefault((work.core, entry.tensor_order), (entry, work.index))
    for (core, order), (entry, gate) in seen.items():
        outs = [index.outs[number] for number in entry.transfer_id if number in index.outs]
        if len(outs) != len(entry.transfer_id) or not outs:
            numbers = list(entry.transfer_id)
            raise ProgramError(f"{entry.place}: nothing leaves DRAM as transfers {numbers} for the weight store")
        after = ((core, gate - 1),) if gate else ()
        related = tuple(number for out in outs for number in out.related_ifmap)
        size = _size(sum(out.size for out in outs), entry.place)
        yield (
            order,
            Item(
                kind="weight",
                transfer_id=entry.transfer_id[0],
                bytes=size,
                core=core,
                after=after,
                stores=related,
                tensor_id=None,
                gate=gate,
            ),
        )


def _load(index: Index, life: Life) -> Item:
    tensor = life.first
    number = next(source.transfer_id for source in tensor.source if source.type == "DRAM")
    out = index.outs.get(number)
    if out is None:
        raise ProgramError(f"{tensor.place}: nothing leaves DRAM as transfer {number} for tensor {life.tensor_id}")
    gate = life.at[0]
    kind: ItemKind = "weight" if tensor.type == "weight" else "load"
    after = ((life.core, gate - 1),) if gate else ()
    return Item(
        kind=kind,
        transfer_id=number,
        bytes=_size(tensor.size, tensor.place),
        core=life.core,
        after=after,
        stores=out.related_ifmap,
        tensor_id=life.tensor_id,
        gate=gate,
    )


def _store(index: Index, life: Life) -> Item:
    tensor = life.first
    made = index.rooms.get((life.core, life.tensor_id))
    if made is None:
        raise ProgramError(
            f"{tensor.place}: tensor {life.tensor_id} waits to be stored, and no workload of layer "
            f"{tensor.layer_name!r} makes a result of its shape for DRAM"
        )
    gate = next((at for at, item in zip(life.at, life.tensors, strict=True) if item.start_send), None)
    step = (life.core, made.work.index)
    before = ((life.core, gate - 1),) if gate and gate - 1 != made.work.index else ()
    never = "" if gate is not None else f"start_send of tensor {life.tensor_id} of core {life.core}"
    return Item(
        kind="store",
        transfer_id=made.piece.transfer_id,
        bytes=_size(tensor.size, tensor.place),
        core=life.core,
        after=(step, *before),
        stores=(),
        tensor_id=life.tensor_id,
        gate=gate or 0,
        never=never,
    )


def _size(size: int, place: str) -> int:
    if size < 0:
        raise ProgramError(f"{place}: a transfer of {size} bytes is not possible")
    return size


def _pieces(index: Index, work: Workload) -> tuple[int, ...]:
    """Ids that other cores make and send."""
    made = ((number, index.made.get(number)) for number in work.reads if number not in index.outs)
    return tuple(number for number, item in made if item is not None and item.work.core != work.core)


def _sends(index: Index, *, gated: bool) -> Iterator[Send]:
    """`gated`: a piece leaves when its room is there (A)."""
    shown = _first_shown(index) if gated else {}
    for work in index.ir.workloads():
        for piece in work.ofmap:
            others = {to.core_id for to in piece.destination if to.type == "core" and to.core_id != work.core}
            cores = tuple(sorted(others & set(index.ir.cores)))
            if not cores:
                continue
            first = {core: shown[core, piece.transfer_id] for core in cores if (core, piece.transfer_id) in shown}
            after = tuple((core, at - 1) for core, at in first.items() if at)
            size = _size(piece.size if gated else -(-piece.size // 8), piece.place)
            yield Send(
                transfer_id=piece.transfer_id,
                step=(work.core, work.index),
                bytes=size,
                cores=cores,
                after=after,
                shown=first,
            )


def _first_shown(index: Index) -> dict[tuple[int, int], int]:
    """By core and transfer: the first snapshot with an ifmap tensor that has it as source."""
    found: dict[tuple[int, int], int] = {}
    for work in index.ir.workloads():
        for tensor in work.buffer:
            for source in tensor.source if tensor.type == "ifmap" else ():
                found.setdefault((work.core, source.transfer_id), work.index)
    return found


# ------------------------------------------------------------------------------------------------------- dialect B
def load_key(index: Index, number: int, first: Workload) -> tuple[int, int, int]:
    """Place in the DRAM queue of dialect B: before the first workload that shows it, or after the last store that it
    needs (facts GEMINI 5.5)."""
    related = index.outs[number].related_ifmap if number in index.outs else ()
    makers = [index.made[entry].work.workload_id for entry in related if entry in index.made]
    last = max(makers, default=-1)
    return (last, 2, number) if last >= first.workload_id else (first.workload_id, 0, number)


def first_showing(works: Sequence[Workload]) -> dict[int, Workload]:
    """Of each transfer: the workload with the smallest id whose snapshot, ifmap or weight shows it (B)."""
    found: dict[int, Workload] = {}
    for work in sorted(works, key=lambda item: (item.workload_id, item.core, item.index)):
        for number in work.reads:
            found.setdefault(number, work)
        for tensor in work.buffer:
            for number in tensor.transfer_id:
                found.setdefault(number, work)
            for source in tensor.source:
                found.setdefault(source.transfer_id, work)
    return found


def _plan_b(index: Index) -> Plan:
    works = index.ir.workloads()
    shown = first_showing(works)
    items: list[tuple[tuple[int, int, int], Item]] = []
    for out in index.outs.values():
        if out.transfer_id in index.readers:
            first = shown[out.transfer_id]
            kind: ItemKind = "weight" if out.type == "weight" else "load"
            after = ((first.core, first.index - 1),) if first.index else ()
            size = _size(-(-out.size // 8), out.place)
            item = Item(
                kind=kind,
                transfer_id=out.transfer_id,
                bytes=size,
                core=first.core,
                after=after,
                stores=out.related_ifmap,
                tensor_id=None,
                gate=first.index,
            )
            items.append((load_key(index, out.transfer_id, first), item))
    for work in works:
        for piece in work.ofmap:
            if piece.to_dram and index.made[piece.transfer_id].piece is piece:
                size = _size(-(-piece.size // 8), piece.place)
                step = (work.core, work.index)
                item = Item(
                    kind="store",
                    transfer_id=piece.transfer_id,
                    bytes=size,
                    core=work.core,
                    after=(step,),
                    stores=(),
                    tensor_id=None,
                    gate=work.index,
                )
                items.append(((work.workload_id, 1, piece.transfer_id), item))
    items.sort(key=lambda pair: pair[0])
    queue = tuple(item for _key, item in items)
    loaded = {item.transfer_id: place for place, item in enumerate(queue) if item.kind != "store"}
    stored = {item.transfer_id: (place,) for place, item in enumerate(queue) if item.kind == "store"}
    needs = {
        (work.core, work.index): Needs(
            tuple(loaded[number] for number in work.reads if number in loaded), _pieces(index, work)
        )
        for work in works
    }
    return Plan(queue, tuple(_sends(index, gated=False)), needs, stored)
