"""Modules whose inputs are caches become programs of one graph: a cache is a state, which a program reads whole and
writes whole or slot by slot (FRONTEND 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from buda_emu.checker.suggest import near
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output, Shape
from buda_emu.compiler.importers.source import read_model
from buda_emu.errors import HostError
from buda_emu.unmasked import require_unmasked


@dataclass(frozen=True, slots=True)
class Program:
    """A model that shares caches with others: `source` and `inputs` as `compile` takes them.

    `keeps`: by the number of an output, the cache that it goes to. An input of any program that has a cache's name
    reads it; its example is what the cache holds at first. An output of a cache's shape replaces it; one that is an
    integer number of times shorter along one dimension is written to the slot of the run's write index.
    """

    source: Any
    inputs: Sequence[Any]
    keeps: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Part:
    """What the host knows of a program: its name in the netlist, and its inputs and outputs there in their order."""

    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def programs_graph(programs: Mapping[str, Program]) -> tuple[Graph, dict[str, Part]]:
    """One graph of all. Raises HostError, UnsupportedError."""
    graphs = {name: read_model(item.source, item.inputs) for name, item in programs.items()}
    caches = _caches(programs, graphs)
    made = Graph("_".join(programs) if len(programs) > 1 else next(iter(graphs.values())).name)
    parts: dict[str, Part] = {}
    for number, (name, graph) in enumerate(graphs.items()):
        prefix = f"{name}." if len(programs) > 1 else ""
        parts[name] = _add(made, graph, f"fwd_{number}", prefix, programs[name].keeps, caches)
    return made, parts


@dataclass(frozen=True, slots=True)
class _Cache:
    initial: Array
    slots: int
    dim: int


def _caches(programs: Mapping[str, Program], graphs: Mapping[str, Graph]) -> dict[str, _Cache]:
    """All of them, with what they hold at first. Raises HostError where shapes do not fit."""
    written: dict[str, Shape] = {}
    inputs = {name: [graph[node].attrs["label"] for node in graph.inputs] for name, graph in graphs.items()}
    for name, program in programs.items():
        for number, cache in _kept(name, program.keeps).items():
            if not 0 <= number < len(graphs[name].outputs):
                raise HostError(f"compile: {name} has no output {number} to keep in {cache}")
            if not any(cache in labels for labels in inputs.values()):
                raise HostError(_unread(name, number, cache, inputs))
            if cache in written:
                raise HostError(f"compile: {cache} is written twice, and a ram has one writer (NETLIST V070)")
            written[cache] = graphs[name][graphs[name].outputs[number].value].shape
    found: dict[str, _Cache] = {}
    for cache, shape in written.items():
        examples = [_example(programs[name], graph, cache) for name, graph in graphs.items()]
        initial = next(item for item in examples if item is not None)
        found[cache] = _Cache(initial, *_slots(cache, initial.shape, shape))
    if len({item.slots for item in found.values()} - {1}) > 1:
        raise HostError("compile: caches of one netlist have one number of slots, here there are several")
    return found


def _kept(name: str, keeps: object) -> Mapping[int, str]:
    """Numbers of outputs, and the caches that they go to. Raises HostError for what is none."""
    if isinstance(keeps, Mapping):
        given = cast("Mapping[Any, Any]", keeps)
        if all(type(number) is int and isinstance(cache, str) for number, cache in given.items()):
            return given
    what = 'it says by numbers of outputs which input each goes to: {1: "past"}'
    raise HostError(f"compile: keeps of {name} is {keeps!r}; {what}")


def _unread(name: str, number: int, cache: str, inputs: Mapping[str, Sequence[str]]) -> str:
    """What is said of a cache that no program reads."""
    known = [label for labels in inputs.values() for label in labels]
    hint = near(cache, known)
    own = "; ".join(f"inputs of {program}: {', '.join(labels) or 'none'}" for program, labels in inputs.items())
    return (
        f"compile: {name} keeps output {number} in {cache}, and no input is called that{f', {hint}' if hint else ''} "
        f"({own}). What nobody reads again is an output: leave it out of keeps"
    )


def _example(program: Program, graph: Graph, cache: str) -> Array | None:
    labels = [graph[name].attrs["label"] for name in graph.inputs]
    if cache not in labels:
        return None
    item = program.inputs[labels.index(cache)]
    require_unmasked(item, f"cache {cache}")
    return np.asarray(item.detach().cpu().numpy() if hasattr(item, "detach") else item)


def _slots(cache: str, whole: Shape, part: Shape) -> tuple[int, int]:
    """How many parts, and along which dimension."""
    differ = [dim for dim, (a, b) in enumerate(zip(whole, part, strict=False)) if a != b]
    if len(whole) != len(part) or len(differ) > 1 or (differ and whole[differ[0]] % part[differ[0]]):
        raise HostError(f"compile: cache {cache} is {list(whole)}; the part to keep, {list(part)}, is not part of it")
    return (whole[differ[0]] // part[differ[0]], differ[0]) if differ else (1, 0)


def _add(
    made: Graph, graph: Graph, program: str, prefix: str, keeps: Mapping[int, str], caches: Mapping[str, _Cache]
) -> Part:
    """The nodes of one model into the graph of all, its cache inputs as states."""
    b = Builder(made, decompose=False)
    names: dict[str, str] = {}
    inputs: list[str] = []
    for node in graph:
        found = _renamed(b, node, names, prefix, caches)
        names[node.name] = found.name
        if found.op == "input":
            made.inputs.append(found.name)
            inputs.append(found.attrs["label"])
    outputs: list[str] = []
    for number, output in enumerate(graph.outputs):
        cache = keeps.get(number)
        if cache is None:
            outputs.append(prefix + output.label)
            made.outputs.append(Output(prefix + output.label, names[output.value], output.dtype, program))
        else:
            made.outputs.append(Output(cache, names[output.value], "float32", program, cache))
    return Part(program, tuple(inputs), tuple(outputs))


def _renamed(b: Builder, node: Node, names: Mapping[str, str], prefix: str, caches: Mapping[str, _Cache]) -> Node:
    if node.op == "input":
        label = node.attrs["label"]
        if label in caches:
            cache = caches[label]
            return b.state(label, cache.initial, slots=cache.slots, dim=cache.dim)
        node = replace(node, attrs={"label": prefix + label})
    name = b.unique(prefix + node.name)
    b.graph.nodes[name] = replace(node, name=name, inputs=tuple(names[item] for item in node.inputs))
    return b.graph.nodes[name]
