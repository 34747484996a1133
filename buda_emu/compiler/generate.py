"""Generating tokens: modules that share caches which stay on the machine between steps, compiled into one netlist with
a program each (docs/compile/generate.md). Holds the graph of their programs, the compiler's entry point for them, and
the compiled result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
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
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.examples import example_sequence
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output, Shape
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.lower.tiles import State
from buda_emu.compiler.place.placement import Placement
from buda_emu.emulator.image.model_io import ModelIo, inputs_by_label
from buda_emu.emulator.image.model_programs import ModelProgram, ModelState, WindowProgram, require_rounds
from buda_emu.emulator.image.shape_rules import ShapeRule
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.program.parameters import parameters_of_rounds
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.unmasked import refuse_masked_arrays


@dataclass(frozen=True, slots=True)
class Program:
    """A model that shares caches with others: `source` and `inputs` as `compile` takes them, a single array included.

    `keeps` maps the number of an output to the name of the cache that it goes to. An input of any program with a
    cache's name reads that cache, and its example is the cache's initial content. An output of a cache's shape replaces
    its content; one that is an integer number of times shorter along one dimension is written to the slot of the run's
    write index.
    """

    source: Any
    inputs: Any
    keeps: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Part:
    """A program as the host sees it: its name in the netlist, and the names of its inputs and outputs there, in
    order."""

    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def programs_graph(programs: Mapping[str, Program]) -> tuple[Graph, dict[str, Part]]:
    """Import the models of all programs and join them to one graph, with a state for each cache; return it and the
    inputs and outputs of each program. Raises HostError for a model that cannot be read and for an output that does not
    fit its cache, UnsupportedError for one that cannot be compiled."""
    graphs = {name: read_model(program.source, program.inputs) for name, program in programs.items()}
    caches = _collect_caches(programs, graphs)
    joint_graph = Graph("_".join(programs) if len(programs) > 1 else next(iter(graphs.values())).name)
    parts: dict[str, Part] = {}
    for number, (name, graph) in enumerate(graphs.items()):
        if len(programs) > 1:
            prefix = f"{name}."
        else:
            prefix = ""
        parts[name] = _add_model(joint_graph, graph, f"fwd_{number}", prefix, programs[name].keeps, caches)
    return joint_graph, parts


@dataclass(frozen=True, slots=True)
class _Cache:
    """A cache: its initial content, the number of its slots, and the dimension that they divide."""

    initial: Array
    slots: int
    dim: int


def _collect_caches(programs: Mapping[str, Program], graphs: Mapping[str, Graph]) -> dict[str, _Cache]:
    """Return all caches by name. Raises HostError for shapes that do not match."""
    written = _written_caches(programs, graphs)
    caches: dict[str, _Cache] = {}
    for cache, shape in written.items():
        examples = [_cache_example(programs[name], graph, cache) for name, graph in graphs.items()]
        initial = next(example for example in examples if example is not None)
        caches[cache] = _Cache(initial, *_slot_division(cache, initial.shape, shape))
    if len({example.slots for example in caches.values()} - {1}) > 1:
        raise HostError("compile: caches of one netlist have one number of slots, here there are several")
    return caches


def _written_caches(programs: Mapping[str, Program], graphs: Mapping[str, Graph]) -> dict[str, Shape]:
    """Return the shape of what is written into each cache, by its name. Raises HostError for a cache that no program
    reads, for one that is written twice, and for outputs that do not exist."""
    written: dict[str, Shape] = {}
    inputs = {name: [graph[node].attrs["label"] for node in graph.inputs] for name, graph in graphs.items()}
    for name, program in programs.items():
        for number, cache in _cache_names(name, program.keeps).items():
            if not 0 <= number < len(graphs[name].outputs):
                raise HostError(f"compile: {name} has no output {number} to keep in {cache}")
            if not any(cache in labels for labels in inputs.values()):
                raise HostError(_unread_message(name, number, cache, inputs))
            if cache in written:
                raise HostError(f"compile: {cache} is written twice, and a ram has one writer (NETLIST V070)")
            written[cache] = graphs[name][graphs[name].outputs[number].value].shape
    return written


def _cache_names(name: str, keeps: object) -> Mapping[int, str]:
    """Return the mapping from the numbers of outputs to caches. Raises HostError for anything else."""
    if isinstance(keeps, Mapping):
        cache_by_output = cast("Mapping[Any, Any]", keeps)
        if all(type(number) is int and isinstance(cache, str) for number, cache in cache_by_output.items()):
            return cache_by_output
    hint = 'it says by numbers of outputs which input each goes to: {1: "past"}'
    raise HostError(f"compile: keeps of {name} is {keeps!r}; {hint}")


def _unread_message(name: str, number: int, cache: str, inputs: Mapping[str, Sequence[str]]) -> str:
    """Return the message that a program, `name`, keeps an output in a cache that no program reads; `inputs`: the inputs
    of each program."""
    labels_of_inputs = [*chain.from_iterable(inputs.values())]
    hint = near(cache, labels_of_inputs)
    inputs_text = "; ".join(f"inputs of {program}: {', '.join(labels) or 'none'}" for program, labels in inputs.items())
    return (
        f"compile: {name} keeps output {number} in {cache}, and no input is called that{f', {hint}' if hint else ''} "
        f"({inputs_text}). What nobody reads again is an output: leave it out of keeps"
    )


def _cache_example(program: Program, graph: Graph, cache: str) -> Array | None:
    """Return a program's example of a cache's content, None if it does not read the cache."""
    labels = [graph[name].attrs["label"] for name in graph.inputs]
    if cache not in labels:
        return None
    examples = example_sequence(program.inputs) or ()
    example = examples[labels.index(cache)]
    refuse_masked_arrays(example, f"cache {cache}")
    return np.asarray(example.detach().cpu().numpy() if hasattr(example, "detach") else example)


def _slot_division(cache: str, cache_shape: Shape, part_shape: Shape) -> tuple[int, int]:
    """Return the number of parts in a cache, and the dimension that they divide. Raises HostError if the cache does not
    consist of whole parts."""
    differ = [dim for dim, (a, b) in enumerate(zip(cache_shape, part_shape, strict=False)) if a != b]
    if (
        len(cache_shape) != len(part_shape)
        or len(differ) > 1
        or (differ and cache_shape[differ[0]] % part_shape[differ[0]])
    ):
        raise HostError(
            f"compile: cache {cache} is {list(cache_shape)}; the part to keep, {list(part_shape)}, is not part of it"
        )
    if differ:
        return (cache_shape[differ[0]] // part_shape[differ[0]], differ[0])
    return (1, 0)


def _add_model(
    joint_graph: Graph, graph: Graph, program: str, prefix: str, keeps: Mapping[int, str], caches: Mapping[str, _Cache]
) -> Part:
    """Add the nodes of one model to the graph of all, with states in place of its cache inputs, as the program
    `program`, and return the labels of its inputs and outputs. `prefix`: what names and labels begin with."""
    b = Builder(joint_graph, decompose=False)
    names: dict[str, str] = {}
    inputs: list[str] = []
    for node in graph:
        added = _add_node(b, node, names, prefix, caches)
        names[node.name] = added.name
        if added.op == "input":
            joint_graph.inputs.append(added.name)
            inputs.append(added.attrs["label"])
    outputs: list[str] = []
    for number, output in enumerate(graph.outputs):
        cache = keeps.get(number)
        if cache is None:
            outputs.append(prefix + output.label)
            joint_graph.outputs.append(Output(prefix + output.label, names[output.value], output.dtype, program))
        else:
            joint_graph.outputs.append(
                Output(label=cache, value=names[output.value], dtype="float32", program=program, state=cache)
            )
    return Part(program, tuple(inputs), tuple(outputs))


def _input_attributes(node: Node, prefix: str, caches: Mapping[str, _Cache]) -> dict[str, Any]:
    """Return the attributes of an input under its new label. Raises UnsupportedError where a cache decides a shape: the
    host does not see its values."""
    attrs: dict[str, Any] = {**node.attrs, "label": prefix + node.attrs["label"]}
    rules: tuple[ShapeRule, ...] = attrs.pop("rules", ())
    for rule in rules:
        if in_caches := [entry.label for entry in rule.inputs if entry.label in caches]:
            raise UnsupportedError(f"compile: {rule.operator} by {in_caches[0]}, which is a cache: it decides a shape")
    if rules:
        names = {entry.label: prefix + entry.label for rule in rules for entry in rule.inputs}
        attrs["rules"] = tuple(rule.with_labels(names) for rule in rules)
    return attrs


def _add_node(b: Builder, node: Node, names: Mapping[str, str], prefix: str, caches: Mapping[str, _Cache]) -> Node:
    """Add a node under a new name, or the state that stands for a cache's input, and return it. `names`: the new names
    of its operands by the old ones; `prefix`: what new names begin with."""
    if node.op == "input":
        label = node.attrs["label"]
        attrs = _input_attributes(node, prefix, caches)
        if label in caches:
            cache = caches[label]
            return b.state(label, cache.initial, slots=cache.slots, dim=cache.dim)
        node = replace(node, attrs=attrs)
    name = b.unique(prefix + node.name)
    b.graph.nodes[name] = replace(node, name=name, inputs=tuple(names[operand] for operand in node.inputs))
    return b.graph.nodes[name]


class CompiledPrograms(CompiledModel):
    """Programs compiled by `compile_programs`. `parts` describes each by the name that it has there."""

    def __init__(self, graph: Graph, placement: Placement, title: str, parts: Mapping[str, Part]) -> None:
        super().__init__(graph, placement, title)
        self.parts = dict(parts)
        self.slots = max((state.slots for state in placement.tiles.states.values()), default=1)
        """Slots of the caches that are written slot by slot, else 1."""
        self._kept: dict[str, Array] = {}
        """Contents of the caches, by label, that a machine had when it was closed."""

    def __call__(
        self, *inputs: Any, precision: Precision = "ideal", program: str = "", write_index: int = 0, **named: Any
    ) -> tuple[Array, ...]:
        """Run one round of a program (by default the only one), which writes slot `write_index` of its caches, and
        return its outputs. Raises HostError for an unknown program, inputs that it does not take and a slot that does
        not exist, ProgramError as a run does."""
        name, part = self._find_part(program)
        arguments = tuple(inputs_by_label(part.inputs, inputs, named, name).values())
        return self.rounds([arguments], precision=precision, program=program, write_index=write_index)[0]

    def rounds(
        self,
        inputs: Sequence[Sequence[Any]],
        *,
        precision: Precision = "ideal",
        program: str = "",
        write_index: int = 0,
    ) -> list[tuple[Array, ...]]:
        """Run several rounds of a program, each with one set of `inputs`, in one run and return the outputs of each;
        each writes the slot behind that of the round before. Raises HostError for an unknown program, inputs that it
        does not take, and more rounds than queues or slots hold, ProgramError as a run does."""
        name, part = self._find_part(program)
        count = len(inputs)
        require_rounds(name, count, write_index, room=self._queue_entries(part), slots=self.slots)
        io = self._io_of_part(part)
        # All rounds become entries before the first is pushed: one that is refused must not leave others in the queues.
        entries: list[Mapping[str, Array]] = []
        for arguments in inputs:
            by_label = inputs_by_label(part.inputs, arguments, {}, name)
            entries.append(io.queues({label: as_numpy(array) for label, array in by_label.items()}))
        with self.machines.use(precision, keep=self._keep_caches, restore=self._restore_caches) as machine:
            for arrays in entries:
                for queue, array in arrays.items():
                    machine.push(queue, array)
            machine.run(program_name(part.program), self._round_parameters(part, write_index, count))
            return [tuple(output.from_queue(machine.pop(output.queue)) for output in io.outputs) for _ in range(count)]

    def _keep_caches(self, machine: Emulator) -> None:
        """Read the caches of a machine that is about to be closed, and keep them for the next machine: after a failure,
        and for a call in another precision."""
        self._kept = {
            state.label: machine.peek(state.written, state.slots, readout="raw").reshape(state.held.shape)
            for state in self.placement.tiles.states.values()
        }

    def _restore_caches(self, machine: Emulator) -> None:
        """Push to a new machine the caches that `_keep_caches` read from the machine before it; caches that nothing was
        read of stay as they are."""
        for state in self.placement.tiles.states.values():
            if state.label in self._kept:
                machine.push(state.written, state.entries(self._kept[state.label]))

    def reset(self) -> None:
        """Set the caches to their initial content, also on an open machine."""
        with self.machines.current() as machine:
            self._kept.clear()
            if machine is not None:
                for state in self.placement.tiles.states.values():
                    machine.push(state.written, state.entries(state.held))

    def caches(self) -> dict[str, Array]:
        """Return the present content of each cache, in the shape that the module sees."""
        contents: dict[str, Array] = {}
        with self.machines.current() as machine:
            for state in self.placement.tiles.states.values():
                held = self._kept.get(state.label, state.held)
                if machine is not None:
                    held = machine.peek(state.written, state.slots, readout="raw")
                flat = held.reshape(-1)[state.layout.place("zrc").ravel()]
                contents[state.label] = flat.reshape(state.host_shape)
        return contents

    def close(self) -> None:
        """Free the machine that calls opened; the next call opens a new one, with the caches' initial content."""
        with self.machines.current():
            super().close()
            self._kept.clear()

    def perf(self, program: str = "") -> ModelPerf:
        """Return the modelled cycles of one round of a program, which is one token for a decoder; by default of all
        programs together. Raises HostError for an unknown name."""
        if program:
            names = [program_name(self._find_part(program)[1].program)]
        else:
            names = None
        return self._model_time(parameters_of_rounds(1), names)

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
        """Return the tokens that follow a prompt, each the one with the highest score: at most `count`, none after
        `stop`.

        The program's module takes a window of tokens [1, n] and their positions [1, n], reads the slots of earlier
        windows from its caches, and returns scores [1, n, tokens]. The prompt's windows are one run, slot after slot
        (prefill); then each token is one run, on the slot of its own window (decode). Raises HostError if the caches
        are too short.
        """
        name, part = self._find_part(program)
        nodes = {
            self.graph[name_of_input].attrs["label"]: self.graph[name_of_input] for name_of_input in self.graph.inputs
        }

        def run(rounds: Sequence[Sequence[Any]], write_index: int) -> Array:
            return self.rounds(rounds, precision=precision, program=name, write_index=write_index)[-1][0]

        windows = WindowProgram(
            name=name,
            shapes=tuple(nodes[label].shape for label in part.inputs),
            slots=self.slots,
            room=self._queue_entries(part),
            run=run,
        )
        return windows.generate(prompt, count, stop)

    # ------------------------------------------------------------------------------------------------- details
    def _find_part(self, program: str) -> tuple[str, Part]:
        """Return the name and the part of the program `program`, of the only one if that is "". Raises HostError for an
        unknown name."""
        if not program and len(self.parts) == 1:
            return next(iter(self.parts.items()))
        if program not in self.parts:
            raise HostError(f"program {program!r} is not one of: {', '.join(self.parts)}")
        return program, self.parts[program]

    def _io_of_part(self, part: Part) -> ModelIo:
        """Return the inputs and outputs of one program, in the netlist's order."""
        inputs = tuple(queue for queue in self.io.inputs if queue.label in part.inputs)
        outputs = tuple(queue for queue in self.io.outputs if queue.label in part.outputs)
        return ModelIo(part.inputs, inputs, outputs, rules=self.io.of_labels(part.inputs))

    def _queue_entries(self, part: Part) -> int:
        """Return how many inputs the queues of a program hold; 1 for a program without inputs."""
        queues = [model_input.queue for model_input in self._io_of_part(part).inputs]
        return min((self.placement.queues[name].entries for name in queues), default=1)

    def _round_parameters(self, part: Part, write_index: int, count: int) -> dict[str, str]:
        """Return the values of those loop and cache parameters that the program declares, for `count` rounds of which
        the first writes slot `write_index`."""
        values = parameters_of_rounds(count, write_index)
        first = next(iter(self.netlist.programs[program_name(part.program)].instructions), None)
        names = getattr(first, "names", ())
        return {name: value for name, value in values.items() if name in names}

    def _programs_with_parameters(self) -> list[tuple[str, dict[str, str]]]:
        """Return all programs, with parameters for one round."""
        return [(program_name(part.program), self._round_parameters(part, 0, 1)) for part in self.parts.values()]

    @property
    def io_of_image(self) -> ModelIo:
        """The model's inputs and outputs with its programs and caches."""
        programs = tuple(
            ModelProgram(name, program_name(part.program), part.inputs, part.outputs)
            for name, part in self.parts.items()
        )
        return replace(
            self.io, programs=programs, states=tuple(map(_state_of_image, self.placement.tiles.states.values()))
        )


def _state_of_image(state: State) -> ModelState:
    """Return a cache as an image describes it."""
    _, rows, columns = state.layout.extent
    strides = {"z": rows * columns, "r": columns, "c": 1, "-": 0}
    pieces = tuple((piece.size, piece.stride * strides[piece.axis]) for piece in state.layout.pieces)
    return ModelState(label=state.label, queue=state.written, slots=state.slots, shape=state.host_shape, pieces=pieces)


MODEL = "model"
"""Name of a program that was passed without one."""
ENTRIES = 4
"""Rounds that queues have room for. More let the host run further ahead, and take DRAM in proportion."""


def _require_programs(programs: Any) -> None:
    """Raise HostError unless there is a Program, or a mapping of names to at least one."""
    if isinstance(programs, Program):
        return
    if not isinstance(programs, Mapping):
        kind = type(programs).__name__
        raise HostError(
            f"compile_programs: {kind} is no Program: give Program(module, inputs, keeps), or several by name"
        )
    if not programs:
        raise HostError("compile_programs: no program is given")
    for name, program in cast("Mapping[Any, Any]", programs).items():
        if not isinstance(program, Program):
            kind = type(program).__name__
            raise HostError(f"compile_programs: {name!r} is a {kind}, not a Program(module, inputs, keeps)")


@within_memory()
def compile_programs(
    programs: Program | Mapping[str, Program], *, options: CompileOptions | None = None, **words: Unpack[OptionWords]
) -> CompiledPrograms:
    """Compile a model that keeps caches from run to run, or several models that share caches, as programs of one
    netlist (docs/compile/generate.md): text generation, recurrent states, running means.

    `programs`: one Program, or several by name. `options`, or its fields as keywords, which replace those of `options`:
    see CompileOptions.

    Raises HostError for an output that does not match its cache; HostError, UnsupportedError and TypeError as `compile`
    does.
    """
    compilation = Compilation.of(without_sizes(with_words(options, words, "compile_programs"), "compile_programs"))
    _require_programs(programs)
    with compilation.loading():
        graph, parts = programs_graph({MODEL: programs} if isinstance(programs, Program) else programs)
    return CompiledPrograms(*compilation.place(graph, entries=ENTRIES), parts)
