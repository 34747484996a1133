"""Plan a schedule: the DRAM queue, the pieces sent between cores, and what each workload waits for (facts GEMINI 5.3 to
5.5). Timing (`schedule`) and execution (`execution`) follow the same plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from buda_emu.foreign.gemini.index import Index, Life
from buda_emu.foreign.gemini.model import WeightStore, Workload
from buda_emu.support.errors import ProgramError

TransferKind = Literal["load", "weight", "store"]
Step = tuple[int, int]
"""A workload by core and position."""


@dataclass(frozen=True, slots=True)
class DramTransfer:
    """One transfer of the DRAM queue. `after` lists the workloads that must have ended, `stores` the ids that must have
    been stored. `tensor_id` is None for what goes straight to a weight store, and in dialect B; `gate` is the first
    snapshot that shows the tensor, or in which it has start_send."""

    kind: TransferKind
    transfer_id: int
    bytes: int
    core: int
    after: tuple[Step, ...]
    stores: tuple[int, ...] = ()
    tensor_id: int | None = None
    gate: int = 0
    never: str = ""  # why a store cannot begin

    def __str__(self) -> str:
        direction = "from" if self.kind == "store" else "to"
        return f"{self.kind} of transfer {self.transfer_id} {direction} core {self.core}"


@dataclass(frozen=True, slots=True)
class Send:
    """A result that goes to other cores, once for all of them. `shown` maps a destination core to its first snapshot
    with the id."""

    transfer_id: int
    step: Step
    bytes: int
    cores: tuple[int, ...]
    after: tuple[Step, ...]
    shown: dict[int, int] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Needs:
    """The waits of one workload. `items`, `rooms` and `late` are positions in the DRAM queue, `pieces` ids from other
    cores."""

    items: tuple[int, ...] = ()
    pieces: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    late: tuple[int, ...] = ()  # loads that tiles 3 and on wait for


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one schedule. `queue` is the DRAM queue in order; `sends` is sorted by core, workload and piece."""

    queue: tuple[DramTransfer, ...]
    sends: tuple[Send, ...]
    needs: dict[Step, Needs]
    stored: dict[int, tuple[int, ...]]
    """Places in the queue of the stores of each transfer."""


def make_plan(index: Index) -> Plan:
    """Return the plan of a schedule. Raises ProgramError where a transfer has no producer, no result, or a negative
    size."""
    if index.ir.form.addressed:
        return _plan_a(index)
    return _plan_b(index)


# ------------------------------------------------------------------------------------------------------- dialect A
def _plan_a(index: Index) -> Plan:
    """Return the plan of a schedule of dialect A, whose DRAM queue follows tensor_order."""
    ordered = sorted(_list_transfers_a(index), key=lambda pair: (pair[0], pair[1].core, pair[1].tensor_id or 0))
    queue = tuple(transfer for _order, transfer in ordered)
    feeds: dict[tuple[int, int], list[int]] = {}
    leaving: dict[Step, list[int]] = {}
    direct: dict[Step, list[int]] = {}
    stored: dict[int, list[int]] = {}
    for place, transfer in enumerate(queue):
        if transfer.kind == "store":
            stored.setdefault(transfer.transfer_id, []).append(place)
            last = index.lives[transfer.core, transfer.tensor_id or 0].at[-1]
            leaving.setdefault((transfer.core, last + 1), []).append(place)
        else:
            feeds.setdefault((transfer.core, transfer.transfer_id), []).append(place)
            if transfer.tensor_id is None:
                direct.setdefault((transfer.core, transfer.gate), []).append(place)
    needs: dict[Step, Needs] = {}
    for work in index.ir.workloads():
        step = (work.core, work.index)
        needs[step] = Needs(
            items=tuple(_find_latest_loads(work, queue, feeds)),
            pieces=_remote_pieces(index, work),
            rooms=tuple(leaving.get(step, ())),
            late=tuple(direct.get(step, ())) if _third_tile_waits(work) else (),
        )
    sends = tuple(_list_sends(index, gated=True))
    return Plan(queue, sends, needs, {number: tuple(places) for number, places in stored.items()})


def _find_latest_loads(
    work: Workload, queue: Sequence[DramTransfer], feeds: Mapping[tuple[int, int], Sequence[int]]
) -> Iterator[int]:
    """Yield, for each loaded transfer that a workload reads, the position of its latest load up to the workload."""
    for number in work.reads:
        places = [place for place in feeds.get((work.core, number), ()) if queue[place].gate <= work.index]
        if places:
            yield max(places, key=lambda place: queue[place].gate)


def _third_tile_waits(work: Workload) -> bool:
    """Return whether the workload's weight goes from L2 to the weight store after the loads of the same snapshot, so
    that its third tile waits (facts GEMINI 5.3)."""
    if work.weight is None or len(work.tiles) <= 2:
        return False
    ids = set(work.weight.transfer_id)
    return any(entry.source == "CORE" and ids & set(entry.transfer_id) for entry in work.wl0)


def _list_transfers_a(index: Index) -> Iterator[tuple[int, DramTransfer]]:
    """Yield the DRAM transfers of dialect A, each with its tensor_order."""
    for life in index.lives.values():
        if life.first.type == "ofmap":
            yield life.first.tensor_order, _make_store(index, life)
        elif life.first.from_dram:
            yield life.first.tensor_order, _make_load(index, life)
    direct_entries: dict[tuple[int, int], tuple[WeightStore, int]] = {}
    for work in index.ir.workloads():
        for entry in work.wl0:
            if entry.source == "DDR" and entry.tensor_order is not None:
                direct_entries.setdefault((work.core, entry.tensor_order), (entry, work.index))
    for (core, order), (entry, gate) in direct_entries.items():
        yield order, _make_direct_load(index, core, entry, gate)


def _make_direct_load(index: Index, core: int, entry: WeightStore, gate: int) -> DramTransfer:
    """Return the load of a weight straight into a core's weight store. Raises ProgramError where it has no `out`."""
    outs = [index.outs[number] for number in entry.transfer_id if number in index.outs]
    if len(outs) != len(entry.transfer_id) or not outs:
        numbers = list(entry.transfer_id)
        raise ProgramError(f"{entry.place}: nothing leaves DRAM as transfers {numbers} for the weight store")
    related: list[int] = []
    for out in outs:
        related += out.related_ifmap
    return DramTransfer(
        kind="weight",
        transfer_id=entry.transfer_id[0],
        bytes=_require_size(sum(out.size for out in outs), entry.place),
        core=core,
        after=((core, gate - 1),) if gate else (),
        stores=tuple(related),
        tensor_id=None,
        gate=gate,
    )


def _make_load(index: Index, life: Life) -> DramTransfer:
    """Return the load of a tensor into L2, which may begin when the snapshot before the first one with it has
    ended. Raises ProgramError where nothing leaves DRAM under its id."""
    tensor = life.first
    number = next(source.transfer_id for source in tensor.source if source.type == "DRAM")
    out = index.outs.get(number)
    if out is None:
        raise ProgramError(f"{tensor.place}: nothing leaves DRAM as transfer {number} for tensor {life.tensor_id}")
    gate = life.at[0]
    if tensor.type == "weight":
        kind: TransferKind = "weight"
    else:
        kind = "load"
    after = ((life.core, gate - 1),) if gate else ()
    return DramTransfer(
        kind=kind,
        transfer_id=number,
        bytes=_require_size(tensor.size, tensor.place),
        core=life.core,
        after=after,
        stores=out.related_ifmap,
        tensor_id=life.tensor_id,
        gate=gate,
    )


def _make_store(index: Index, life: Life) -> DramTransfer:
    """Return the store of a result from its `ofmap` tensor, which may begin in the first snapshot with start_send.
    Raises ProgramError for a tensor that holds no result."""
    tensor = life.first
    output = index.output_by_room.get((life.core, life.tensor_id))
    if output is None:
        raise ProgramError(
            f"{tensor.place}: tensor {life.tensor_id} waits to be stored, and no workload of layer "
            f"{tensor.layer_name!r} makes a result of its shape for DRAM"
        )
    gate = next((at for at, tensor_state in zip(life.at, life.tensors, strict=True) if tensor_state.start_send), None)
    step = (life.core, output.work.index)
    if gate and gate - 1 != output.work.index:
        before = ((life.core, gate - 1),)
    else:
        before = ()
    if gate is not None:
        never = ""
    else:
        never = f"start_send of tensor {life.tensor_id} of core {life.core}"
    return DramTransfer(
        kind="store",
        transfer_id=output.piece.transfer_id,
        bytes=_require_size(tensor.size, tensor.place),
        core=life.core,
        after=(step, *before),
        stores=(),
        tensor_id=life.tensor_id,
        gate=gate or 0,
        never=never,
    )


def _require_size(size: int, place: str) -> int:
    """Return a size in bytes. Raises ProgramError, with the place in the file, for a negative one."""
    if size < 0:
        raise ProgramError(f"{place}: a transfer of {size} bytes is not possible")
    return size


def _remote_pieces(index: Index, work: Workload) -> tuple[int, ...]:
    """Return the ids that a workload reads and that other cores make."""
    producers = ((number, index.outputs_by_id.get(number)) for number in work.reads if number not in index.outs)
    return tuple(number for number, producer in producers if producer is not None and producer.work.core != work.core)


def _list_sends(index: Index, *, gated: bool) -> Iterator[Send]:
    """Yield the sends of all workloads. With `gated` (dialect A) a piece leaves only when its room is there."""
    shown = _find_first_snapshots(index) if gated else {}
    for work in index.ir.workloads():
        for piece in work.ofmap:
            others = {to.core_id for to in piece.destination if to.type == "core" and to.core_id != work.core}
            cores = tuple(sorted(others & set(index.ir.cores)))
            if not cores:
                continue
            first = {core: shown[core, piece.transfer_id] for core in cores if (core, piece.transfer_id) in shown}
            after = tuple((core, at - 1) for core, at in first.items() if at)
            size = _require_size(piece.size if gated else -(-piece.size // 8), piece.place)
            yield Send(
                transfer_id=piece.transfer_id,
                step=(work.core, work.index),
                bytes=size,
                cores=cores,
                after=after,
                shown=first,
            )


def _find_first_snapshots(index: Index) -> dict[tuple[int, int], int]:
    """Return, by core and transfer, the first snapshot with an ifmap tensor that has the transfer as a source."""
    first_snapshots: dict[tuple[int, int], int] = {}
    for work in index.ir.workloads():
        for tensor in work.buffer:
            for source in tensor.source if tensor.type == "ifmap" else ():
                first_snapshots.setdefault((work.core, source.transfer_id), work.index)
    return first_snapshots


# ------------------------------------------------------------------------------------------------------- dialect B
def load_order(index: Index, number: int, first: Workload) -> tuple[int, int, int]:
    """Return the sort key of the load of transfer `number` in the DRAM queue of dialect B: before `first`, the
    first workload that shows it, or after the last store that it needs (facts GEMINI 5.5)."""
    if number in index.outs:
        related = index.outs[number].related_ifmap
    else:
        related = ()
    makers = [index.outputs_by_id[entry].work.workload_id for entry in related if entry in index.outputs_by_id]
    last = max(makers, default=-1)
    if last >= first.workload_id:
        return (last, 2, number)
    return (first.workload_id, 0, number)


def find_first_works(works: Sequence[Workload]) -> dict[int, Workload]:
    """Return for each transfer the workload with the smallest id whose snapshot, ifmap or weight shows it (dialect
    B)."""
    first_works: dict[int, Workload] = {}
    for work in sorted(works, key=lambda work_key: (work_key.workload_id, work_key.core, work_key.index)):
        for number in work.reads:
            first_works.setdefault(number, work)
        for tensor in work.buffer:
            for number in tensor.transfer_id:
                first_works.setdefault(number, work)
            for source in tensor.source:
                first_works.setdefault(source.transfer_id, work)
    return first_works


def _plan_b(index: Index) -> Plan:
    """Return the plan of a schedule of dialect B, whose DRAM queue follows the ids of workloads."""
    works = index.ir.workloads()
    transfers = sorted([*_list_loads_b(index, works), *_list_stores_b(index, works)], key=lambda pair: pair[0])
    queue = tuple(transfer for _key, transfer in transfers)
    loaded: dict[int, int] = {}
    stored: dict[int, tuple[int, ...]] = {}
    for place, transfer in enumerate(queue):
        if transfer.kind == "store":
            stored[transfer.transfer_id] = (place,)
        else:
            loaded[transfer.transfer_id] = place
    needs: dict[Step, Needs] = {}
    for work in works:
        items = tuple(loaded[number] for number in work.reads if number in loaded)
        needs[work.core, work.index] = Needs(items, _remote_pieces(index, work))
    return Plan(queue, tuple(_list_sends(index, gated=False)), needs, stored)


def _list_loads_b(index: Index, works: Sequence[Workload]) -> Iterator[tuple[tuple[int, int, int], DramTransfer]]:
    """Yield the loads of dialect B, each with its sort key in the DRAM queue."""
    first_works = find_first_works(works)
    for out in index.outs.values():
        if out.transfer_id in index.readers:
            first = first_works[out.transfer_id]
            load = DramTransfer(
                kind="weight" if out.type == "weight" else "load",
                transfer_id=out.transfer_id,
                bytes=_require_size(-(-out.size // 8), out.place),
                core=first.core,
                after=((first.core, first.index - 1),) if first.index else (),
                stores=out.related_ifmap,
                tensor_id=None,
                gate=first.index,
            )
            yield load_order(index, out.transfer_id, first), load


def _list_stores_b(index: Index, works: Sequence[Workload]) -> Iterator[tuple[tuple[int, int, int], DramTransfer]]:
    """Yield the stores of dialect B, each with its sort key in the DRAM queue."""
    for work in works:
        for piece in work.ofmap:
            if piece.to_dram and index.outputs_by_id[piece.transfer_id].piece is piece:
                store = DramTransfer(
                    kind="store",
                    transfer_id=piece.transfer_id,
                    bytes=_require_size(-(-piece.size // 8), piece.place),
                    core=work.core,
                    after=((work.core, work.index),),
                    stores=(),
                    tensor_id=None,
                    gate=work.index,
                )
                yield (work.workload_id, 1, piece.transfer_id), store
