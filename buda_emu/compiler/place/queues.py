"""The queues of a placed graph: their blocks, entries and formats, and how their addresses are found."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd, lcm, prod

from buda_emu.compiler.lower.tiles import Constant, Shape, State
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.channels import Due, Phase, Readers, deadlines_by_queue, traffic_by_phase
from buda_emu.compiler.place.cost import constant_grid
from buda_emu.compiler.place.memory import Memory
from buda_emu.compiler.place.placement import PlacedOp, Placement, Queue, constant_queue, detour_queue
from buda_emu.compiler.target import Target

MOST_BUFFERS = 128
"""Most buffers of a constant that is read out of DRAM with each input. It was raised from 64 together with other
changes; no measurement of it alone is recorded."""
MOST_BUFFERS_FOR_A_CORE = 32
"""Most of these buffers that one core reads: some fewer than the queues in DRAM that a core may read (39,
`Device.dram_input_queues`), which other operands use, too."""
FORK_ROUNDS = 2
"""Rounds of inputs that a queue on a short branch has room for (FRONTEND 5)."""


def host_queue_blocks(shape: Shape, grid: tuple[int, int] = (1, 1), ublock: tuple[int, int] = (1, 1)) -> Blocks:
    """Return the blocks of a queue that the host fills or reads: its shape in tiles (t, rows, columns), cut over a grid
    of buffers that has to divide it."""
    t, r, c = shape
    return Blocks(grid, t, (r // grid[0] // ublock[0], c // grid[1] // ublock[1]), ublock)


def add_queues(placement: Placement, rounds: int, *, balances: bool = True) -> None:
    """Add all queues of a placement with their addresses to it. Queues of inputs and outputs, and those that another
    program reads, hold `rounds` rounds of inputs; with two the host can be a round ahead. `balances`: whether buffers
    are moved between channels once all epochs are known. Raises MemoryFullError."""
    readers = _readers_by_tensor(placement)
    for queue in _build_queues(placement, readers, rounds * placement.microbatch):
        placement.queues[queue.name] = queue
    due: dict[str, dict[Phase, Due]] = {}
    if placement.waits_for_one:
        due = deadlines_by_queue(placement, readers)
    moved = _queue_traffic(placement, readers, due)
    Memory(placement.target, balances=balances).add(placement, _sort_traffic(placement, moved), due)
    _share_addresses(placement)


def add_epoch_queues(
    placement: Placement, rounds: int, epoch: int, others: Mapping[str, Queue], *, balances: bool = True
) -> None:
    """Add the queues that one epoch reads or fills to a placement, for a trial of that epoch alone. They lie in the
    channels that they would have if all queues were added, unless queues between earlier and later epochs change these,
    but not at the addresses of a whole placement.

    `others` are the queues of a placement that differs in this epoch alone. A queue that an earlier epoch uses, too,
    takes its channels from there; for a single input so does every queue that is not loaded once, since its channels
    depend on every epoch that uses it. `rounds` and `balances` are those of `add_queues`. Raises MemoryFullError."""
    readers = _readers_by_tensor(placement)
    ops_of_epoch = {name for name, placed in placement.ops.items() if placed.epoch == epoch}
    tensors = set(ops_of_epoch)
    for name in ops_of_epoch:
        tensors.update(use.source for use in placement.ops[name].op.uses)
    readers = {name: placed for name, placed in readers.items() if name in tensors}
    for queue in _build_queues(placement, readers, rounds * placement.microbatch):
        placement.queues[queue.name] = queue
    due: dict[str, dict[Phase, Due]] = {}
    if placement.waits_for_one:
        due = deadlines_by_queue(placement, readers, epoch)
    moved = _queue_traffic(placement, readers, due)
    used = {name for name, phases in moved.items() if any(phase.epoch == epoch for phase in phases)}
    shown = {
        queue.alias or name for name, queue in placement.queues.items() if name in used or queue.input in ops_of_epoch
    }
    placement.queues = {name: queue for name, queue in placement.queues.items() if (queue.alias or name) in shown}
    channels = _channels_of_base(placement, moved, epoch, others)
    Memory(placement.target, balances=balances).add(placement, _sort_traffic(placement, moved), due, channels)
    _share_addresses(placement)


def _channels_of_base(
    placement: Placement, moved: dict[str, dict[Phase, float]], epoch: int, others: Mapping[str, Queue]
) -> dict[str, list[int]]:
    """Return the channels that queues take from `others`, the queues of a placement that differs in `epoch` alone:
    those of queues that an earlier epoch uses, and for a single input of all that are not loaded once.

    An earlier epoch's queue that is not there with as many buffers counts with this epoch's traffic alone; the rest is
    dropped from `moved`."""
    channels: dict[str, list[int]] = {}
    for name, queue in placement.queues.items():
        earlier = min(moved[name], default=Phase(epoch)).epoch < epoch
        before = others.get(name)
        keeps_channels = earlier or (placement.waits_for_one and not any(phase.once for phase in moved[name]))
        if keeps_channels and before is not None and len(before.addresses) == prod(queue.blocks.grid):
            channels[name] = [number for number, _ in before.addresses]
        elif earlier:
            moved[name] = {phase: size for phase, size in moved[name].items() if phase.epoch == epoch}
    return channels


def _sort_traffic(placement: Placement, moved: Mapping[str, Mapping[Phase, float]]) -> dict[str, Mapping[Phase, float]]:
    """Return the traffic of all queues but aliases, the queues of the first epoch first and of one epoch the busiest
    first, so that an epoch alone gets the channels that it has in the whole placement and similar epochs get nearly the
    same. Epochs of a single input count as one."""

    def key(name: str) -> tuple[int, float]:
        """Return the first epoch that uses a queue, 0 for all where an epoch takes one input at a time, and its
        greatest traffic, negated."""
        phases = moved[name]
        first = 0
        if not placement.waits_for_one:
            first = min((phase.epoch for phase in phases), default=-1)
        return first, -max(phases.values(), default=0.0)

    names = [name for name, queue in placement.queues.items() if not queue.alias]
    return {name: moved[name] for name in sorted(names, key=key)}


def _queue_traffic(
    placement: Placement, readers: Readers, due: dict[str, dict[Phase, Due]]
) -> dict[str, dict[Phase, float]]:
    """Return the bytes that each queue moves for one input in each phase. Those of an alias are also added to the ram
    whose bytes it shares, and in `due`, which is changed, the ram gets the earlier deadline of both."""
    moved = {name: traffic_by_phase(placement, queue, readers) for name, queue in placement.queues.items()}
    for name, queue in placement.queues.items():
        if not queue.alias:
            continue
        for phase, size in moved[name].items():
            moved[queue.alias][phase] = moved[queue.alias].get(phase, 0.0) + size
            if due and phase in due[name]:
                due[queue.alias][phase] = min(due[queue.alias].get(phase, due[name][phase]), due[name][phase])
    return moved


def _share_addresses(placement: Placement) -> None:
    """Give each alias the addresses of the ram whose bytes it shares."""
    for name, queue in placement.queues.items():
        if queue.alias:
            placement.queues[name] = replace(queue, addresses=placement.queues[queue.alias].addresses)


def _build_queues(placement: Placement, readers: Readers, entries: int) -> Iterator[Queue]:
    """Yield the queues of inputs, constants and states, those between epochs and beside long branches, and the outputs,
    all without addresses; those of inputs and outputs for `entries` inputs. The names of queues by which ops read
    constants and other epochs are recorded in the placement. `readers`: the ops that read each tensor."""
    yield from _input_queues(placement, readers, entries)
    yield from _constant_queues(placement, readers)
    for state in placement.tiles.states.values():
        written = _state_queue(placement, state)
        yield written
        if state.slots > 1:  # all slots as one entry (NETLIST 1.10)
            blocks = replace(written.blocks, t=written.blocks.t * state.slots)
            yield replace(written, name=state.queue, input="HOST", blocks=blocks, entries=1, alias=written.name)
    yield from _queues_between(placement, readers, entries)
    for source, chip in dict.fromkeys((source, placement.ops[reader].chip) for reader, source in placement.detours):
        yield fork_queue(placement, detour_queue(source, chip), source, chip)
    yield from _output_queues(placement, entries)


def _input_queues(placement: Placement, readers: Readers, entries: int) -> Iterator[Queue]:
    """Yield the queues of the model's inputs, with room for `entries` of them. An input has as many rows of buffers as
    suit all its readers, but one buffer if it holds indices or an embedding reads it. `readers`: the ops that read each
    tensor."""
    for queue in placement.tiles.inputs.values():
        tensor_readers = readers.get(queue.name, [])
        grid = (1, 1)
        if not queue.indices and _allows_several_buffers(tensor_readers):
            grid = (_common_grid_rows(tensor_readers, queue.shape[1]), 1)
        yield Queue(
            name=queue.name,
            input="HOST",
            role="input",
            blocks=host_queue_blocks(queue.shape, grid),
            df="RawUInt32" if queue.indices else placement.target.activation_df,
            type="queue",
            entries=entries,
            loc="dram",
            addresses=(),
        )


def _queues_between(placement: Placement, readers: Readers, entries: int) -> Iterator[Queue]:
    """Yield the queues by which later epochs read what ops make, and record their names in `placement.between`. A queue
    that another program reads holds `entries` inputs, any other those of a microbatch. `readers`: the ops that read
    each tensor."""
    for name, tensor_readers in readers.items():
        producer = placement.ops.get(name)
        later = [placed for placed in tensor_readers if producer is not None and placed.epoch != producer.epoch]
        if producer is None or not later:
            continue
        placement.between[name] = label = _unique_name(placement, f"e2e_{name}", name)
        df = placement.target.of(producer.op.precision).activation_df
        # All rounds of a program are done before the next program begins; within one each round is read before the
        # next is written (FRONTEND 5), so that its memory is free before and afterwards.
        spans_programs = any(placed.op.program != producer.op.program for placed in later)
        if spans_programs:
            queue_entries = entries
        else:
            queue_entries = placement.microbatch
        life = None
        if not spans_programs and placement.stages == 1:
            life = (producer.epoch, max(placed.epoch for placed in later))
        yield Queue(
            name=label,
            input=name,
            role="between",
            blocks=producer.blocks,
            df=df,
            type="queue",
            entries=queue_entries,
            loc="dram",
            addresses=(),
            chip=later[0].chip,
            life=life,
        )


def _output_queues(placement: Placement, entries: int) -> Iterator[Queue]:
    """Yield the queues of the model's outputs, with room for `entries` inputs: in the host's memory on a single chip,
    else in DRAM."""
    tiles = placement.tiles
    for output in tiles.outputs.values():
        placed = placement.ops[output.op]
        output_blocks = host_queue_blocks(tiles.ops[output.op].shape, ublock=placed.blocks.ublock)
        # V157, NETLIST 1.7: only the first chip reaches the host's memory. Of a window that is run again and again the
        # host wants one row: it reads that out of DRAM, and the program does not send it all of them.
        if placement.chips == 1 and not tiles.windows:
            loc = "host"
        else:
            loc = "dram"
        df = placement.target.of(placed.op.precision).output_df
        chip = 0 if loc == "host" else placed.chip
        yield Queue(
            name=output.name,
            input=output.op,
            role="output",
            blocks=output_blocks,
            df=df,
            type="queue",
            entries=entries,
            loc=loc,
            addresses=(),
            chip=chip,
        )


def _constant_queues(placement: Placement, readers: Readers) -> Iterator[Queue]:
    """Yield the queues of constants, at least one on every chip with an op that reads the constant, and record in
    `placement.held_as` which queue each reader takes. An op that keeps a constant in L1 needs a queue with as many
    buffers as its cores take apart (`routable.streams_of_constants`), so it gets a queue of its own where the first
    reader's is cut otherwise."""
    for constant in placement.tiles.constants.values():
        for chip in sorted({placed.chip for placed in readers.get(constant.name, ())}):
            yield from _constant_queues_on_chip(placement, constant, readers[constant.name], chip)


def _constant_queues_on_chip(
    placement: Placement, constant: Constant, readers: Sequence[PlacedOp], chip: int
) -> Iterator[Queue]:
    """Yield the queues of a constant on one chip, and record in `placement.held_as` which of them each reader there
    takes: the queue in the reader's own blocks, or the first queue where the reader does not keep the constant in
    L1."""
    chip_readers = [placed for placed in readers if placed.chip == chip]
    names: dict[Blocks, str] = {}
    for placed in chip_readers:
        if constant.kind == "table":
            layout_readers = chip_readers
        else:
            layout_readers = [placed]
        df, layout, blocks = _constant_layout(placement, constant.name, layout_readers)
        if blocks not in names and names and constant.name not in placed.held:
            blocks = next(iter(names))
        if blocks not in names:
            name = constant_queue(constant.name, chip)
            if names:
                name = f"{name}.cut{len(names)}"
            names[blocks] = _unique_name(placement, name, constant.name)
            yield Queue(
                name=names[blocks],
                input="HOST",
                role="constant",
                blocks=blocks,
                df=df,
                type="queue" if constant.kind in ("words", "table") else "ram",
                entries=1,
                loc="dram",
                addresses=(),
                layout=layout,
                alias="",
                chip=chip,
                tensor=constant.name,
            )
        placement.held_as[placed.op.name, constant.name] = names[blocks]


def _unique_name(placement: Placement, wished: str, owner: str) -> str:
    """Return a queue name for the constant or op `owner`: `wished`, with underscores behind it where another queue,
    constant or op has that name. Where each chip has a copy the name must not end like a copy's, `x.1` beside `x`:
    net2pipe mistakes one for the other (NETLIST 1.7)."""
    if placement.copies > 1:
        wished = re.sub(r"\.(\d+)\Z", r"_\1", wished)
    others = (placement.queues, placement.tiles.constants, placement.ops)
    while wished != owner and any(wished in names for names in others):
        wished += "_"
    return wished


def fork_queue(placement: Placement, name: str, source: str, chip: int) -> Queue:
    """Return the queue, called `name`, by which ops on `chip` read the op `source` of their own epoch through DRAM, in
    the producer's blocks and with room for `FORK_ROUNDS` rounds. It is not added to the placement."""
    producer = placement.ops[source]
    df = placement.target.of(producer.op.precision).activation_df
    entries = FORK_ROUNDS * placement.microbatch
    life = (producer.epoch, producer.epoch)
    return Queue(
        name=name,
        input=source,
        role="fork",
        blocks=producer.blocks,
        df=df,
        type="queue",
        entries=entries,
        loc="dram",
        addresses=(),
        chip=chip,
        life=life,
    )


def _state_queue(placement: Placement, state: State) -> Queue:
    """Return the ram that a state is written to, in the blocks of the op that writes it (NETLIST V076), or of the host
    where no op does; it has an entry for each slot, and one more if the state keeps zeros."""
    store = placement.tiles.stores.get(state.queue)
    source = "HOST"
    blocks = host_queue_blocks(state.shape)
    if store:
        source = store.op
        blocks = placement.ops[store.op].blocks
    df = state.df or placement.target.activation_df
    return Queue(
        name=state.written,
        input=source,
        role="state",
        blocks=blocks,
        df=df,
        type="ram",
        entries=state.slots + state.zeros,
        loc="dram",
        addresses=(),
    )


def _readers_by_tensor(placement: Placement) -> Readers:
    """Return the ops that read each tensor, each once, in the order of the placement."""
    readers: Readers = {}
    for placed in placement.ops.values():
        for name in dict.fromkeys(use.source for use in placed.op.uses):
            readers.setdefault(name, []).append(placed)
    return readers


def _allows_several_buffers(readers: Iterable[PlacedOp]) -> bool:
    """Return whether a queue with these readers may have several buffers; the table of an embedding may not."""
    return all(not placed.op.has("row-wise index") for placed in readers)


def _common_grid_rows(readers: Iterable[PlacedOp], size: int) -> int:
    """Return the rows of buffers for a queue of `size` tile rows: the most that divide the rows of cores of all
    readers, 1 where that does not divide the queue or nobody reads it."""
    rows = 0
    for placed in readers:
        rows = gcd(rows, placed.blocks.grid[0])
    if rows and size % rows == 0:
        return rows
    return 1


_CONSTANT_FORMATS = {"codes": "Int8", "sums": "Int32", "scale": "Float32"}
"""Formats of constants in products of integers, by the constant's kind (V102, V103)."""


def _constant_layout(placement: Placement, name: str, readers: Sequence[PlacedOp]) -> tuple[str, str, Blocks]:
    """Return format, layout ("tilized" or "flat") and blocks of a constant's queue as the first of `readers` needs it
    (FRONTEND 5). A table is cut into as many mblock columns as all of them have columns of cores, since the router
    takes whole ones only."""
    reader = readers[0]
    target = placement.target.of(reader.op.precision)
    constant = placement.tiles.constants[name]
    t, r, c = constant.shape
    if constant.kind == "words":
        return "RawUInt32", "tilized", host_queue_blocks(constant.shape, (reader.blocks.grid[0], 1))
    if constant.kind == "table":
        columns = lcm(*(placed.blocks.grid[1] for placed in readers))
        return target.table_df, "flat", Blocks((1, 1), t, (1, columns), (r, c // columns))
    number = next(number for number, use in enumerate(reader.op.uses) if use.source == name)
    df = _constant_format(target, constant)
    if reader.op.attrs.get("identity") and number == 0:
        return df, "tilized", host_queue_blocks(constant.shape, (reader.blocks.grid[0], 1))
    grid = constant_grid(reader.op, number, constant.shape, reader.blocks.grid)
    if reader.op.is_factor(number) and name not in reader.held and placement.waits_for_one:
        grid = grid[0], buffer_count(grid[1], c, target.arch.dram_channels)
    return df, "tilized", host_queue_blocks(constant.shape, grid)


def _constant_format(target: Target, constant: Constant) -> str:
    """Return the data format of a constant on this target."""
    if constant.kind == "picker":
        return target.picker_df
    return _CONSTANT_FORMATS.get(constant.kind) or target.activation_df


def buffer_count(columns: int, width: int, channels: int) -> int:
    """Return the number of buffers, side by side, of a constant that is `width` tiles wide and read out of DRAM with
    each input: a multiple of the reader's `columns` of cores that divides the width and with which the fullest of
    `channels` DRAM channels has the least share, the most buffers of equal ones; `columns` where no multiple divides
    the width."""
    max_buffers = min(MOST_BUFFERS, MOST_BUFFERS_FOR_A_CORE * columns, width)
    counts = [n for n in range(columns, max_buffers + 1, columns) if width % n == 0]
    return min(counts, key=lambda n: (-(-n // channels) / n, -n), default=columns)
