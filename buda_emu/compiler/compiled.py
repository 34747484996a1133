"""A compiled model: netlist, parameters, emulated machines that run it, and how its values compare with the model that
it was made from.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from html import escape
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.compilation import below, made_up
from buda_emu.compiler.emit.netlist import netlist_of, netlist_text
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.graph.graph import FORWARD, Array, Graph, Origin, host_shape
from buda_emu.compiler.lower.layout import TILE, Layout, Piece
from buda_emu.compiler.lower.tiles import Shape, TileGraph
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.evaluate import judged
from buda_emu.compiler.search.placer import first_placement
from buda_emu.compiler.search.report import report
from buda_emu.emulator.image.host_plan import HostPlan
from buda_emu.emulator.image.model_io import ModelInput, ModelIo, ModelOutput
from buda_emu.emulator.image.pack import Contents, Form, write_image
from buda_emu.emulator.image.sets import joined, stream
from buda_emu.emulator.op_errors.numerics_result import OpNumerics, own_error
from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.netlist.load import NetlistResult, check_text
from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.variants import LOOP, of_microbatch
from buda_emu.performance.routing.checking import NOT_JUDGED, RECOMMENDED, with_routes
from buda_emu.performance.timing.model import model_netlist
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import correlation, number, table
from buda_emu.spec.precision import INFINITE, Precision
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, InternalError
from buda_emu.support.files import write_file
from buda_emu.support.unmasked import refuse_masked_arrays
from buda_emu.support.version import RESULT_VERSION, __version__

if TYPE_CHECKING:
    from buda_emu.performance.timing.result import PerfRun


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of the model, as it is and as it should be. `pcc`: Pearson's correlation, None where one side is
    constant and the other is not; `max_error`: the largest absolute difference; `error`: the root of the mean square
    of the difference, relative to that of the expected values. `not_finite` elements are left out."""

    name: str
    shape: tuple[int, ...]
    pcc: float | None
    max_error: float
    error: float | None
    not_finite: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """`outputs` in the model's order; `layers` in the order in which they run: those whose value one op gives as the
    model has it, without those that only move values."""

    model: str
    tool: str
    precision: str
    outputs: tuple[Difference, ...]
    layers: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    def __str__(self) -> str:
        """Two tables."""
        parts = [f"{self.model}, precision {self.precision}, against {self.tool}"]
        for heading, rows in (("output", self.outputs), ("layer", self.layers)):
            if rows:
                headers = (heading, "shape", "PCC", "error", "max error")
                parts.append(table(headers, (_row(item) for item in rows), right=(2, 3, 4)))
        return "\n\n".join(parts)


def _row(item: Difference) -> tuple[str, ...]:
    error = "-" if item.error is None else f"{item.error:.1e}"
    return item.name, "x".join(map(str, item.shape)), correlation(item.pcc), error, number(item.max_error, 3)


Run = Callable[[Listener], tuple[Array, ...]]


class Compared(Protocol):
    """What is compared: a compiled model."""

    graph: Graph
    placement: Placement
    origin: Any


def compare(
    model: Compared, labels: Sequence[str], inputs: Sequence[Array], precision: Precision, run: Run, *, layers: bool
) -> Comparison:
    """Run both; `labels` of the outputs; `run` gives them, a listener being told what ops give. Raises HostError
    where the source cannot be run, and what a run raises."""
    origin = model.origin
    if origin is None:
        raise HostError("compare: the model was not imported: there is nothing to compare it with")
    places = model.placement.tiles.places if layers else {}
    first: dict[str, str] = {}  # reshapes and transpositions give the same values again
    for name, (op, _) in places.items():
        first.setdefault(op, name)
    wanted = {first[op]: places[first[op]] for op in first if op in model.placement.ops}
    expected, inner = origin.values(inputs, wanted)
    seen = _Seen({name: wanted[name] for name in inner}, inner)
    found = run(seen)
    outputs = [difference(label, want, got) for label, want, got in zip(labels, expected, found, strict=True)]
    return Comparison(
        model=model.graph.name, tool=origin.tool, precision=precision, outputs=tuple(outputs), layers=tuple(seen.found)
    )


class _Seen(Listener):
    """Compares values of the model when the op that gives them has run."""

    def __init__(self, places: Mapping[str, tuple[str, Layout]], expected: Mapping[str, Array]) -> None:
        self._by_op = {op: (name, layout) for name, (op, layout) in places.items()}
        self._expected = expected
        self.found: list[Difference] = []

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:  # noqa: ARG002 - always 1 here
        if op.name in self._by_op:
            name, layout = self._by_op[op.name]
            want = self._expected[name]
            if want.size == prod(layout.shape):
                self.found.append(difference(name, want, value_of(tiles[0], layout).reshape(want.shape)))


def value_of(tiles: NDArray[np.float32], layout: Layout) -> NDArray[np.float32]:
    """The elements of a value, flat in the model's order, from the tiles [tiles, 1024] of the op that gives it."""
    t, rows, columns = layout.extent
    whole = tiles.reshape(t, rows // TILE, columns // TILE, TILE, TILE).transpose(0, 1, 3, 2, 4).reshape(-1)
    return whole[layout.place("zrc").ravel()]


def difference(name: str, expected: Array, observed: Array) -> Difference:
    """Figures over all elements that are finite on both sides."""
    a = np.asarray(expected, np.float64).ravel()
    b = np.asarray(observed, np.float64).ravel()
    finite = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < INFINITE) & (np.abs(b) < INFINITE)
    wrong = int(np.count_nonzero(~finite & ~(_infinite(a) & _infinite(b) & (np.sign(a) == np.sign(b)))))
    a = a[finite]
    b = b[finite]
    moments = Moments()
    moments.add(a, b)
    away = b - a
    size = float(np.sqrt(np.mean(a * a))) if a.size else 0.0
    rms = float(np.sqrt(np.mean(away * away))) if a.size else 0.0
    error = rms / size if size else 0.0 if rms == 0 else None
    largest = float(np.abs(away).max()) if a.size else 0.0
    return Difference(
        name=name, shape=tuple(np.shape(expected)), pcc=moments.pcc(), max_error=largest, error=error, not_finite=wrong
    )


def _infinite(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.abs(values) >= INFINITE


SHOWN: Final = 5
"""Repairs that the text has; `layers` have all."""


@dataclass(frozen=True, slots=True)
class LayerNumerics:
    """One layer. `error`, `pcc`: of its result in the whole run, with what its operands brought along; `worst`: that of
    its netlist `ops` with the largest error of its own."""

    layer: str
    error: float | None
    pcc: float | None
    worst: OpNumerics
    ops: tuple[OpNumerics, ...]

    @property
    def own(self) -> float:
        """The largest error that one of its ops makes by itself."""
        return own_error(self.worst)


@dataclass(frozen=True, slots=True)
class ModelNumerics:
    """All layers, in the order in which they run."""

    model: str
    arch: str
    layers: tuple[LayerNumerics, ...]

    def worst(self, count: int) -> tuple[LayerNumerics, ...]:
        """The layers with the largest errors of their own."""
        return tuple(sorted(self.layers, key=lambda layer: -layer.own)[:count])

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    def __str__(self) -> str:
        """A table, and what would repair the worst layers."""
        headers = ("layer", "run: error", "PCC", "op: error", "op", "main cause")
        lines = [table(headers, (_layer_row(layer) for layer in self.layers), right=(1, 2, 3))]
        lines += ["", *(line for layer in self.worst(SHOWN) for line in _repair(layer.worst))]
        return f"{self.model} ({self.arch})\n\n" + "\n".join(lines).rstrip()


def _layer_row(layer: LayerNumerics) -> tuple[str, ...]:
    error = "-" if layer.error is None else f"{layer.error:.1e}"
    cause = layer.worst.cause or "-"
    return layer.layer, error, correlation(layer.pcc), f"{layer.own:.1e}", layer.worst.name, str(cause)


def _repair(op: OpNumerics) -> Iterator[str]:
    if op.repair is not None:
        changes = " and ".join(f"{change.field} {change.before} -> {change.after}" for change in op.repair.changes)
        yield f"op {op.name}: {changes}: {own_error(op):.1e} -> {op.repair.error:.1e}"


def layer_of(graph: Graph, placement: Placement, op: str) -> str:
    """The layer of the model that an op of the netlist belongs to; a fused op to that of its last part."""
    source = placement.ops[op].op.source
    return graph[source].source or source


def elements_of(tiles: TileGraph) -> Callable[[str], NDArray[np.bool_] | None]:
    """Of an op by name, which numbers of its tiles [tiles, 1024] are elements of the model; None where all are, and
    where nobody knows."""
    layouts = _layouts(tiles)

    def of(name: str) -> NDArray[np.bool_] | None:
        layout = layouts.get(name)
        if layout is None or (layout.rows_full and layout.columns_full):
            return None
        found = layout.elements
        return found if found.size == prod(tiles.ops[name].shape) * TILE**2 else None

    return of


def _layouts(tiles: TileGraph) -> dict[str, Layout]:
    """Of tensors, as far as they are known: those that hold a value of the model, what goes in and out, and what is
    computed of these tile by tile."""
    found = {name: _leading(queue.view, queue.shape) for name, queue in tiles.inputs.items() if not queue.indices}
    found |= {queue.op: _leading(queue.view, tiles.shape_of(queue.op)) for queue in tiles.outputs.values()}
    found |= dict(tiles.places.values())
    for op in tiles.ops.values():
        sources = (use.source for use in op.uses if not use.tms) if op.is_tile_by_tile else ()
        known = next((name for name in sources if name in found and tiles.shape_of(name) == op.shape), "")
        if known:
            found.setdefault(op.name, found[known])
    return found


def _leading(view: tuple[int, int, int], shape: Shape) -> Layout:
    """The first slices, rows and columns of a tensor of tiles."""
    t, rows, columns = shape
    dims = tuple((Piece(size, axis, 1),) for size, axis in zip(view, "zrc", strict=True))
    return Layout(dims, (t, rows * TILE, columns * TILE))


def by_layer(graph: Graph, placement: Placement, ops: tuple[OpNumerics, ...]) -> ModelNumerics:
    """Figures of netlist ops gathered by the layers that they are made of."""
    gathered: dict[str, list[OpNumerics]] = {}
    for op in ops:
        gathered.setdefault(layer_of(graph, placement, op.name), []).append(op)
    layers = [
        LayerNumerics(
            layer=name,
            error=found[-1].total.rms,
            pcc=found[-1].total.pcc,
            worst=max(found, key=own_error),
            ops=tuple(found),
        )
        for name, found in gathered.items()
    ]
    return ModelNumerics(graph.name, placement.target.title, tuple(layers))


Tensors = Callable[[], Iterable[tuple[str, Array]]]


class Machines:
    """Made when they are needed. `tensors`: the model's method that gives constants and parameters by queue."""

    def __init__(self, netlist: Netlist, placement: Placement, io: ModelIo, tensors: Tensors) -> None:
        self._netlist = netlist
        self._placement = placement
        self._io = io
        self._tensors = weakref.WeakMethod(tensors)  # the model has its machines, and goes with them
        self.open: dict[tuple[str, int], Emulator] = {}  # by precision and copies of the model

    @cached_property
    def single(self) -> Netlist:
        """For one input at a time (`of_microbatch`), and of copies on several chips one, with the names of the
        placement: the same ops on the same cores."""
        if self._placement.copies == 1:
            return of_microbatch(self._netlist, 1)
        return of_microbatch(netlist_of(replace(self._placement, copies=1), self._netlist.path), 1)

    def run(self, arrays: Mapping[str, Array], precision: Precision) -> tuple[Array, ...]:
        """The outputs; several sets of inputs stream through the machine."""
        queues = [queue for queue in self._placement.queues.values() if queue.role in ("input", "output")]
        at_once = min(queue.entries for queue in queues) // self._placement.microbatch * self._placement.copies
        rounds = list(stream(self._io, arrays, at_once))
        copies = self._placement.copies if len(rounds[0]) > 1 else 1
        machine = self.machine(precision, copies)
        found = [self._round(machine, sets, copies) for sets in rounds]
        return tuple(joined(parts) for parts in zip(*found, strict=True))

    def _round(self, machine: Emulator, sets: Sequence[Mapping[str, Array]], copies: int) -> tuple[Array, ...]:
        """Copies of the model take the sets in turn; where the last ones are left without, they take the last set once
        more, and its outputs are dropped."""
        dealt = [*sets, *[sets[-1]] * (-len(sets) % copies)]
        for position, arrays in enumerate(dealt):
            for name, array in self._io.queues(arrays).items():
                machine.push(self._queues(name, copies)[position % copies], array)
        machine.run(program_name(FORWARD), {LOOP: len(dealt) // copies})

        def popped(output: ModelOutput) -> Iterator[Array]:
            names = self._queues(output.queue, copies)
            return (output.from_queue(machine.pop(names[number % copies])) for number in range(len(dealt)))

        outputs = [list(popped(output))[: len(sets)] for output in self._io.outputs]
        return tuple(joined(parts) for parts in outputs)

    def _queues(self, name: str, copies: int) -> tuple[str, ...]:
        """A queue in the machine of so many copies."""
        return self._placement.copied(name) if copies > 1 else (name,)

    def machine(self, precision: Precision, copies: int = 1) -> Emulator:
        """A machine with all constants, kept for the next call; one at a time."""
        key = precision, copies
        if key not in self.open:
            self.close()
            machine = Emulator(of_microbatch(self._netlist, 1) if copies > 1 else self.single, precision)
            weakref.finalize(self, machine.close)
            try:
                self.fill(machine, copies=copies)
            except BaseException:
                machine.close()
                raise
            self.open[key] = machine
        return self.open[key]

    def fill(self, machine: Emulator, inputs: Sequence[Array] = (), copies: int = 1) -> None:
        """Constants and parameters, and one set of inputs."""
        tensors = self._tensors()
        for name, array in tensors() if tensors is not None else ():
            for queue in self._queues(name, copies):
                machine.push(queue, array)
        if inputs:
            for name, array in self._io.queues(dict(zip(self._io.labels, inputs, strict=True))).items():
                machine.push(name, array)

    def watched(self, inputs: Sequence[Array], precision: Precision, listener: Listener) -> tuple[Array, ...]:
        """One set of inputs on a machine of its own, that a listener watches."""
        self.close()
        with Emulator(self.single, precision, listeners=(listener,), inputs_at_once=1) as machine:
            self.fill(machine, inputs)
            machine.run(program_name(FORWARD), {LOOP: 1})
            return tuple(output.from_queue(machine.pop(output.queue)) for output in self._io.outputs)

    def close(self) -> None:
        """Free them; the next call makes another."""
        for machine in self.open.values():
            machine.close()
        self.open.clear()


@dataclass(frozen=True, slots=True)
class ModelPerf:
    """The modelled time of a round of `inputs` inputs, of all copies of the model. `run` has all the figures of
    `buda-emu perf`."""

    run: "PerfRun"
    inputs: int = 1

    @property
    def cycles(self) -> float:
        """Of the AI clock for a round of inputs: all epochs, each with its set-up."""
        return sum(self.run.programs().values())

    @property
    def inputs_per_second(self) -> float:
        """Of the chips, or of the host link where that is slower."""
        host = sum(self.run.host_seconds().values())
        return self.inputs / max(self.run.seconds(self.cycles), host)

    def __repr__(self) -> str:
        pace = f"{self.inputs_per_second:.5g} inputs/s, {self.cycles:.0f} cycles for {self.inputs}"
        return f"ModelPerf({self.run.netlist!r}, {self.run.arch}, {pace})"


class CompiledModel:
    """What `compile` returns. Call it with the model's inputs, numpy or torch, in order."""

    def __init__(
        self,
        graph: Graph,
        placement: Placement,
        title: str,
        origin: Origin | None = None,
        examples: Sequence[Any] | None = None,
    ) -> None:
        self.graph = graph
        self.origin = origin
        self._examples = examples
        self.placement = placement
        self.text: str = netlist_text(placement, title)

    def __repr__(self) -> str:
        ops = plural(len(self.placement.ops), "op")
        epochs = plural(self.placement.epochs, "epoch")
        return f"CompiledModel({self.graph.name!r}, {self.placement.target.title}, {ops}, {epochs})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{grid_svg(self.netlist)}"

    # ----------------------------------------------------------------------------------------------- the netlist
    @cached_property
    def _checked(self) -> NetlistResult:
        return check_text(self.text, f"{self.graph.name}.yaml", strict=True)

    def check(self, strict: bool = True) -> tuple[Diagnostic, ...]:
        """Findings as of `buda-emu check`, with `strict` those of its pipes and streams, too; none when all is well.
        Several chips are those of the cluster's file, else a row with four links between neighbours. That no pipes are
        made for an architecture (V359), and what net2pipe takes but recommends less of (V357, V358, V360), only the
        command says."""
        if not strict:
            return check_text(self.text, f"{self.graph.name}.yaml").diagnostics
        found = with_routes(self._checked, self.text, self.placement.links).diagnostics
        return tuple(finding for finding in found if finding.rule not in (NOT_JUDGED, *RECOMMENDED))

    @property
    def netlist(self) -> Netlist:
        """Raises InternalError when the checker refuses it."""
        if self._checked.netlist is None:
            raise InternalError(f"the compiler wrote a netlist that is refused:\n{render(self._checked.diagnostics)}")
        return self._checked.netlist

    @cached_property
    def machines(self) -> Machines:
        """That run it."""
        return Machines(self.netlist, self.placement, self.io, self.tensors)

    @cached_property
    def io(self) -> ModelIo:
        """What the host holds of the model."""
        graph = self.graph
        tiles = self.placement.tiles
        nodes = {graph[name].attrs["label"]: graph[name] for name in graph.inputs}
        inputs = tuple(
            ModelInput(
                queue=queue.name,
                label=queue.label,
                shape=host_shape(nodes[queue.label]),
                dtype=nodes[queue.label].dtype,
                view=queue.view,
                extent=(queue.shape[0], queue.shape[1] * 32, queue.shape[2] * 32),
                indices=queue.indices,
                gather=queue.gather,
                below=below(graph, nodes[queue.label]),
                windows=nodes[queue.label].attrs.get("windows"),
                rows=queue.rows,
                from_end=queue.from_end,
                zero=queue.zero,
            )
            for queue in tiles.inputs.values()
        )
        outputs = tuple(
            ModelOutput(
                queue=queue.name,
                label=queue.label,
                shape=queue.host_shape,
                dtype=queue.dtype,
                view=queue.view,
                slices=queue.slices,
            )
            for queue in tiles.outputs.values()
        )
        return ModelIo(tuple(nodes), inputs, outputs)

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Constants and parameters by queue, [1, t, rows, columns]."""
        for queue in self.placement.queues.values():
            if queue.role == "constant":
                yield queue.name, self.placement.tiles.constants[queue.tensor].values[None]
        for state in self.placement.tiles.states.values():
            yield state.written, state.entries(state.held)

    # --------------------------------------------------------------------------------------------------- running
    def __call__(self, *inputs: Any, precision: Precision = "ideal") -> tuple[Array, ...]:
        """The outputs in the model's shapes and element types. With N times the model's first dimension in the inputs,
        N sets of them stream through the machine, and the outputs are joined along their first dimension; an input of
        the model's own shape goes with each set. Raises HostError for inputs that the model does not take, ProgramError
        as a run does."""
        return self.run(dict(zip(self.io.labels, self._given(inputs), strict=True)), precision)

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """The same with inputs by name."""
        return self.machines.run(arrays, precision)

    def _given(self, inputs: Sequence[Any]) -> list[Array]:
        labels = self.io.labels
        if len(inputs) != len(labels):
            raise HostError(f"{plural(len(inputs), 'input')}, the model takes {len(labels)}: {', '.join(labels)}")
        return [as_numpy(item) for item in inputs]

    def example_inputs(self, seed: int = 0) -> tuple[Array, ...]:
        """Those that `compile` was given; random from the seed if it was given none."""
        return tuple(self._given(self._examples)) if self._examples is not None else made_up(self.graph, seed)

    def close(self) -> None:
        """Free the machines that calls made; the next call makes another."""
        self.machines.close()

    # ---------------------------------------------------------------------------------------- what is said of it
    def perf(self) -> ModelPerf:
        """Modelled cycles of a round of inputs (the microbatch)."""
        return self._modelled({LOOP: "1"})

    def _modelled(self, params: Mapping[str, str], names: Sequence[str] | None = None) -> ModelPerf:
        netlist = self.netlist
        programs = [netlist.programs[name] for name in names or dict.fromkeys(netlist.program_order)]
        run = model_netlist(netlist, programs, params, chip=self.placement.target.chip, version=__version__)
        return ModelPerf(run, self.placement.inputs)

    def compare(
        self, inputs: Sequence[Any] | None = None, *, precision: Precision = "ideal", layers: bool = True
    ) -> "Comparison":
        """Hold outputs, and with `layers` what layers give, against the model as torch or onnxruntime runs it.
        `inputs`: one set, None takes the example inputs. Print the result for a table. Raises HostError where the
        framework is not installed or refuses the inputs, and what a call raises."""
        given = self.example_inputs() if inputs is None else self._given(inputs)
        labels = [output.label for output in self.io.outputs]
        watched = partial(self.machines.watched, given, precision)
        return compare(self, labels, given, precision, watched, layers=layers)

    def numerics(
        self, inputs: Sequence[Any] | None = None, *, only: str | None = None, threads: int = 1
    ) -> "ModelNumerics":
        """Why precision `device` differs from `ideal`, by the model's layers: errors, causes and repairs as
        `buda-emu numerics` has them. `inputs`: one set, None takes the example inputs; `only`: one op of the netlist.
        Print the result for a table. Raises HostError for an op that is not there, and what a call raises."""
        from buda_emu.emulator.op_errors.numerics import Counted, op_numerics

        given = self.example_inputs() if inputs is None else self._given(inputs)
        self.close()
        programs = [(program_name(FORWARD), {LOOP: "1"})]
        fill = partial(self.machines.fill, inputs=given)
        counted = Counted(only, elements_of(self.placement.tiles))
        ops = op_numerics(self.machines.single, fill, programs, counted=counted, threads=threads)
        return by_layer(self.graph, self.placement, ops)

    def report(self) -> str:
        """Where the modelled time goes: beside the first legal choice and the limits of cores, DRAM and the host link,
        and epoch by epoch what sets the pace and why no move helps any more (docs/compile/placing.md)."""
        return report(judged(self.placement), first_placement(self.placement))

    def save(
        self,
        folder: str | Path,
        name: str = "model",
        *,
        tilized: bool | None = None,
        host: tuple[HostPlan, Mapping[str, bytes]] | None = None,
    ) -> tuple[Path, Path]:
        """Write `<name>.yaml` and `<name>.tti` to a folder, each whole or not at all; returns both. `tilized`: the
        image holds parameters as tiles in the formats of their queues, not as the host has them; None: where some lie
        in files, and so are too large to be written twice as large. `host`: what the host does between programs, with
        its files. Raises OSError, UnsupportedError."""
        folder = Path(folder)
        text = folder / f"{name}.yaml"
        image = folder / f"{name}.tti"
        result = check_text(self.text, str(text), strict=True)
        netlist = result.netlist or self.netlist
        chips = self.placement.instances
        io = self.io.on_chip(chips[0]) if chips else self.io
        files = dict[str, bytes]()
        if host is not None:
            plan, files = host
            io = replace(io, labels=tuple(item.label for item in plan.given), host=plan)
        tensors = dict(self.tensors())
        if tilized is None:
            tilized = any(isinstance(node.value, Referenced) for node in self.graph if node.op == "constant")
        form: Form = "BACKEND_TILIZED" if tilized else "BACKEND"
        contents = Contents(
            netlist=netlist,
            netlist_text=self.text.encode(),
            tensors=tensors,
            name=name,
            version=__version__,
            form=form,
            model=io.as_json(),
            host=files,
        )
        folder.mkdir(parents=True, exist_ok=True)
        write_file(image, lambda stream: write_image(stream, contents))
        write_file(text, lambda stream: stream.write(self.text.encode()))
        return text, image


def as_numpy(item: Any) -> Array:
    """Torch tensors have no need of torch to be turned. Raises HostError for a masked array."""
    if hasattr(item, "detach"):
        item = item.detach().cpu()
        item = (item.float() if str(item.dtype) == "torch.bfloat16" else item).numpy()  # numpy has no bfloat16
    refuse_masked_arrays(item, "an array of the model")
    return np.asarray(item)
