"""Pipe graphs near what pipegen2 accepts: real ones with a few changes, and their text for the vendor's program."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from random import Random
from typing import cast

from buda_emu.performance.routing.pipes.model import NO_CORE, Buffer, Pipe, PipeGraph
from pipe_reading import RENAMED

Change = Callable[[PipeGraph, Random], PipeGraph]


def as_text(graph: PipeGraph) -> str:
    """The graph as the vendor's net2pipe would write it."""
    blocks = [f"graph_name: {graph.name}\n"]
    blocks += [f"buffer_{buffer.id}:\n{_lines(buffer)}" for buffer in graph.buffers]
    blocks += [f"pipe_{pipe.id}:\n{_lines(pipe)}" for pipe in graph.pipes]
    return "---\n".join(blocks)


_ALWAYS = ("row", "chip", "prefetch_type")  # pipegen2 has no value of its own for these


def _lines(of: Buffer | Pipe) -> str:
    keys = {new: old for old, new in RENAMED[type(of)].items()}
    lines = list[str]()
    for field in fields(of):
        value = getattr(of, field.name)
        if field.name == "column" or (value == field.default and field.name not in _ALWAYS):
            continue
        key = keys.get(field.name, field.name)
        if field.name == "row":
            key, value = "core_coordinates", [value, getattr(of, "column", NO_CORE)]
        lines.append(f"  {key}: {_text(field.name, value)}\n")
    return "".join(lines)


def _text(name: str, value: object) -> str:
    if name == "chip":
        return f"[{value}]"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_text("", one) for one in cast(Sequence[object], value)) + "]"
    return str(value)


def mutated(graph: PipeGraph, random: Random) -> PipeGraph:
    """One to four changes of `CHANGES`."""
    for _ in range(random.randint(1, 4)):
        graph = random.choice(CHANGES)(graph, random)
    return graph


def _some_buffer(graph: PipeGraph, random: Random, of: Callable[[Buffer], bool]) -> Buffer | None:
    fitting = [buffer for buffer in graph.buffers if of(buffer)]
    return random.choice(fitting) if fitting else None


def _with_buffer(graph: PipeGraph, buffer: Buffer) -> PipeGraph:
    return replace(graph, buffers=tuple(buffer if one.id == buffer.id else one for one in graph.buffers))


def _with_pipe(graph: PipeGraph, pipe: Pipe) -> PipeGraph:
    return replace(graph, pipes=tuple(pipe if one.id == pipe.id else one for one in graph.pipes))


def _in_l1(buffer: Buffer) -> bool:
    return buffer.row != NO_CORE


def _larger_buffer(graph: PipeGraph, random: Random) -> PipeGraph:
    buffer = _some_buffer(graph, random, _in_l1)
    factor = random.choice((2, 3, 4, 8, 16, 24))
    return graph if buffer is None else _with_buffer(graph, replace(buffer, size_tiles=buffer.size_tiles * factor))


def _larger_blob(graph: PipeGraph, random: Random) -> PipeGraph:
    buffer = _some_buffer(graph, random, lambda one: one.buffer_type == "unpacker")
    size = random.choice((60_000, 65_408, 65_409, 69_504, 70_000, 200_000, 700_000))
    return graph if buffer is None else _with_buffer(graph, replace(buffer, overlay_blob_size=size))


def _other_tiles(graph: PipeGraph, random: Random) -> PipeGraph:
    buffer = _some_buffer(graph, random, lambda _: True)
    if buffer is None:
        return graph
    size = random.choice((352, 544, 1120, 2080, 4128))
    alike = {one.id for one in graph.buffers if one.op == buffer.op}
    buffers = tuple(replace(one, tile_size=size) if one.id in alike else one for one in graph.buffers)
    return replace(graph, buffers=buffers)


def _all_on_one_core(graph: PipeGraph, random: Random) -> PipeGraph:
    """Pipes that gather or multicast do so on one core."""
    place = random.choice(graph.pipes).mcast_core_rc[:1]
    share = random.random()
    pipes = tuple(
        replace(pipe, mcast_core_rc=place * len(pipe.mcast_core_rc)) if random.random() < share else pipe
        for pipe in graph.pipes
    )
    return replace(graph, pipes=pipes)


def _more_readers(graph: PipeGraph, random: Random) -> PipeGraph:
    """Copies of a pipe and of the kernels' operands that it fills, which other operands of the same cores take in."""
    pipe = random.choice(graph.pipes)
    known = {buffer.id: buffer for buffer in graph.buffers}
    filled = {id for outputs in pipe.outputs for id in outputs}
    if any(known[id].buffer_type != "unpacker" for id in filled):
        return graph
    used = {(one.row, one.column, one.operand) for one in graph.buffers}
    last = max(max(known), max(one.id for one in graph.pipes)) + 10**9
    buffers, pipes = list(graph.buffers), list(graph.pipes)
    for copy in range(random.choice((1, 2, 5, 9, 20, 30))):
        new = {id: last + (copy * 1000 + place) * 100_000 for place, id in enumerate(sorted(filled))}
        for id, to in new.items():
            free = [n for n in range(16) if (known[id].row, known[id].column, n) not in used]
            row = known[id].row if free else random.randrange(10)
            column = known[id].column if free else random.randrange(8)
            free = free or [n for n in range(16) if (row, column, n) not in used]
            if not free:
                return replace(graph, buffers=tuple(buffers), pipes=tuple(pipes))
            used.add((row, column, free[0]))
            buffers.append(replace(known[id], id=to, row=row, column=column, operand=free[0]))
        outputs = tuple(tuple(new[id] for id in one) for one in pipe.outputs)
        pipes.append(replace(pipe, id=last + copy * 100_000_000 + 50_000, outputs=outputs))
    return replace(graph, buffers=tuple(buffers), pipes=tuple(pipes))


def _other_repeats(graph: PipeGraph, random: Random) -> PipeGraph:
    pipe = random.choice(graph.pipes)
    if random.random() < 0.5:
        return _with_pipe(graph, replace(pipe, pipe_periodic_repeat=random.choice((0, 1, 2, 4))))
    return _with_pipe(graph, replace(pipe, dis_gather_opt=not pipe.dis_gather_opt))


def _other_read_buffers(graph: PipeGraph, random: Random) -> PipeGraph:
    size = random.choice((1, 4, 8, 20, 32, 64))
    pipes = tuple(
        replace(pipe, op_input_dram_io_buf_size_tiles=size)
        if pipe.dram_pipe_total_readers and random.random() < 0.7
        else pipe
        for pipe in graph.pipes
    )
    return replace(graph, pipes=pipes)


def _other_granularity(graph: PipeGraph, random: Random) -> PipeGraph:
    buffer = _some_buffer(graph, random, lambda one: one.tile_clear_granularity > 0)
    if buffer is None:
        return graph
    size = max(1, buffer.tile_clear_granularity * random.choice((1, 2, 4, 8)) // random.choice((1, 2, 4)))
    return _with_buffer(graph, replace(buffer, tile_clear_granularity=size))


def _more_tiles(graph: PipeGraph, random: Random) -> PipeGraph:
    factor = random.choice((2, 3, 16, 64, 128, 300))
    longer = tuple(replace(one, epoch_tiles=one.epoch_tiles * factor) for one in graph.buffers)
    return replace(graph, buffers=longer)


def _direct_multicast(graph: PipeGraph, random: Random) -> PipeGraph:
    many = [pipe for pipe in graph.pipes if len(pipe.outputs) == 1 and len(pipe.outputs[0]) > 1]
    return _with_pipe(graph, replace(random.choice(many), direct_mcast=True)) if many else graph


CHANGES: tuple[Change, ...] = (
    _larger_buffer,
    _larger_blob,
    _other_tiles,
    _all_on_one_core,
    _more_readers,
    _more_readers,
    _other_repeats,
    _other_read_buffers,
    _other_granularity,
    _more_tiles,
    _direct_multicast,
)
