"""The pipes of an epoch, without NoCs: their pieces and receivers, and the core that gathers and multicasts them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
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
from buda_emu.performance.routing.pipes.granularity import Granularity
from buda_emu.performance.routing.pipes.model import NO_PADDING, Buffer, RefusedError
from buda_emu.performance.routing.pipes.op_buffers import Place, core_of
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.ops.operands import Multicast, direct, multicast
from buda_emu.spec.devices import device

MIN_PERIOD = 32
MAX_PERIOD = 64
"""Inputs that a periodic pipe lists, at least and at most, where there is a choice (net2pipe)."""


@dataclass(slots=True)
class Draft:
    """A pipe that has no NoCs yet. It goes from the op or queue `source` to `operand` of the op `reader`, or to the
    queue `reader`. `steps` is 1 or 2 for the two steps of a right operand in chunks (DRAM to chunk, chunk to core),
    else 0."""

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
    """The channel of the Ethernet core that gathers, -1 for worker cores. With one, `cores` counts rows and columns of
    the NoC, as it does for a `link`."""
    link: bool = False
    """Whether it goes from one end of an Ethernet link to the other."""
    from_relay: bool = False
    to_relay: bool = False
    """Whether it reads, or fills, a relay that pipes between chips were given."""

    @property
    def gathers_cores(self) -> bool:
        """Return whether the pipe reads several buffers: if these lie in L1, buffers of several cores."""
        return len(self.bases) > 1

    @property
    def repeats(self) -> int:
        """Return how often in a row each set of outputs is served (`consumer_repeat`); 1 for a pipe that serves only
        one."""
        if self.scattered:
            return consumer_repeat(self.outputs, [pad != NO_PADDING for pad in self.padding])
        return 1


class PipeMaker:
    """Makes the pipes of an epoch, op by op: those of its operands, then those to the queues that it feeds."""

    def __init__(
        self,
        epoch: Epoch,
        edges: Mapping[str, OpEdges],
        queue_edges: Mapping[str, EdgeMap],
        cuts: Mapping[str, Granularity],
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
        """Make all pipes of the epoch, and put them in `made` in order of their ids. Raises RefusedError for pipes that
        net2pipe refuses."""
        for op in self.epoch.ops.values():
            for index in range(self.epoch.inputs(op).kind.input_buffers(op)):
                self._make_operand_pipes(op, index)
            if is_ethernet(op):
                self._make_link_pipes(op)
            if not op.gradient_op:
                for queue in self.epoch.fed.get(op.name, ()):
                    self._make_queue_pipes(queue, op)
        self.made.sort(key=lambda draft: draft.id)  # copies are given their links with their buffers

    def _make_operand_pipes(self, op: Op, index: int) -> None:
        """Make the pipes of operand `index` of an op; for a right operand in chunks those that load the chunks, and
        those from chunk to core."""
        name = op.inputs[index]
        how = multicast(self.epoch.inputs(op), index)
        steps = self.edges[op.name].two_steps.get(name)
        if steps is None:
            edge = self.edges[op.name].maps[index]
            bases = self.buffers.bases(op.name, name)
            for pipe in edge.pipes:
                outputs = [self._output_buffers(op, index, dest) for dest in pipe.dests]
                self._make_pipe(op, index, pipe, bases, self.cuts[name], outputs, how, 0)
            return
        columns = op.blocking.grid_size[1]
        chunks = self.buffers.ops.chunks
        for pipe in steps.load.pipes:
            row, column = pipe.dests[0]
            outputs = [(chunks[op.name, row, column, index],)]
            self._make_pipe(op, index, pipe, self.buffers.bases(op.name, name), self.cuts[name], outputs, how, 1)
        chunk_ids = [
            chunks[op.name, chunk, column, index] for chunk, column in product(range(steps.chunks), range(columns))
        ]
        for pipe in steps.gather.pipes:
            outputs = [self._output_buffers(op, index, dest) for dest in pipe.dests]
            self._make_pipe(op, index, pipe, chunk_ids, Granularity(False, steps.chunk_tiles), outputs, how, 2)

    def _make_link_pipes(self, op: Op) -> None:
        """Make the pipes from the relays of a copy between chips to its operands on the destination chip."""
        op_buffers = self.buffers.ops
        chip = op.attributes.dest_device
        for id, relay, arrival in zip(
            op_buffers.links[op.name], op_buffers.relays[op.name], op_buffers.arrivals[op.name], strict=True
        ):
            core = (chip, *self.buffers.core[arrival])
            draft = Draft(
                id=id,
                inputs=[relay],
                outputs=[(arrival,)],
                cores=[core],
                reader="",
                operand=0,
                source=op.name,
                link=True,
            )
            draft.bases = [relay]
            self.made.append(draft)

    def _output_buffers(self, op: Op, index: int, dest: Place) -> tuple[int, ...]:
        """Return the ids of the operand buffers of the cores that `dest` means: one core of the op's grid, or a whole
        row or column. Raises RefusedError if it lies outside the op's grid."""
        rows, columns = op.blocking.grid_size
        if dest[0] >= rows or dest[1] >= columns:
            message = f"pieces of {op.inputs[index]} and their padding are more than {rows} x {columns} cores can share"
            raise RefusedError("V324", message, op=op.name)
        inputs = self.buffers.ops.inputs
        if dest[0] == ALL:
            return tuple(inputs[op.name, row, dest[1]][index] for row in range(rows))
        if dest[1] == ALL:
            return tuple(inputs[op.name, dest[0], column][index] for column in range(columns))
        return (inputs[op.name, dest[0], dest[1]][index],)

    def _make_pipe(
        self,
        op: Op,
        index: int,
        pipe: EdgePipe,
        bases: Sequence[int],
        cut: Granularity,
        outputs: list[tuple[int, ...]],
        how: Multicast,
        steps: int,
    ) -> None:
        """Make one pipe to operand `index` of an op. `bases` has the ids of the source's buffers, `cut` its pieces;
        `outputs` has the buffers that are filled in each turn, `how` says where they are multicast; `steps` is that of
        `Draft`. Raises RefusedError for pieces that do not fit the cut, and for a pipe of padding alone."""
        id = self.buffers.ids.new()
        name = op.inputs[index]
        pieces = pipe.pieces(cut.tiles)
        read = pieces.read
        turn_cores, channel = self._turn_cores(op, index, pipe, read, outputs, how)
        inputs = self._input_places(op, index, pieces, bases, cut, turn_cores[0], steps)
        draft = Draft(
            id=id,
            inputs=inputs,
            outputs=outputs,
            cores=turn_cores,
            reader=op.name,
            operand=index,
            source=name,
            steps=steps,
            channel=channel,
        )
        draft.bases = [bases[core] for core in read if core >= 0]
        if read[0] < 0:
            draft.bases.append(self.buffers.padding.existing_id(op, index, turn_cores[0]))
        draft.cleared = self.buffers.ops.operands[op.name][index].cleared
        if len(outputs) > 1:
            draft.scattered = True
            draft.padding = [
                self.buffers.padding.get(op, index, place) if padded else NO_PADDING
                for padded, place in zip(pipe.padding, turn_cores, strict=True)
            ]
            _merge_alike(draft)
        self.made.append(draft)

    def _input_places(
        self,
        op: Op,
        index: int,
        pieces: Pieces,
        bases: Sequence[int],
        cut: Granularity,
        core: tuple[int, int, int],
        steps: int,
    ) -> list[int]:
        """Return what a pipe reads: for each piece the buffer's id plus its first tile, as in `Pipe.inputs`. Buffers of
        padding, gathered on `core`, are made where it needs them. Raises RefusedError for a pipe of padding alone, or
        pieces that do not fit the cut."""
        name = op.inputs[index]
        padded = pieces.read[0] < 0
        if padded and (pieces.cores < 0).all():
            raise RefusedError("V335", f"a pipe of {name} would carry padding alone", op=op.name)
        self._check_pieces(op.name, name, pieces, cut, steps)
        if len(pieces.read) == 1:
            return (pieces.places + bases[pieces.read[0]]).tolist()
        input_ids: list[int] = (np.array(bases, np.int64)[pieces.cores] + pieces.places).tolist()
        if not padded:
            return input_ids
        for number in np.nonzero(pieces.cores < 0)[0].tolist():
            input_ids[number] = self.buffers.padding.get(op, index, core)
        return input_ids

    def _check_pieces(self, reader: str, name: str, pieces: Pieces, cut: Granularity, steps: int) -> None:
        """Raise RefusedError unless the pieces that are read of the source `name` begin where its buffer is cut.
        `reader` is the op or queue that the error names."""
        piece_count = 1
        if steps != 2 and cut.scattered:
            queue = self.epoch.netlist.queues.get(name)
            if queue is not None:
                piece_count = self.buffers.queues.pieces(queue)
            else:
                piece_count = self.buffers.ops.results[name].replicate
        if pieces.end >= max(piece_count, 1) * cut.tiles or not pieces.aligned:
            message = f"{name} is read from places that are not pieces of {cut.tiles} tiles"
            raise RefusedError("V081", message, "cut producer and consumer alike, or choose other ublocks", reader)

    def _turn_cores(
        self, op: Op, index: int, pipe: EdgePipe, read: list[int], outputs: list[tuple[int, ...]], how: Multicast
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Return the (chip, row, column) that gathers each turn of a pipe, and the Ethernet channel of these cores, -1
        for worker cores. It is the producer's core if the pipe reads only one, else the reader's; for a multicast the
        end of the row or column at which the NoC enters it. `read` has the cores of the producer's grid that are read.
        Raises RefusedError if turns need different channels."""
        name = op.inputs[index]
        producer = None
        if name not in self.epoch.netlist.queues:
            producer = self.epoch.ops.get(name)
        only = self._only_core_in_l1(op, index, read, producer)
        in_turn = len(outputs) > 1 and consumer_repeat(outputs, pipe.padding) > 1
        if link_buffers := self._buffers_on_links(op, producer, None if in_turn else only, outputs):
            return self._cores_on_links(op, name, producer, link_buffers, outputs)
        if only is None:
            return [_entry_core(op, dest, how.noc1) for dest in pipe.dests], -1
        source = producer or op
        sender_multicasts = False
        if producer is not None and len(outputs) == 1:
            sender_multicasts = self._direct_multicast_noc(op, name, producer) is not None
        turn_cores: list[tuple[int, int, int]] = []
        for dest in pipe.dests:
            if not sender_multicasts and (in_turn or _is_multicast(op, dest)):
                turn_cores.append(_entry_core(op, dest, how.noc1))
            else:
                turn_cores.append((source.target_device, *core_of(source, *only)))
        return turn_cores, -1

    def _only_core_in_l1(self, op: Op, index: int, read: list[int], producer: Op | None) -> Place | None:
        """Return the only core whose L1 a pipe reads, by row and column of the producer's grid (of the reader's for a
        queue that a prologue loads); None if it reads several cores, padding, or DRAM. `read` has the cores of the
        source's grid that are read."""
        name = op.inputs[index]
        edges = self.edges[op.name]
        in_prologue = name in self.epoch.prologue
        kept_in_l1 = in_prologue and not edges.as_read.get(name, False)
        if producer is None and not kept_in_l1 and name not in self.epoch.epilogue:
            return None
        wrap = None
        if in_prologue:
            wrap = op.blocking.grid_size
        return _only_core(read, edges.maps[index].producer_grid[1], wrap)

    def _cores_on_links(
        self, op: Op, name: str, producer: Op | None, link_buffers: list[int], outputs: list[tuple[int, ...]]
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Return the (chip, row, column) of the Ethernet core of each turn of a pipe, and their channel. `link_buffers`
        has the buffer on that core for each turn: the turn's output, or one of the producer. Raises RefusedError if the
        channels differ."""
        channels = {self.buffers.ops.channel[link_buffer] for link_buffer in link_buffers}
        if len(channels) > 1:
            message = f"pieces of {name} go in turn to cells on several channels, and are gathered on one"
            raise RefusedError("V368", message, "name one channel, or let an op stack them", op.name)
        turn_cores: list[tuple[int, int, int]] = []
        for link_buffer, turn in zip(link_buffers, outputs, strict=True):
            chip = 0
            if link_buffer == turn[0]:
                chip = op.target_device
            elif producer is not None:
                chip = chip_of_result(producer)
            turn_cores.append((chip, *self.buffers.core[link_buffer]))
        return turn_cores, channels.pop()

    def _direct_multicast_noc(self, op: Op, name: str, producer: Op) -> int | None:
        """Return the NoC over which the producer `name` multicasts straight from its own core to the op that reads it,
        since it stands beside the op; None if it does not. Cached."""
        key = op.name, name
        if key not in self._directs:
            how = multicast(self.epoch.inputs(op), op.inputs.index(name))
            self._directs[key] = direct(self.epoch.netlist.arch_name, self.grid, producer, op, how)
        return self._directs[key]

    def _buffers_on_links(
        self, op: Op, producer: Op | None, only: Place | None, outputs: list[tuple[int, ...]]
    ) -> list[int]:
        """Return, for each turn of a pipe, the buffer on whose Ethernet core it is gathered; [] if worker cores gather.
        `only` is the only core that the pipe reads, None for several."""
        if producer is not None and is_ethernet(producer):
            source = producer
        else:
            source = None
        if source is not None and only is not None and all(len(turn) == 1 for turn in outputs):
            buffer_id = self.buffers.ops.outputs[source.name][only[0] * source.blocking.grid_size[1] + only[1]]
            return [buffer_id] * len(outputs)
        if is_ethernet(op) and only is None:
            return [turn[0] for turn in outputs]
        return []

    def _make_queue_pipes(self, queue: Queue, op: Op) -> None:
        """Make the pipes from an op to a queue that it feeds: one for each buffer, which for an untilized result reads
        all cores. Raises RefusedError for pieces that do not fit the cut."""
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
            if channel < 0:
                chip = op.target_device
            else:
                chip = op.attributes.dest_device
            core = (chip, *self.buffers.core[base])
            target = (ids[row * queue.blocking.grid_size[1] + column],)
            draft = Draft(
                id=self.buffers.ids.new(),
                inputs=inputs,
                outputs=[target],
                cores=[core],
                reader=queue.name,
                operand=0,
                source=op.name,
                channel=channel,
            )
            draft.bases = [base]
            self.made.append(draft)


def _only_core(read: list[int], columns: int, wrap: Place | None) -> Place | None:
    """Return row and column of the only core that a pipe reads; None if there are several, or padding. `read` numbers
    cores row by row in a grid of `columns` columns; for a queue in L1, `wrap` is the grid over which its buffers are
    dealt."""
    if read[0] < 0:
        return None
    read_cores = {divmod(core_number, columns) for core_number in read}
    if wrap is not None:
        read_cores = {(row % wrap[0], column % wrap[1]) for row, column in read_cores}
    if len(read_cores) == 1:
        return read_cores.pop()
    return None


def _merge_alike(draft: Draft) -> None:
    """Reduce the turns of a pipe to a single one if all have the same core and outputs and none is padding."""
    alike = len(set(draft.cores)) == 1 and len(set(draft.outputs)) == 1
    if alike and not any(draft.padding):
        draft.outputs = draft.outputs[:1]
        draft.cores = draft.cores[:1]
        draft.padding = []
        draft.scattered = False


def consumer_repeat(outputs: Sequence[tuple[int, ...]], padding: Sequence[bool]) -> int:
    """Return how often in a row each set of outputs is served, if that number is the same for all, and none comes again
    later; else 1. `padding` tells for each turn whether it is padding, which may not differ in a row."""
    count = len(outputs)
    repeat = next((number for number, output in enumerate(outputs) if output != outputs[0]), count)
    if count == 1 or repeat < 2 or count % repeat:
        return 1
    seen: set[tuple[int, ...]] = set()
    for start in range(0, count, repeat):
        turn = range(start, start + repeat)
        if any(outputs[output] != outputs[start] or padding[output] != padding[start] for output in turn):
            return 1
        if outputs[start] in seen:
            return 1
        seen.add(outputs[start])
    return repeat


def period(inputs: Sequence[int], tiles: int, cleared: int) -> int:
    """Return the number of inputs after which a long list repeats itself, in whole clears of the reader; 0 if it does
    not, or is short.

    `tiles` is the size of one input; `cleared` is the number of tiles that the reader frees at a time.
    """
    count = len(inputs)
    if count <= MAX_PERIOD:
        return 0
    table = np.array(inputs, np.int64)
    best = small = 0
    for candidate in (candidate for candidate in range(1, count // 2 + 1) if count % candidate == 0):
        if candidate * tiles % cleared or (table[candidate:] != table[:-candidate]).any():
            continue
        best = candidate
        if candidate >= MIN_PERIOD:
            break
        small = candidate
    if best > MAX_PERIOD and small:
        return small
    return best


def _is_multicast(op: Op, dest: tuple[int, int]) -> bool:
    """Return whether a destination of a pipe is several cores of the reader `op`: its row or column is `ALL`, and the
    grid has more than one row or column there."""
    sizes = op.blocking.grid_size
    return any(place == ALL and size > 1 for place, size in zip(dest, sizes, strict=True))


def _entry_core(op: Op, dest: tuple[int, int], noc1: bool) -> tuple[int, int, int]:
    """Return (chip, row, column) of a receiver's core; for a whole row or column of the reader's grid the core at which
    the NoC enters it: the first, over NoC 1 the last."""
    row, column = (max(place, 0) for place in dest)
    if noc1:
        rows, columns = op.blocking.grid_size
        if dest[0] == ALL:
            row = rows - 1
        if dest[1] == ALL:
            column = columns - 1
    return (op.target_device, *core_of(op, row, column))


def relays(epoch: Epoch, buffers: Buffers, pipes: PipeMaker, hops: Mapping[int, Hop]) -> Iterator[Buffer]:
    """Yield the buffers of all relays, each as large as its core has room for: those of copies between chips, and those
    by which other pipes go over links (`hops`, by id)."""
    op_buffers = buffers.ops
    if not op_buffers.relays and not hops:
        return
    filled = _pipes_by_output(pipes.made)
    count = epoch.input_count
    sized: dict[EthernetCore, list[tuple[int, Mapping[str, Any], Relay]]] = {}
    arrived_sizes: dict[EthernetCore, list[int]] = {}
    for name, ids in op_buffers.relays.items():
        op = epoch.ops[name]
        operand = op_buffers.operands[name][0]
        for cell, id in enumerate(ids):
            tile = operand.tile_size
            piece = operand.gathered
            gathered = _bytes_held_for_gather(epoch, buffers, filled[id], piece, tile)
            relay = Relay(piece, tile, operand.per_input * count, gathered)
            sized.setdefault(sends_from(epoch, op, cell), []).append((id, {"op": name}, relay))
            arrival_core = arrives_at(epoch, op, cell)
            arrived_sizes.setdefault(arrival_core, []).append(
                op_buffers.made[op_buffers.arrivals[name][cell]].size_tiles * tile
            )
    for id, hop in hops.items():
        chip, row, column, channel = hop.at
        relay = Relay(
            piece=hop.piece, tile_bytes=hop.tile_bytes, epoch_tiles=hop.epoch_tiles, gathered=0, tiles=hop.tiles
        )
        if channel < 0:
            yield _relay_buffer(EthernetCore(chip, -1, row, column), hop.number, id, {}, relay, count)
        else:
            sized.setdefault(EthernetCore(chip, channel, row, column), []).append((id, hop.result, relay))
    for core, group in sized.items():
        size_relays([relay for _, _, relay in group], arrived_bytes(arrived_sizes.get(core, ())))
        for number, (id, result, relay) in enumerate(group):
            yield _relay_buffer(core, number, id, result, relay, count)


def _pipes_by_output(drafts: Iterable[Draft]) -> dict[int, Draft]:
    """Return the pipes by the first output of each of their turns."""
    filled: dict[int, Draft] = {}
    for draft in drafts:
        filled |= {outputs[0]: draft for outputs in draft.outputs}
    return filled


def _bytes_held_for_gather(epoch: Epoch, buffers: Buffers, draft: Draft, piece: int, tile: int) -> int:
    """Return the bytes that the core of a relay holds of the gather that fills it: of `draft`, in pieces of `piece`
    tiles of `tile` bytes. 0 where net2pipe does not count them."""
    if draft.channel < 0 or draft.scattered:  # on a worker core, or for several in turn, which net2pipe does not count
        return 0
    from_dram = draft.source in epoch.netlist.queues
    cores = sum(id not in buffers.padding.made for id in draft.bases)
    return gathered_bytes(len(draft.inputs), cores, piece, tile, from_dram=from_dram)


def _relay_buffer(
    core: EthernetCore, number: int, id: int, result: Mapping[str, Any], relay: Relay, count: int
) -> Buffer:
    """Return the pipe graph's buffer of a relay. `number` counts the relays of its core; `result` has the fields that
    differ from a plain relay's; `count` is the inputs of the epoch."""
    alone = {"op": "", "ublock_rt": 1, "ublock_ct": 1, "mblock_m": 1, "mblock_n": 1}
    fields: dict[str, Any] = {**alone, **result, "chip": core.chip}
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
        **fields,
    )
