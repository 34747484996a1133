"""Models with caches: their programs of one graph, the compiler's entry point for them, and the compiled result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, cast

import numpy as np

from buda_emu.compiler.compilation import (
    Compilation,
    CompileOptions,
    OptionWords,
    with_words,
    within_memory,
    without_sizes,
)
from buda_emu.compiler.compiled import CompiledModel, ModelPerf, as_numpy
from buda_emu.compiler.emit.programs import CACHE, program_name
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output, Shape
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.place.placement import Placement
from buda_emu.emulator.image.model_io import ModelIo
from buda_emu.netlist.variants import LOOP
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays


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
    refuse_masked_arrays(item, f"cache {cache}")
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
            made.outputs.append(
                Output(label=cache, value=names[output.value], dtype="float32", program=program, state=cache)
            )
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


class CompiledPrograms(CompiledModel):
    """What `compile_programs` returns. `parts`: by the name that a program was given."""

    def __init__(self, graph: Graph, placement: Placement, title: str, parts: Mapping[str, Part]) -> None:
        super().__init__(graph, placement, title)
        self.parts = dict(parts)
        self.slots = max((state.slots for state in placement.tiles.states.values()), default=1)
        """Of the caches that are written slot by slot."""

    def __call__(
        self, *inputs: Any, precision: Precision = "ideal", program: str = "", write_index: int = 0
    ) -> tuple[Array, ...]:
        """One round of a program (by default the only one), which writes slot `write_index` of its caches. Raises
        HostError, ProgramError."""
        return self.rounds([inputs], precision=precision, program=program, write_index=write_index)[0]

    def rounds(
        self,
        inputs: Sequence[Sequence[Any]],
        *,
        precision: Precision = "ideal",
        program: str = "",
        write_index: int = 0,
    ) -> list[tuple[Array, ...]]:
        """Several rounds in one run, each in the slot after that of the one before."""
        name, part = self._part(program)
        count = len(inputs)
        if not 1 <= count <= self._entries(part):
            raise HostError(f"{name}: {count} rounds in one run; its queues hold {self._entries(part)}")
        if not 0 <= write_index <= self.slots - min(count, self.slots):
            raise HostError(f"{name}: write_index {write_index} for {count} rounds; its caches have {self.slots} slots")
        io = self._io(part)
        machine = self.machines.machine(precision)
        for given in inputs:
            if len(given) != len(part.inputs):
                takes = f"{name} takes {len(part.inputs)}: {', '.join(part.inputs)}"
                raise HostError(f"{plural(len(given), 'input')}, {takes}")
            arrays = dict(zip(part.inputs, map(as_numpy, given), strict=True))
            for queue, array in io.queues(arrays).items():
                machine.push(queue, array)
        machine.run(program_name(part.program), self._parameters(part, write_index, count))
        return [tuple(item.from_queue(machine.pop(item.queue)) for item in io.outputs) for _ in range(count)]

    def reset(self) -> None:
        """Caches as they were at first, on the machine that there is."""
        for machine in self.machines.open.values():
            for state in self.placement.tiles.states.values():
                machine.push(state.written, state.entries(state.held))

    def caches(self) -> dict[str, Array]:
        """What each cache holds now, in the shape that the module sees."""
        found: dict[str, Array] = {}
        for state in self.placement.tiles.states.values():
            held = state.held
            for machine in self.machines.open.values():
                held = machine.peek(state.written, state.slots, readout="raw")
            flat = held.reshape(-1)[state.layout.place("zrc").ravel()]
            found[state.label] = flat.reshape(state.host_shape)
        return found

    def perf(self, program: str = "") -> ModelPerf:
        """Modelled cycles of one round of a program, of one token where it is a decoder; by default of all programs
        together. Raises HostError for an unknown name."""
        names = [program_name(self._part(program)[1].program)] if program else None
        return self._modelled({LOOP: "1", **self._cache_parameters(0, 1)}, names)

    # ------------------------------------------------------------------------------------------------ decoding
    def generate(
        self,
        prompt: Sequence[int],
        count: int,
        *,
        precision: Precision = "ideal",
        program: str = "",
        stop: int | None = None,
    ) -> list[int]:
        """Tokens after a prompt, each the likeliest one: at most `count`, none after `stop`.

        The program's module takes a window of tokens [1, n] and their positions [1, n], reads what the slots of earlier
        windows hold from its caches, and gives scores [1, n, tokens]. The prompt's windows are one run, slot after slot
        (prefill); then each token is one run, on the slot of its own window (decode). Raises HostError where the caches
        are too short.
        """
        name, part = self._part(program)
        nodes = {self.graph[item].attrs["label"]: self.graph[item] for item in self.graph.inputs}
        shapes = [nodes[label].shape for label in part.inputs]
        if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != 1:
            raise HostError(f"generate: {name} takes {shapes}, not tokens [1, n] and positions [1, n]")
        width = shapes[0][1]
        tokens = [int(item) for item in prompt]
        most = width * self.slots
        if not tokens or len(tokens) + count - 1 > most:
            raise HostError(f"generate: {plural(len(tokens), 'token')} and {count} more; caches have room for {most}")
        first = 0
        for _ in range(count):
            last = (len(tokens) - 1) // width
            room = self._entries(part)
            scores: Array = np.zeros(0)
            for start in range(first, last + 1, room):
                windows = range(start, min(start + room, last + 1))
                rounds = [_window(tokens, window, width) for window in windows]
                scores = self.rounds(rounds, precision=precision, program=name, write_index=start)[-1][0]
            first = last
            tokens.append(int(np.argmax(scores[0, (len(tokens) - 1) % width])))
            if tokens[-1] == stop:
                break
        return tokens[len(prompt) :]

    # ------------------------------------------------------------------------------------------------- details
    def _part(self, program: str) -> tuple[str, Part]:
        if not program and len(self.parts) == 1:
            return next(iter(self.parts.items()))
        if program not in self.parts:
            raise HostError(f"program {program!r} is not one of: {', '.join(self.parts)}")
        return program, self.parts[program]

    def _io(self, part: Part) -> ModelIo:
        inputs = tuple(item for item in self.io.inputs if item.label in part.inputs)
        outputs = tuple(item for item in self.io.outputs if item.label in part.outputs)
        return ModelIo(part.inputs, inputs, outputs)

    def _entries(self, part: Part) -> int:
        queues = [item.queue for item in self._io(part).inputs]
        return min((self.placement.queues[name].entries for name in queues), default=1)

    def _parameters(self, part: Part, write_index: int, count: int) -> dict[str, str]:
        """Those that the program has."""
        known = {LOOP: str(count), **self._cache_parameters(write_index, count)}
        wanted = next(iter(self.netlist.programs[program_name(part.program)].instructions), None)
        names = getattr(wanted, "names", ())
        return {name: value for name, value in known.items() if name in names}

    def _cache_parameters(self, write_index: int, count: int) -> dict[str, str]:
        return {
            CACHE.write_index: str(write_index),
            CACHE.inner_count: "1",
            CACHE.inner_increment: "0",
            CACHE.outer_count: str(count),
            CACHE.outer_increment: "1",
        }


def _window(tokens: Sequence[int], window: int, width: int) -> tuple[Array, Array]:
    """Tokens, zeros after the last one, and positions."""
    own = list(tokens[window * width : (window + 1) * width])
    positions = np.arange(window * width, (window + 1) * width)[None]
    return np.asarray([own + [0] * (width - len(own))]), positions


MODEL = "model"
"""Name of a program that was given none."""
ENTRIES = 4
"""Rounds that queues have room for."""


@within_memory()
def compile_programs(
    programs: Program | Mapping[str, Program], *, options: CompileOptions | None = None, **words: Unpack[OptionWords]
) -> CompiledPrograms:
    """Compile a model that keeps caches from run to run, or several models that share caches, as programs of one
    netlist (docs/compile/generate.md): text generation, recurrent states, running means.

    `programs`: one Program, or several by name. `options`, or its fields as keywords, which replace those of `options`:
    see CompileOptions.

    Raises HostError where a cache does not fit what is kept in it; HostError, UnsupportedError and TypeError as
    `compile` does.
    """
    compilation = Compilation.of(without_sizes(with_words(options, words, "compile_programs"), "compile_programs"))
    with compilation.memory.reading():
        graph, parts = programs_graph({MODEL: programs} if isinstance(programs, Program) else programs)
    return CompiledPrograms(*compilation.placed(graph, entries=ENTRIES), parts)
