"""One epoch of a placement alone, so that the timing model can evaluate it separately."""

from dataclasses import replace

from buda_emu.compiler.place.placement import Placement, Queue


def epoch_of(placement: Placement, epoch: int) -> Placement:
    """The ops of an epoch; queues that other epochs fill are filled by the host, without its link."""
    ops = {name: replace(placed, epoch=0) for name, placed in placement.ops.items() if placed.epoch == epoch}
    stores = {name: store for name, store in placement.tiles.stores.items() if store.op in ops}
    found = replace(placement, ops=ops, queues={}, epochs=1, step=1, tiles=replace(placement.tiles, stores=stores))
    read = {found.source(use.source, placed) for placed in ops.values() for use in placed.op.uses}
    read |= {queue.alias for name, queue in placement.queues.items() if name in read and queue.alias}

    def own(queue: Queue) -> Queue:
        if queue.input in ops or queue.role not in ("between", "state"):
            return queue
        return replace(queue, input="HOST", role="input" if queue.role == "between" else queue.role, life=None)

    found.queues = {name: own(queue) for name, queue in placement.queues.items() if name in read or queue.input in ops}
    return found
