"""NoCs and virtual channels of pipes, the DRAM port of each read, and the number of pipes that read each buffer of a
queue."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import is_after, is_remote, over_pcie, window
from buda_emu.performance.routing.pipes.granularity import base_of
from buda_emu.performance.routing.pipes.make_pipes import Draft, PipeMaker, period
from buda_emu.performance.routing.pipes.model import Pipe
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.ops.operands import Multicast, direct, multicast
from buda_emu.spec.devices import device

WRITE_VC = 0
UNICAST_VC = 2
MULTICAST_VC = 4
"""Virtual channels that net2pipe gives to pipes: to queues and over PCIe, to one reader, to several at once."""
HOST_CORE: Final = (255, 255)  # stands for the host, which is no core


@dataclass(slots=True)
class Route:
    """The NoCs and virtual channels of a pipe: incoming from its sources to the core that carries it out, outgoing from
    there to its receivers."""

    incoming: int = 0
    outgoing: int = 0
    incoming_vc: int = 0
    outgoing_vc: int = 0
    direct: bool = False
    ethernet: bool = False
    downstream: bool | None = None
    """Whether a pipe over PCIe goes to the next chip of the ring, not to the one before; None for other pipes."""


@dataclass(slots=True)
class _Seen:
    """The last pipe that was routed to an operand: its route, whether it loops back, and whether it multicasts."""

    route: Route
    loops_back: bool
    multicast: bool


class Nocs:
    """Assigns DRAM ports, NoCs and virtual channels to the pipes of an epoch. `route_pipes` returns the latter; `ports`
    has the former from the start."""

    def __init__(self, epoch: Epoch, buffers: Buffers, pipes: PipeMaker) -> None:
        self.epoch = epoch
        self.buffers = buffers
        self.pipes = pipes
        self.device = device(epoch.netlist.arch_name)
        self.ports: dict[int, int] = {}
        """DRAM port of each buffer of a queue."""
        self._cores: dict[int, list[tuple[int, int]]] = {}
        self._multicasts: dict[tuple[str, int], Multicast] = {}
        self._directs: dict[tuple[str, str, Multicast], int | None] = {}
        self._link_cycles: dict[tuple[str, str], int] = {}
        self._assign_ports()

    def route_pipes(self) -> list[Route]:
        """Return the route of each pipe in `pipes.made`, in that order. Operands of an op are moved to the other NoC,
        as far as they may go there, while one NoC carries at least two more of them."""
        last: dict[tuple[str, int], _Seen] = {}
        routes = [self._route(draft, last) for draft in self.pipes.made]
        for op in self.epoch.ops.values():
            self._balance([last[op.name, index] for index in range(len(op.inputs)) if (op.name, index) in last])
        return routes

    def _assign_ports(self) -> None:
        """Choose for each piece of each queue's buffer the port of its channel that has the fewest pieces so far, and
        note in `ports` that of the first piece. A pipe's NoC follows from the port of the piece that it reads or writes
        first."""
        used: dict[int, list[list[int]]] = {}
        for buffer in sorted(self.buffers.queues.made, key=lambda buffer: buffer.id):
            queue = buffer.queue
            if queue.loc == "host" or window(self.epoch, queue) is not None:
                self._cores[buffer.id] = [HOST_CORE]
                continue
            channel = queue.buffers[buffer.cell].channel
            chip = used.setdefault(queue.target_device, [[0] * len(ports) for ports in self.device.dram_cores])
            cores = self.device.dram_cores[channel]
            counts = chip[channel]
            if self.pipes.cuts[queue.name].scattered:
                pieces = self.buffers.queues.pieces(queue)
            else:
                pieces = 1
            ports_taken = _choose_ports(counts, pieces)
            self._cores[buffer.id] = [cores[port] for port in ports_taken]
            self.ports[buffer.id] = ports_taken[0]
        for (name, _), ids in self.buffers.queues.forks.items():  # all are told the port of the queue's first buffer
            for own_id, first in zip(ids, self.buffers.queues.ids[name], strict=True):
                self.ports[own_id] = self.ports.get(first, 0)

    def _noc_place(self, id: int, tiles: int) -> tuple[int, int]:
        """Return x, y on the NoC at which a buffer's piece is reached: its core in L1, or the DRAM port. `id` is the
        piece's, `tiles` the tiles of each piece."""
        base = base_of(id)
        cores = self._cores.get(base)
        if cores is not None:
            if len(cores) > 1:
                return cores[(id - base) // tiles]
            return cores[0]
        if base in self.buffers.padding.made:
            return self.device.dram_cores[0][0]
        if base in self.buffers.ops.channel:
            row, column = self.buffers.core[base]
            return column, row
        return self.device.physical(*self.buffers.core[base])

    def distance(self, noc: int, start: tuple[int, int], end: tuple[int, int]) -> int:
        """Return the number of hops from x, y to x, y over a NoC (0 or 1): rightward and down on NoC 0, leftward and up
        on NoC 1, around the edges."""
        sizes = self.device.noc_grid
        ahead = [b - a + (size if b < a else 0) for a, b, size in zip(start, end, sizes, strict=True)]
        if noc == 0:
            return sum(ahead)
        return sum(size - hops for hops, size in zip(ahead, sizes, strict=True) if hops)

    def _nearer_noc(self, start: tuple[int, int], end: tuple[int, int]) -> int:
        """Return the NoC (0 or 1) with fewer hops from x, y to x, y; 0 if both have as many."""
        if self.distance(0, start, end) > self.distance(1, start, end):
            return 1
        return 0

    def _route(self, draft: Draft, last: dict[tuple[str, int], _Seen]) -> Route:
        """Return the route of a pipe; if it brings an operand to worker cores, also enter it in `last`, by op and
        operand."""
        queues = self.epoch.netlist.queues
        if draft.reader in queues and not draft.to_relay:
            return self._to_queue(draft)
        if draft.steps == 1:
            return Route()
        if draft.link:
            return self._over_link(draft)
        op = self.epoch.ops.get(draft.reader)
        if op is None or draft.to_relay or is_ethernet(op):
            return Route(self._incoming_noc_of_relay(draft), 0, UNICAST_VC, UNICAST_VC)
        return self._to_workers(draft, op, last)

    def _to_workers(self, draft: Draft, op: Op, last: dict[tuple[str, int], _Seen]) -> Route:
        """Return the route of a pipe that brings an operand to worker cores, and enter it in `last`, by op and
        operand."""
        shared = self._multicast_of(op, draft.operand)
        is_multicast = len(draft.outputs[0]) > 1
        noc1 = shared.noc1
        if not shared.rows and not shared.columns:
            noc1 = noc1 or op.grid_transpose != bool(draft.operand % 2)
        how = Multicast(shared.rows and is_multicast, shared.columns and is_multicast, shared.noc1)
        if not draft.from_relay:
            return self._route_operand(draft, op, how, noc1, last)
        route = Route(self._straight_noc(draft), int(noc1), UNICAST_VC, _outgoing_vc(how))
        last[op.name, draft.operand] = _Seen(route, True, how.rows or how.columns)
        return route

    def _over_link(self, draft: Draft) -> Route:
        """Return the route of a pipe from one end of an Ethernet link to the other."""
        if self.epoch.links is not None:
            return Route(ethernet=True)
        return Route(self._straight_noc(draft), 0, UNICAST_VC, UNICAST_VC, ethernet=True)

    def _route_operand(
        self, draft: Draft, op: Op, how: Multicast, noc1: bool, last: dict[tuple[str, int], _Seen]
    ) -> Route:
        """Return the route of a pipe from an op or queue to an operand on worker cores, and enter it in `last`. `how`
        says where it multicasts, `noc1` whether over NoC 1 where nothing else decides."""
        padding = self.buffers.padding.made.get(base_of(draft.inputs[0]))
        from_queue = draft.steps == 2 or draft.source in self.epoch.netlist.queues or padding is not None
        alone = not from_queue and not draft.gathers_cores
        beside = None
        if alone and not draft.scattered:
            beside = self._direct_noc(self.epoch.ops[draft.source], op, how)
        if beside is not None:
            noc1 = beside == 1
        route = Route(
            incoming=0,
            outgoing=int(noc1),
            incoming_vc=UNICAST_VC,
            outgoing_vc=_outgoing_vc(how),
            direct=beside is not None,
        )
        if not from_queue:
            self._route_from_op(route, draft, op)
            alone = alone and not is_ethernet(self.epoch.ops[draft.source])
        elif self._reads_l1(draft):
            route.incoming = 1 - route.outgoing
        else:
            self._route_from_dram(route, draft, op)
        is_multicast = how.rows or how.columns
        loops = (is_multicast and beside is None) or draft.scattered or not alone
        loops |= route.downstream is not None
        last[op.name, draft.operand] = _Seen(route, loops, is_multicast)
        return route

    def _direct_noc(self, producer: Op, op: Op, how: Multicast) -> int | None:
        """Return the NoC over which a producer's own core multicasts to the op that reads it, None if it does not (see
        `direct`). Cached."""
        key = producer.name, op.name, how
        if key not in self._directs:
            self._directs[key] = direct(self.epoch.netlist.arch_name, self.device.grid, producer, op, how)
        return self._directs[key]

    def _reads_l1(self, draft: Draft) -> bool:
        """Return whether a pipe reads a queue, or padding, that a prologue has loaded into L1."""
        padding = self.buffers.padding.made.get(base_of(draft.inputs[0]))
        if draft.steps == 2:
            return True
        if padding is not None:
            return padding.dram_buf_flag
        return draft.source in self.epoch.prologue

    def _route_from_op(self, route: Route, draft: Draft, op: Op) -> None:
        """Set on `route` the incoming NoC of a pipe that reads an op, and, if it goes over PCIe, its virtual channel
        and direction."""
        producer = self.epoch.ops[draft.source]
        if is_ethernet(producer):
            route.incoming = self._straight_noc(draft)
            return
        route.incoming = self._noc_between_ops(producer, op)
        if producer.target_device != op.target_device:
            route.downstream = is_after(self.epoch.netlist, producer.target_device, op.target_device)
            route.incoming = 0
            route.incoming_vc = WRITE_VC

    def _route_from_dram(self, route: Route, draft: Draft, op: Op) -> None:
        """Set on `route` the incoming NoC of a pipe that reads DRAM, and for a queue of another chip whether it goes
        over Ethernet, or the virtual channel for PCIe."""
        queues = self.epoch.netlist.queues
        _, row, column = draft.cores[0]
        first = self._noc_place(draft.inputs[0], self.pipes.cuts[draft.source].tiles)
        route.incoming = self._nearer_noc(first, self.device.physical(row, column))
        if draft.source in queues and is_remote(queues[draft.source], op):
            route.ethernet = not over_pcie(self.epoch.netlist)
            if not route.ethernet:
                route.incoming_vc = WRITE_VC

    def _multicast_of(self, op: Op, operand: int) -> Multicast:
        """Return which rows or columns of cores share an operand of an op, by index, and over which NoC. Cached."""
        result = self._multicasts.get((op.name, operand))
        if result is None:
            result = self._multicasts[op.name, operand] = multicast(self.epoch.inputs(op), operand)
        return result

    def _straight_noc(self, draft: Draft) -> int:
        """Return the NoC on which the first input of a pipe is nearer to its first output."""
        first = self._noc_place(draft.inputs[0], 1 if draft.from_relay else self.pipes.cuts[draft.source].tiles)
        return self._nearer_noc(first, self._noc_place(draft.outputs[0][0], 1))

    def _incoming_noc_of_relay(self, draft: Draft) -> int:
        """Return the incoming NoC of a pipe that fills a relay, or an operand on an Ethernet core."""
        if draft.from_relay or draft.source not in self.epoch.netlist.queues:
            return self._straight_noc(draft)
        first = self._noc_place(draft.inputs[0], self.pipes.cuts[draft.source].tiles)
        return self._nearer_noc(first, self._gathered_at(draft))

    def _gathered_at(self, draft: Draft) -> tuple[int, int]:
        """Return x, y on the NoC of the core that gathers a pipe."""
        _, row, column = draft.cores[0]
        if draft.channel >= 0:
            return (column, row)
        return self.device.physical(row, column)

    def _to_queue(self, draft: Draft) -> Route:
        """Return the route of a pipe to a queue: NoC 0 for host memory, windows to other chips, and untilized results;
        else the NoC on which the queue is nearer."""
        queue = self.epoch.netlist.queues[draft.reader]
        op = self.epoch.ops.get(draft.source)
        if queue.loc == "host" or (op is not None and op.untilize_output) or window(self.epoch, queue) is not None:
            return Route(0, 0, WRITE_VC, WRITE_VC)
        noc = self._nearer_noc(self._noc_place(draft.inputs[0], 1), self._noc_place(draft.outputs[0][0], 1))
        return Route(noc, noc, WRITE_VC, WRITE_VC)

    def _noc_between_ops(self, source: Op, target: Op) -> int:
        """Return the NoC from one op's cores to another's, as `_grid_to_grid` computes it. Cached."""
        key = source.name, target.name
        noc = self._link_cycles.get(key)
        if noc is None:
            noc = self._link_cycles[key] = self._grid_to_grid(source, target)
        return noc

    def _grid_to_grid(self, source: Op, target: Op) -> int:
        """Return the NoC from the cores of `source` to those of `target`: the one along which the two grids are nearer,
        in the direction in which they lie apart."""
        starts, ends = _corners(source)
        target_starts, target_ends = _corners(target)
        overlap, before = self._overlap(source, target)
        if overlap == (0, 0):
            away = self.distance(0, ends, target_starts) > self.distance(1, starts, target_ends)
            return int(away)
        for axis in (0, 1):
            if not overlap[axis]:
                continue
            other = 1 - axis
            if overlap[axis] in (_columns_and_rows(source)[axis], _columns_and_rows(target)[axis]):
                edges = (starts[other], ends[other], target_starts[other], target_ends[other])
                forward = self._along(0, edges[1], edges[2])
                backward = self._along(1, edges[0], edges[3])
                return int(forward > backward)
            if before:
                return 1
            return 0
        raise AssertionError("an overlap along neither axis")

    def _along(self, noc: int, start: int, end: int) -> int:
        """Return the hops of a NoC from one coordinate to another along one axis. net2pipe counts them around the
        columns of the NoC on both axes."""
        return self.distance(noc, (0, start), (0, end))

    def _overlap(self, source: Op, target: Op) -> tuple[tuple[int, int], int]:
        """Return how many (columns, rows) of cores both grids have in common, and how many of the target's come before
        these along the last axis that overlaps."""
        starts, ends = _corners(source)
        begin = _corners(target)[0]
        sizes = _columns_and_rows(target)
        grid = self.device.grid[::-1]
        common = [0, 0]
        before = 0
        for axis in (0, 1):
            for step in range(sizes[axis]):
                if starts[axis] <= (begin[axis] + step) % grid[axis] <= ends[axis]:
                    if common[axis] == 0:
                        before = step
                    common[axis] += 1
        return (common[0], common[1]), before

    def _balance(self, operands: list[_Seen]) -> None:
        """Move sends of an op's operands that loop back, and are no multicasts, to the other NoC if one NoC has at
        least two more to carry. Changes the routes."""
        load = [0, 0]
        movable = [0, 0]
        for operand in operands:
            load[operand.route.incoming] += 1
            if operand.loops_back:
                load[operand.route.outgoing] += 1
                if operand.route.direct or not operand.multicast:
                    movable[operand.route.outgoing] += 1
        excess = load[0] - load[1]
        busy = int(excess < 0)
        if abs(excess) <= 1 or not movable[busy]:
            return
        candidates = [operand.route for operand in operands if operand.loops_back and not operand.multicast]
        on_busy = [route for route in candidates if route.outgoing == busy]
        for route in on_busy[: abs(excess) // 2]:
            route.outgoing = 1 - busy


def _outgoing_vc(how: Multicast) -> int:
    """Return the virtual channel on which a pipe sends to its receivers."""
    if how.rows or how.columns:
        return MULTICAST_VC
    return UNICAST_VC


def _choose_ports(counts: list[int], pieces: int) -> list[int]:
    """Return the DRAM port of each of `pieces` pieces: the one with the fewest pieces so far, of equal ones the first.
    `counts` has the pieces of each port so far, and is updated."""
    ports: list[int] = []
    while len(ports) < pieces and min(counts) < max(counts):
        port = counts.index(min(counts))
        counts[port] += 1
        ports.append(port)
    rounds, remainder = divmod(pieces - len(ports), len(counts))  # all are equal: they take turns
    for port in range(len(counts)):
        counts[port] += rounds + (port < remainder)
    return ports + list(range(len(counts))) * rounds + list(range(remainder))


def _corners(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return first and last (x, y) of an op's grid of cores, counted over worker cores."""
    rows, columns = op.cores
    y, x = op.grid_loc
    return (x, y), (x + columns - 1, y + rows - 1)


def _columns_and_rows(op: Op) -> tuple[int, int]:
    """Return (columns, rows) of cores of an op."""
    return op.cores[1], op.cores[0]


BLOCK = 100_000
"""The number of places of a queue's buffer that share one count of readers."""

Group = tuple[str, str]


def finish_pipes(epoch: Epoch, drafts: Sequence[Draft], routes: Sequence[Route], tiles: "Sequence[int]") -> list[Pipe]:
    """Return the finished pipes of drafts and their routes, in their order. `tiles` has for each pipe the tiles of one
    input, 0 if its list of inputs is never shortened to a period."""
    extra = _reader_fields(epoch, drafts)
    return [
        _finished_pipe(epoch, draft, route, size, extra.get(draft.id, {}))
        for draft, route, size in zip(drafts, routes, tiles, strict=True)
    ]


def _finished_pipe(epoch: Epoch, draft: Draft, route: Route, tiles: int, extra: dict[str, object]) -> Pipe:
    """Return one finished pipe. `tiles` is the tiles of one input, 0 if the list of inputs is never shortened to a
    period; `extra` has the fields of `Pipe` that number readers of DRAM."""
    inputs = draft.inputs
    repeat = 0
    if tiles and (period_inputs := period(inputs, tiles, draft.cleared)):
        repeat = len(inputs) // period_inputs
        inputs = inputs[:period_inputs]
    op = epoch.ops.get(draft.reader)
    if op is not None:
        sizes = op.input_dram_io_buf_size_tiles
    else:
        sizes = ()
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
        **extra,  # pyright: ignore[reportArgumentType] - the fields that _reader_fields gives
    )


def _on_noc(epoch: Epoch, cores: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return cores, given by chip and worker row and column, with rows and columns of the NoC, as net2pipe states the
    cores of pipes that read another chip's DRAM."""
    physical = device(epoch.netlist.arch_name).physical
    places = ((chip, *physical(row, column)) for chip, row, column in cores)
    return [(chip, y, x) for chip, x, y in places]


def _reader_fields(epoch: Epoch, drafts: Sequence[Draft]) -> dict[int, dict[str, object]]:
    """Return, by the pipe's id, the fields of `Pipe` that number the readers of a queue's buffers; none for a pipe that
    reads no queue."""
    queues = epoch.netlist.queues
    read = {draft.id: [place // BLOCK for place in draft.inputs] for draft in drafts if draft.source in queues}
    blocks = {id: set(block_list) for id, block_list in read.items()}
    groups = list(chain.from_iterable(_reader_groups(epoch, drafts).values()))
    total = _count_readers(groups, blocks)
    fields: dict[int, dict[str, object]] = {}
    current: dict[int, int] = {}
    for pipes, forked in groups:
        for number, draft in enumerate(pipes):
            fields[draft.id] = {
                "dram_pipe_total_readers": _counts_of_inputs(read[draft.id], blocks[draft.id], total),
                "dram_pipe_reader_index": _counts_of_inputs(read[draft.id], blocks[draft.id], current),
                "dram_pipe_num_forks": len(pipes) if forked else 1,
                "dram_pipe_fork_index": number if forked else 0,
            }
            if not forked:
                _count_blocks(current, blocks[draft.id])
        if forked:
            _count_blocks(current, blocks[pipes[0].id])
    return fields


def _count_readers(groups: Iterable[tuple[list[Draft], bool]], blocks: Mapping[int, Collection[int]]) -> dict[int, int]:
    """Return the number of reading pipes of each block of places in queues. `blocks` has the blocks that each pipe
    reads, by its id."""
    total: dict[int, int] = {}
    for pipes, forked in groups:
        for draft in _counted_readers(pipes, forked):
            _count_blocks(total, blocks[draft.id])
    return total


def _counted_readers(pipes: list[Draft], forked: bool) -> list[Draft]:
    """Return the pipes that are counted when the readers of DRAM blocks are numbered, of a group of pipes that read the
    same places of a queue: the first alone if the others fork from it (`forked`), else all."""
    if forked:
        return pipes[:1]
    return pipes


def _count_blocks(counts: dict[int, int], blocks: Collection[int]) -> None:
    """Add 1 to the count of each block."""
    for block in blocks:
        counts[block] = counts.get(block, 0) + 1


def _counts_of_inputs(read: Sequence[int], blocks: Collection[int], counts: Mapping[int, int]) -> tuple[int, ...]:
    """Return for each input that a pipe reads, given by its block of places in `read`, the count of that block, 0 if it
    has none. `blocks` has the distinct blocks."""
    count_of_block = {block: counts.get(block, 0) for block in blocks}
    if len(count_of_block) == 1:
        return (count_of_block[read[0]],) * len(read)
    return tuple(map(count_of_block.__getitem__, read))


def _reader_groups(epoch: Epoch, drafts: Sequence[Draft]) -> dict[Group, list[tuple[list[Draft], bool]]]:
    """Return, for each queue and op that reads it by pipes of its own, lists of pipes with the same inputs (the op's
    own first, then those of ops that fork from it), each with whether ops fork. All are in the order in which readers
    are numbered."""
    forks = _forks(epoch)
    pipes_of_group: dict[Group, dict[tuple[int, ...], list[Draft]]] = {}
    for draft in drafts:
        op = epoch.ops.get(draft.reader)
        if op is None or draft.source not in epoch.netlist.queues:
            continue
        group = _group_of(op, draft.source, forks)
        pipes = pipes_of_group.setdefault(group, {}).setdefault(tuple(draft.inputs), [])
        pipes.insert(0 if group[1] == op.name else len(pipes), draft)
    return {
        group: [(pipes_of_group[group][inputs], forks.get(group, False)) for inputs in sorted(pipes_of_group[group])]
        for group in sorted(pipes_of_group)
    }


def _forks(epoch: Epoch) -> dict[Group, bool]:
    """Return, for each queue and op that reads it by pipes of its own, whether other ops fork from these pipes."""
    forks: dict[Group, bool] = {}
    for op in epoch.ops.values():
        forked_inputs = dict(op.forked_dram_inputs)
        for name in op.inputs:
            if name in epoch.netlist.queues and name not in forked_inputs:
                forks.setdefault((name, op.name), False)
        for name, reader in forked_inputs.items():
            forks[name, reader] = True
    return forks


def _group_of(op: Op, queue: str, forks: dict[Group, bool]) -> Group:
    """Return (queue, op) by whose pipes `op` reads a queue: its own, or those of the op that it forks from."""
    forked_inputs = dict(op.forked_dram_inputs)
    if (queue, op.name) in forks:
        return (queue, op.name)
    return (queue, forked_inputs[queue])
