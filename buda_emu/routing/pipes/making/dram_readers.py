"""How many pipes read each buffer of a queue, and which of them a pipe is: readers share a queue's pointers, and pipes
that fork from another one's reads do not read at all (net2pipe's dram fork pipes)."""

from collections.abc import Collection, Mapping, Sequence

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.making.make_pipes import Draft, period
from buda_emu.routing.pipes.making.nocs import Route
from buda_emu.routing.pipes.model import Pipe
from buda_emu.spec.devices import device

BLOCK = 100_000
"""Places of a buffer that count as one buffer of readers."""

Group = tuple[str, str]


def with_readers(epoch: Epoch, drafts: Sequence[Draft], routes: Sequence[Route], tiles: "Sequence[int]") -> list[Pipe]:
    """The finished pipes. `tiles`: for each the tiles of one input."""
    extra = _readers(epoch, drafts)
    return [
        _pipe(epoch, draft, route, size, extra.get(draft.id, {}))
        for draft, route, size in zip(drafts, routes, tiles, strict=True)
    ]


def _pipe(epoch: Epoch, draft: Draft, route: Route, tiles: int, extra: dict[str, object]) -> Pipe:
    inputs, repeat = draft.inputs, 0
    if tiles and (found := period(inputs, tiles, draft.cleared)):
        inputs, repeat = inputs[:found], len(inputs) // found
    op = epoch.ops.get(draft.reader)
    sizes = op.input_dram_io_buf_size_tiles if op is not None else ()
    return Pipe(
        id=draft.id,
        inputs=tuple(inputs),
        outputs=tuple(draft.outputs),
        output_padding=tuple(draft.padding),
        mcast_core_rc=tuple(_on_noc(epoch, draft.cores) if route.ethernet and not draft.link else draft.cores),
        pipe_periodic_repeat=repeat,
        pipe_consumer_repeat=draft.repeats,
        incoming_noc_id=route.incoming,
        incoming_vc=route.incoming_vc,
        outgoing_noc_id=route.outgoing,
        outgoing_vc=route.outgoing_vc,
        direct_mcast=route.direct,
        ethernet_pipe=route.ethernet,
        ethernet_chan=draft.channel,
        mmio_pipe=route.downstream is not None,
        mmio_pipe_downstream=bool(route.downstream),
        op_input_dram_io_buf_size_tiles=sizes[draft.operand] if draft.operand < len(sizes) else 0,
        **extra,  # pyright: ignore[reportArgumentType] - the fields that _readers gives
    )


def _on_noc(epoch: Epoch, cores: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Chips and rows and columns of the NoC, in which net2pipe gives the cores of pipes from another chip's DRAM."""
    physical = device(epoch.netlist.arch_name).physical
    places = ((chip, *physical(row, column)) for chip, row, column in cores)
    return [(chip, y, x) for chip, x, y in places]


def _readers(epoch: Epoch, drafts: Sequence[Draft]) -> dict[int, dict[str, object]]:
    groups = _groups(epoch, drafts)
    queues = epoch.netlist.queues
    read = {draft.id: [one // BLOCK for one in draft.inputs] for draft in drafts if draft.source in queues}
    blocks = {id: set(each) for id, each in read.items()}
    total: dict[int, int] = {}
    for forks in groups.values():
        for pipes, forked in forks:
            for draft in pipes[:1] if forked else pipes:
                for one in blocks[draft.id]:
                    total[one] = total.get(one, 0) + 1
    found: dict[int, dict[str, object]] = {}
    current: dict[int, int] = {}
    for forks in groups.values():
        for pipes, forked in forks:
            for number, draft in enumerate(pipes):
                found[draft.id] = {
                    "dram_pipe_total_readers": _of_each(read[draft.id], blocks[draft.id], total),
                    "dram_pipe_reader_index": _of_each(read[draft.id], blocks[draft.id], current),
                    "dram_pipe_num_forks": len(pipes) if forked else 1,
                    "dram_pipe_fork_index": number if forked else 0,
                }
                if not forked or number == len(pipes) - 1:
                    for one in blocks[(pipes[0] if forked else draft).id]:
                        current[one] = current.get(one, 0) + 1
    return found


def _of_each(read: Sequence[int], blocks: Collection[int], counts: Mapping[int, int]) -> tuple[int, ...]:
    """The count of the buffer of readers that each input is in, 0 for none yet."""
    known = {one: counts.get(one, 0) for one in blocks}
    if len(known) == 1:
        return (known[read[0]],) * len(read)
    return tuple(map(known.__getitem__, read))


def _groups(epoch: Epoch, drafts: Sequence[Draft]) -> dict[Group, list[tuple[list[Draft], bool]]]:
    """For each queue and op that reads it: its pipes by what they read, with those that fork from them, and whether
    there are ops that fork. All in the order in which readers are numbered."""
    forks: dict[Group, bool] = {}
    for op in epoch.ops.values():
        own = dict(op.forked_dram_inputs)
        for name in op.inputs:
            if name in epoch.netlist.queues and name not in own:
                forks.setdefault((name, op.name), False)
        for name, reader in own.items():
            forks[name, reader] = True
    found: dict[Group, dict[tuple[int, ...], list[Draft]]] = {}
    for draft in drafts:
        op = epoch.ops.get(draft.reader)
        if op is None or draft.source not in epoch.netlist.queues:
            continue
        group = _group_of(op, draft.source, forks)
        pipes = found.setdefault(group, {}).setdefault(tuple(draft.inputs), [])
        pipes.insert(0 if group[1] == op.name else len(pipes), draft)
    return {
        group: [(found[group][inputs], forks.get(group, False)) for inputs in sorted(found[group])]
        for group in sorted(found)
    }


def _group_of(op: Op, queue: str, forks: dict[Group, bool]) -> Group:
    own = dict(op.forked_dram_inputs)
    return (queue, op.name) if (queue, op.name) in forks else (queue, own[queue])
