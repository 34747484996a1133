"""Which bytes of L2 the tasks of a timeline touch (dialect A), and those that no order of waits keeps apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buda_emu.gemini.index import Index, holding, read_tensor
from buda_emu.gemini.model import Tensor, Workload
from buda_emu.gemini.rings import region_of
from buda_emu.gemini.time.timing import Timeline
from buda_emu.timeline import Access, Hazard, Ring, happens_before, order_conflicts


@dataclass(frozen=True, slots=True)
class L2Access:
    """An access of the timeline, and the tensor that is touched."""

    access: Access
    tensor_id: int


def l2_accesses(timeline: Timeline) -> list[L2Access]:
    """Of a timeline from a schedule with addresses; none of others. Tensors are touched as wholes."""
    index, plan = timeline.index, timeline.plan
    if index is None or plan is None or not index.ir.form.addressed:
        return []
    found: list[L2Access] = []
    for item, task in zip(plan.queue, timeline.item_tasks, strict=True):
        if item.tensor_id is not None:
            tensor = index.lives[item.core, item.tensor_id].first
            work = index.ir.cores[item.core][item.gate]
            found += _one(task, work, tensor, writes=item.kind != "store")
    for work in index.ir.workloads():
        for task in timeline.tasks_of[work.core, work.index]:
            for tensor, writes in _of_workload(index, work):
                found += _one(task, work, tensor, writes=writes)
    for send, task in zip(plan.sends, timeline.send_tasks, strict=True):
        for core, at in send.shown.items():
            work = index.ir.cores[core][at]
            for tensor, _source in holding(work, send.transfer_id):
                found += _one(task, work, tensor, writes=True)
    return found


def _of_workload(index: Index, work: Workload) -> Iterator[tuple[Tensor, bool]]:
    """Tensors that it touches, and whether it writes them."""
    for operand in work.ifmap:
        tensor = read_tensor(work, operand)
        if tensor is not None:
            yield tensor, False
    ids = set(work.weight.transfer_id) if work.weight else set[int]()
    rooms = {index.stored_in.get(piece.transfer_id) for piece in work.ofmap}
    made = {piece.transfer_id for piece in work.ofmap}
    for tensor in work.buffer:
        if tensor.type == "weight" and ids & set(tensor.transfer_id):
            yield tensor, False
        elif (tensor.type == "ofmap" and (work.core, tensor.tensor_id) in rooms) or (
            tensor.type == "ifmap" and made & {source.transfer_id for source in tensor.source}
        ):
            yield tensor, True


def _one(task: int, work: Workload, tensor: Tensor, *, writes: bool) -> Sequence[L2Access]:
    region = region_of(work.regions or (), tensor.address)
    if region is None or not 0 < tensor.size <= region[1] - region[0]:
        return ()  # G040 and G047 tell
    access = Access(task, f"L2 of core {work.core}", tensor.address, tensor.size, writes, Ring(*region))
    return (L2Access(access, tensor.tensor_id),)


def l2_races(timeline: Timeline) -> list[Hazard]:
    """Pairs of tasks that touch common bytes of L2, one of them writing, and that no chain of waits orders: in some run
    they could meet. Pieces that are written into one tensor are not told of: they are disjoint (G036)."""
    accesses = l2_accesses(timeline)
    order = happens_before(timeline.schedule)
    by_task: dict[tuple[int, str], list[L2Access]] = {}
    for item in accesses:
        by_task.setdefault((item.access.task, item.access.space), []).append(item)
    return [
        hazard
        for hazard in order_conflicts(order, [item.access for item in accesses])
        if any(_meet(a, b) for a in by_task[hazard.first, hazard.space] for b in by_task[hazard.second, hazard.space])
    ]


def _meet(first: L2Access, second: L2Access) -> bool:
    """They share bytes, one writes, and they are not two pieces of one tensor."""
    if not (first.access.writes or second.access.writes):
        return False
    if first.tensor_id == second.tensor_id and first.access.writes and second.access.writes:
        return False
    return any(max(a, c) < min(b, d) for a, b in first.access.pieces() for c, d in second.access.pieces())
