"""The pipes of an epoch, without NoCs: which pieces go where, and which core gathers and multicasts them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.edge import ALL, EdgeMap, EdgePipe, Pieces
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import (
    RELAY_OPERAND,
    EthernetCore,
    Hop,
    Relay,
    arrived_bytes,
    arrives_at,
    chip_of_result,
    gathered_bytes,
    sends_from,
    size_relays,
)
from buda_emu.performance.routing.pipes.granularity import Cut
from buda_emu.performance.routing.pipes.model import NO_PADDING, Buffer
from buda_emu.performance.routing.pipes.op_buffers import Place, core_of
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.ops.multicast import Multicast, direct, multicast
from buda_emu.performance.routing.pipes.refusal import RefusedError
from buda_emu.spec.devices import device

MIN_PERIOD = 32
MAX_PERIOD = 64
"""Inputs that a periodic pipe lists, at least and at most, where there is a choice (net2pipe)."""


@dataclass(slots=True)
class Draft:
    """A pipe that is not routed yet. `reader`: the op or queue that it feeds, with the operand. `steps`: 1 or 2 of a
    right operand in chunks, 0 else. `source`: the op or queue that it reads."""

    id: int
    inputs: list[int]
    outputs: list[tuple[int, ...]]
    cores: list[tuple[int, int, int]]
    reader: str
    operand: int
    source: str
    steps: int = 0
    bases: list[int] = field(default_factory=list[int])
    """The buffers that it reads, each once."""
    padding: list[int] = field(default_factory=list[int])
    cleared: int = 1
    scattered: bool = False
    """Whether it serves several outputs in turn."""
    channel: int = -1
    """Of the Ethernet core that gathers; then `cores` counts rows and columns of the NoC, as it does for a `link`."""
    link: bool = False
    """Whether it goes from one end of an Ethernet link to the other."""
    from_relay: bool = False
    to_relay: bool = False
    """Whether it reads, or fills, a relay that pipes between chips were given."""

    @property
    def gathers_cores(self) -> bool:
        """Whether it reads buffers of several cores, for a pipe that reads L1."""
        return len(self.bases) > 1

    @property
    def repeats(self) -> int:
        """How often each output comes in a row."""
        return consumer_repeat(self.outputs, [pad != NO_PADDING for pad in self.padding]) if self.scattered else 1


class PipeMaker:
    """Makes the pipes of an epoch, op by op: those of its operands, then those to the queues that it feeds."""

    def __init__(
        self,
        epoch: Epoch,
        edges: Mapping[str, OpEdges],
        queue_edges: Mapping[str, EdgeMap],
        cuts: Mapping[str, Cut],
        buffers: Buffers,
    ) -> None:
        self.epoch = epoch
        self.edges = edges
        self.queue_edges = queue_edges
        self.cuts = cuts
        self.buffers = buffers
        self.grid = device(epoch.netlist.arch_name).grid
        self.made: list[Draft] = []
        self._directs: dict[tuple[str, str], int | None] = {}

    def make(self) -> None:
        """All pipes, in order of their ids."""
        for op in self.epoch.ops.values():
            for index in range(self.epoch.inputs(op).kind.input_buffers(op)):
                self._of_operand(op, index)
            if is_ethernet(op):
                self._over_links(op)
            if not op.gradient_op:
                for queue in self.epoch.fed.get(op.name, ()):
                    self._of_queue(queue, op)
        self.made.sort(key=lambda draft: draft.id)  # copies are given their links with their buffers

    def _of_operand(self, op: Op, index: int) -> None:
        name = op.inputs[index]
        how = multicast(self.epoch.inputs(op), index)
        steps = self.edges[op.name].two_steps.get(name)
        if steps is None:
            edge = self.edges[op.name].maps[index]
            bases = self.buffers.bases(op.name, name)
            for pipe in edge.pipes:
                outputs = [self._outputs(op, index, dest) for dest in pipe.dests]
                self._draft(op, index, pipe, bases, self.cuts[name], outputs, how, 0)
            return
        columns = op.blocking.grid_size[1]
        chunks = self.buffers.ops.chunks
        for pipe in steps.load.pipes:
            row, column = pipe.dests[0]
            outputs = [(chunks[op.name, row, column, index],)]
            self._draft(op, index, pipe, self.buffers.bases(op.name, name), self.cuts[name], outputs, how, 1)
        own = [chunks[op.name, chunk, column, index] for chunk in range(steps.chunks) for column in range(columns)]
        for pipe in steps.gather.pipes:
            outputs = [self._outputs(op, index, dest) for dest in pipe.dests]
            self._draft(op, index, pipe, own, Cut(False, steps.chunk_tiles), outputs, how, 2)

    def _over_links(self, op: Op) -> None:
        """From the relays of a copy between chips to the operands on the other one."""
        own = self.buffers.ops
        chip = op.attributes.dest_device
        for id, relay, arrival in zip(own.links[op.name], own.relays[op.name], own.arrivals[op.name], strict=True):
            where = (chip, *self.buffers.core[arrival])
            draft = Draft(
                id=id,
                inputs=[relay],
                outputs=[(arrival,)],
                cores=[where],
                reader="",
                operand=0,
                source=op.name,
                link=True,
            )
            draft.bases = [relay]
            self.made.append(draft)

    def _outputs(self, op: Op, index: int, dest: Place) -> tuple[int, ...]:
        rows, columns = op.blocking.grid_size
        if dest[0] >= rows or dest[1] >= columns:
            what = f"pieces of {op.inputs[index]} and their padding are more than {rows} x {columns} cores can share"
            raise RefusedError("V324", what, op=op.name)
        inputs = self.buffers.ops.inputs
        if dest[0] == ALL:
            return tuple(inputs[op.name, row, dest[1]][index] for row in range(rows))
        if dest[1] == ALL:
            return tuple(inputs[op.name, dest[0], column][index] for column in range(columns))
        return (inputs[op.name, dest[0], dest[1]][index],)

    def _draft(
        self,
        op: Op,
        index: int,
        pipe: EdgePipe,
        bases: Sequence[int],
        cut: Cut,
        outputs: list[tuple[int, ...]],
        how: Multicast,
        steps: int,
    ) -> None:
        id = self.buffers.ids.new()
        name = op.inputs[index]
        pieces = pipe.pieces(cut.tiles)
        read = pieces.read
        where, channel = self._cores(op, index, pipe, read, outputs, how)
        inputs = self._inputs(op, index, pieces, bases, cut, where[0], steps)
        draft = Draft(
            id=id,
            inputs=inputs,
            outputs=outputs,
            cores=where,
            reader=op.name,
            operand=index,
            source=name,
            steps=steps,
            channel=channel,
        )
        draft.bases = [bases[core] for core in read if core >= 0]
        if read[0] < 0:
            draft.bases.append(self.buffers.padding.known(op, index, where[0]))
        draft.cleared = self.buffers.ops.operands[op.name][index].cleared
        if len(outputs) > 1:
            draft.scattered = True
            draft.padding = [
                self.buffers.padding.get(op, index, place) if padded else NO_PADDING
                for padded, place in zip(pipe.padding, where, strict=True)
            ]
            _merge_alike(draft)
        self.made.append(draft)

    def _inputs(
        self,
        op: Op,
        index: int,
        pieces: Pieces,
        bases: Sequence[int],
        cut: Cut,
        where: tuple[int, int, int],
        steps: int,
    ) -> list[int]:
        name = op.inputs[index]
        padded = pieces.read[0] < 0
        if padded and (pieces.cores < 0).all():
            raise RefusedError("V335", f"a pipe of {name} would carry padding alone", op=op.name)
        self._check_pieces(op.name, name, pieces, cut, steps)
        if len(pieces.read) == 1:
            return (pieces.places + bases[pieces.read[0]]).tolist()
        found: list[int] = (np.array(bases, np.int64)[pieces.cores] + pieces.places).tolist()
        if not padded:
            return found
        for number in np.nonzero(pieces.cores < 0)[0].tolist():
            found[number] = self.buffers.padding.get(op, index, where)
        return found

    def _check_pieces(self, reader: str, name: str, pieces: Pieces, cut: Cut, steps: int) -> None:
        """Pieces begin where the producer's buffer is cut."""
        most = 1
        if steps != 2 and cut.scattered:
            known = self.epoch.netlist.queues.get(name)
            if known is not None:
                most = self.buffers.queues.pieces(known)
            else:
                most = self.buffers.ops.results[name].replicate
        if pieces.end >= max(most, 1) * cut.tiles or not pieces.aligned:
            what = f"{name} is read from places that are not pieces of {cut.tiles} tiles"
            raise RefusedError("V081", what, "cut producer and consumer alike, or choose other ublocks", reader)

    def _cores(
        self, op: Op, index: int, pipe: EdgePipe, read: list[int], outputs: list[tuple[int, ...]], how: Multicast
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Where each turn of a pipe is gathered: at its producer where that is one core, else at its reader; for a
        multicast at the end of the row or column at which the NoC enters it. With the Ethernet channel of that core,
        -1 for a worker."""
        epoch = self.epoch
        name = op.inputs[index]
        rows, columns = op.blocking.grid_size
        producer = epoch.ops.get(name) if name not in epoch.netlist.queues else None
        kept = name in epoch.prologue
        from_l1 = producer is not None or (kept and not self.edges[op.name].as_read.get(name, False))
        from_l1 = from_l1 or name in epoch.epilogue
        only = None
        if from_l1:
            across = self.edges[op.name].maps[index].producer_grid[1]
            only = _only_core(read, across, (rows, columns) if kept else None)
        in_turn = len(outputs) > 1 and consumer_repeat(outputs, pipe.padding) > 1
        beside = None
        if producer is not None and len(outputs) == 1 and only is not None:
            beside = self._beside(op, name, producer)
        if ones := self._on_links(op, producer, None if in_turn else only, outputs):
            channels = {self.buffers.ops.channel[one] for one in ones}
            if len(channels) > 1:
                what = f"pieces of {name} go in turn to cells on several channels, and are gathered on one"
                raise RefusedError("V368", what, "name one channel, or let an op stack them", op.name)
            chip = chip_of_result(producer) if producer is not None else 0
            chips = [op.target_device if one == turn[0] else chip for one, turn in zip(ones, outputs, strict=True)]
            return [(chip, *self.buffers.core[one]) for chip, one in zip(chips, ones, strict=True)], channels.pop()
        found: list[tuple[int, int, int]] = []
        for row, column in pipe.dests:
            down = row == ALL and rows > 1
            across = column == ALL and columns > 1
            if only is not None and (beside is not None or not (down or across or in_turn)):
                found.append(((producer or op).target_device, *core_of(producer or op, *only)))
                continue
            last = how.noc1
            at_row = (rows - 1 if last else 0) if down else max(row, 0)
            at_column = (columns - 1 if last else 0) if across else max(column, 0)
            found.append((op.target_device, *core_of(op, at_row, at_column)))
        return found, -1

    def _beside(self, op: Op, name: str, producer: Op) -> int | None:
        """The NoC over which a producer multicasts itself to the first operand that reads it, if it stands beside."""
        key = op.name, name
        if key not in self._directs:
            how = multicast(self.epoch.inputs(op), op.inputs.index(name))
            self._directs[key] = direct(self.epoch.netlist.arch_name, self.grid, producer, op, how)
        return self._directs[key]

    def _on_links(self, op: Op, producer: Op | None, only: Place | None, outputs: list[tuple[int, ...]]) -> list[int]:
        """The buffers on cores of Ethernet on which the turns of a pipe are gathered; none where it is on workers'."""
        source = producer if producer is not None and is_ethernet(producer) else None
        if source is not None and only is not None and all(len(turn) == 1 for turn in outputs):
            one = self.buffers.ops.outputs[source.name][only[0] * source.blocking.grid_size[1] + only[1]]
            return [one] * len(outputs)
        return [turn[0] for turn in outputs] if is_ethernet(op) and only is None else []

    def _of_queue(self, queue: Queue, op: Op) -> None:
        ids = self.buffers.queues.ids[queue.name]
        bases = self.buffers.ops.outputs[op.name]
        if op.untilize_output:
            first = (op.target_device, *self.buffers.core[bases[0]])
            for id in ids:
                draft = Draft(
                    id=self.buffers.ids.new(),
                    inputs=list(bases),
                    outputs=[(id,)],
                    cores=[first],
                    reader=queue.name,
                    operand=0,
                    source=op.name,
                )
                draft.bases = list(bases)
                self.made.append(draft)
            return
        cut = self.cuts[op.name]
        for pipe in self.queue_edges[queue.name].pipes:
            (row, column) = pipe.dests[0]
            pieces = pipe.pieces(cut.tiles)
            self._check_pieces(queue.name, op.name, pieces, cut, 0)
            base = bases[pieces.read[0]]  # one core fills a buffer: V078
            inputs: list[int] = (pieces.places + base).tolist()
            channel = self.buffers.ops.channel.get(base, -1)
            chip = op.target_device if channel < 0 else op.attributes.dest_device
            where = (chip, *self.buffers.core[base])
            target = (ids[row * queue.blocking.grid_size[1] + column],)
            draft = Draft(
                id=self.buffers.ids.new(),
                inputs=inputs,
                outputs=[target],
                cores=[where],
                reader=queue.name,
                operand=0,
                source=op.name,
                channel=channel,
            )
            draft.bases = [base]
            self.made.append(draft)


def _only_core(read: list[int], columns: int, wrap: Place | None) -> Place | None:
    """The one core of the producer's grid that a pipe reads; None for several. `wrap`: cores of the reader that keep
    the buffers of a queue, over and over."""
    if read[0] < 0:
        return None
    found = {divmod(one, columns) for one in read}
    if wrap is not None:
        found = {(row % wrap[0], column % wrap[1]) for row, column in found}
    return found.pop() if len(found) == 1 else None


def _merge_alike(draft: Draft) -> None:
    """Turns that are all the same are none."""
    alike = len(set(draft.cores)) == 1 and len(set(draft.outputs)) == 1
    if alike and not any(draft.padding):
        draft.outputs, draft.cores, draft.padding, draft.scattered = draft.outputs[:1], draft.cores[:1], [], False


def consumer_repeat(outputs: Sequence[tuple[int, ...]], padding: Sequence[bool]) -> int:
    """How often each output follows itself, if that is so for all, and no output comes again later; else 1."""
    count = len(outputs)
    repeat = next((number for number, one in enumerate(outputs) if one != outputs[0]), count)
    if count == 1 or repeat < 2 or count % repeat:
        return 1
    seen: set[tuple[int, ...]] = set()
    for start in range(0, count, repeat):
        turn = range(start, start + repeat)
        if any(outputs[one] != outputs[start] or padding[one] != padding[start] for one in turn):
            return 1
        if outputs[start] in seen:
            return 1
        seen.add(outputs[start])
    return repeat


def period(inputs: Sequence[int], tiles: int, cleared: int) -> int:
    """After how many inputs a long list repeats itself, in whole clears of the reader; 0 where it does not.

    `tiles`: of one input; `cleared`: tiles that the reader clears at a time.
    """
    count = len(inputs)
    if count <= MAX_PERIOD:
        return 0
    table = np.array(inputs, np.int64)
    found = small = 0
    for one in (one for one in range(1, count // 2 + 1) if count % one == 0):
        if one * tiles % cleared or (table[one:] != table[:-one]).any():
            continue
        found = one
        if one >= MIN_PERIOD:
            break
        small = one
    return small if found > MAX_PERIOD and small else found


def relays(epoch: Epoch, buffers: Buffers, pipes: PipeMaker, hops: Mapping[int, Hop]) -> Iterator[Buffer]:
    """The relays of all copies between chips, and those by which other pipes go over links."""
    own = buffers.ops
    if not own.relays and not hops:
        return
    filled = {outputs[0]: draft for draft in pipes.made for outputs in draft.outputs}
    count = epoch.input_count
    sized: dict[EthernetCore, list[tuple[int, Mapping[str, Any], Relay]]] = {}
    others: dict[EthernetCore, list[int]] = {}
    for name, ids in own.relays.items():
        op = epoch.ops[name]
        operand = own.operands[name][0]
        for cell, id in enumerate(ids):
            tile = operand.tile_size
            piece = operand.gathered
            gathered = _gathered(epoch, buffers, filled[id], piece, tile)
            relay = Relay(piece, tile, operand.per_input * count, gathered)
            sized.setdefault(sends_from(epoch, op, cell), []).append((id, {"op": name}, relay))
            there = arrives_at(epoch, op, cell)
            others.setdefault(there, []).append(own.made[own.arrivals[name][cell]].size_tiles * tile)
    for id, hop in hops.items():
        chip, row, column, channel = hop.at
        relay = Relay(
            piece=hop.piece, tile_bytes=hop.tile_bytes, epoch_tiles=hop.epoch_tiles, gathered=0, tiles=hop.tiles
        )
        if channel < 0:
            yield _buffer(EthernetCore(chip, -1, row, column), hop.number, id, {}, relay, count)
        else:
            sized.setdefault(EthernetCore(chip, channel, row, column), []).append((id, hop.result, relay))
    for core, group in sized.items():
        size_relays([relay for _, _, relay in group], arrived_bytes(others.get(core, ())))
        for number, (id, result, relay) in enumerate(group):
            yield _buffer(core, number, id, result, relay, count)


def _gathered(epoch: Epoch, buffers: Buffers, draft: Draft, piece: int, tile: int) -> int:
    if draft.channel < 0 or draft.scattered:  # on a worker core, or for several in turn, which net2pipe does not count
        return 0
    from_dram = draft.source in epoch.netlist.queues
    cores = sum(id not in buffers.padding.made for id in draft.bases)
    return gathered_bytes(len(draft.inputs), cores, piece, tile, from_dram=from_dram)


def _buffer(core: EthernetCore, number: int, id: int, result: Mapping[str, Any], relay: Relay, count: int) -> Buffer:
    alone = {"op": "", "ublock_rt": 1, "ublock_ct": 1, "mblock_m": 1, "mblock_n": 1}
    said: dict[str, Any] = {**alone, **result, "chip": core.chip}
    return Buffer(
        id=id,
        operand=RELAY_OPERAND + number,
        buffer_type="ethernet_relay" if core.channel >= 0 else "relay",
        row=core.row,
        column=core.column,
        ethernet_chan=core.channel,
        epoch_tiles=relay.epoch_tiles,
        tiles_per_input=relay.epoch_tiles // count,
        size_tiles=relay.tiles,
        tile_size=relay.tile_bytes,
        scatter_gather_num_tiles=relay.piece,
        **said,
    )
