"""Pipe graphs, told apart by what they say, not by the ids that net2pipe and we give to buffers and pipes."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import fields, replace

from buda_emu.performance.routing.pipes.model import NO_CORE, Buffer, Pipe, PipeGraph

_PLACES = 1_000_000_000
"""Places within a buffer are counted from its id on."""
_OF_PIPES = {"id", "inputs", "outputs", "output_padding"}

Key = tuple[Hashable, ...]
Said = dict[Key, dict[str, object]]


def canonical(graph: PipeGraph) -> tuple[Said, Said]:
    """What is said of each buffer, and of each pipe; net2pipe names relays by their ids."""
    unnamed = (replace(one, op="") if one.buffer_type in ("ethernet_relay", "relay") else one for one in graph.buffers)
    graph = replace(graph, buffers=tuple(unnamed))
    keys = _buffer_keys(graph)

    def place(reference: int) -> tuple[Key, int]:
        return keys[reference - reference % _PLACES], reference % _PLACES

    buffers: Said = {}
    for buffer in graph.buffers:
        said = {field.name: getattr(buffer, field.name) for field in fields(Buffer) if field.name != "id"}
        if buffer.buffer_space_shared >= 0:
            said["buffer_space_shared"] = keys[buffer.buffer_space_shared]
        buffers[keys[buffer.id]] = said
    pipes: Said = {}
    seen = Counter[Key]()
    for pipe in graph.pipes:
        said = {field.name: getattr(pipe, field.name) for field in fields(Pipe) if field.name not in _OF_PIPES}
        said["inputs"] = [place(one) for one in pipe.inputs]
        said["outputs"] = [[place(one) for one in turn] for turn in pipe.outputs]
        said["padded turns"] = [bool(one) for one in pipe.output_padding] if any(pipe.output_padding) else []
        key: Key = tuple(tuple(sorted(map(place, turn), key=repr)) for turn in pipe.outputs)
        pipes[*key, seen[key]] = said
        seen[key] += 1
    return buffers, pipes


def differences(found: PipeGraph, expected: PipeGraph) -> list[str]:
    """What one graph says and the other does not, a line each."""
    lines: list[str] = []
    for what, ours, theirs in zip(("buffer", "pipe"), canonical(found), canonical(expected), strict=True):
        lines += [f"{what} missing: {key}" for key in theirs.keys() - ours.keys()]
        lines += [f"{what} too much: {key}" for key in ours.keys() - theirs.keys()]
        for key in theirs.keys() & ours.keys():
            for name, value in theirs[key].items():
                if ours[key][name] != value:
                    lines.append(f"{what} {key}: {name} is {ours[key][name]}, should be {value}")
    return lines


def _buffer_keys(graph: PipeGraph) -> dict[int, Key]:
    """Where a buffer lies and what it is for; those that are alike in that are numbered in order."""
    keys: dict[int, Key] = {}
    seen = Counter[Key]()
    for one in graph.buffers:
        in_dram = one.row == NO_CORE or one.buffer_type.startswith(("dram", "unknown"))
        dram = (one.dram_chan, one.dram_addr) if in_dram else None
        key: Key = (one.op, one.buffer_type, one.chip, one.row, one.column, one.operand, dram, one.is_padding)
        keys[one.id] = (*key, seen[key])
        seen[key] += 1
    return keys
