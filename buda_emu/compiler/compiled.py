"""A compiled model: netlist, parameters, emulated machines that run it, and how its values compare with the model that
it was made from.
"""

import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from html import escape
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.compilation import below, made_up
from buda_emu.compiler.emit.netlist import netlist_of, netlist_text
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.graph.examples import example_inputs
from buda_emu.compiler.graph.graph import FORWARD, Array, Graph, Origin, host_shape, rules_of
from buda_emu.compiler.lower.layout import TILE, Layout, Piece
from buda_emu.compiler.lower.tiles import Shape, TileGraph
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.placer import first_placement
from buda_emu.compiler.search.report import report
from buda_emu.emulator.image.element_places import ElementPlaces, Repeat
from buda_emu.emulator.image.host_plan import HostPlan
from buda_emu.emulator.image.model_io import ModelInput, ModelIo, ModelOutput, inputs_by_label
from buda_emu.emulator.image.pack import Contents, Form, write_image
from buda_emu.emulator.image.sets import join_sets, split_into_rounds
from buda_emu.emulator.op_errors.numerics_result import Numerics, OpNumerics, inherent_cause, own_error
from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.emulator.options import Machine, share_of_machine
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.host.host_io import require_names
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.emulator.runtime.open_machine import OnMachine, OpenMachine
from buda_emu.netlist.load import NetlistResult, check_text
from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.program.parameters import values_for
from buda_emu.netlist.variants import LOOP, resize_microbatch
from buda_emu.performance.routing.checking import RECOMMENDED, UNSUPPORTED_RULE, with_routes
from buda_emu.performance.timing.model import model_netlist
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import correlation, number, table
from buda_emu.spec.devices import Device
from buda_emu.spec.precision import INFINITE, Precision
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, InternalError
from buda_emu.support.files import write_file
from buda_emu.support.html_table import html_table
from buda_emu.support.output_places import make_folder
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.unmasked import refuse_masked_arrays
from buda_emu.support.version import RESULT_VERSION, __version__

if TYPE_CHECKING:
    from buda_emu.performance.timing.result import PerfRun


SHOWN: Final = 5
"""Number of layers whose repair is printed with the table, and of outputs in a short form; the result has all."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a value that the chip computed and the expected one. `pcc`: Pearson's correlation, None if
    one side is constant and the other is not; `max_error`: the largest absolute difference; `error`: the root mean
    square of the difference, relative to that of the expected values, None if all of these are 0 and some difference is
    not. Elements counted in `not_finite` are left out of the figures."""

    name: str
    shape: tuple[int, ...]
    pcc: float | None
    max_error: float
    error: float | None
    not_finite: int = 0


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Differences between a compiled model and its source. `outputs` are in the model's order, `layers` in the order
    in which they run; a layer is listed if one op gives its value unchanged, and ops that only move values are not
    listed."""

    model: str
    tool: str
    precision: str
    outputs: tuple[Difference, ...]
    layers: tuple[Difference, ...]

    @property
    def output_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each output (`pandas.DataFrame(found.output_rows)`)."""
        return [asdict(output) for output in self.outputs]

    @property
    def layer_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each layer."""
        return [asdict(layer) for layer in self.layers]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-compatible data with its schema version."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    as_json = to_json  # its name in 0.1.0

    @property
    def _title(self) -> str:
        """The model, the precision of its run, and the framework that it is compared with."""
        return f"{self.model}, precision {self.precision}, against {self.tool}"

    def _tables(self) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Yield headers and rows of the tables of outputs and of layers, without empty tables."""
        for heading, differences in (("output", self.outputs), ("layer", self.layers)):
            if differences:
                yield (heading, "shape", "PCC", "error", "max error"), [_comparison_row(entry) for entry in differences]

    def __str__(self) -> str:
        """Return a table of the outputs and a table of the layers."""
        tables = [table(headers, rows, right=(2, 3, 4)) for headers, rows in self._tables()]
        return "\n\n".join([self._title, *tables])

    def __repr__(self) -> str:
        outputs = ", ".join(f"{output.name} PCC {correlation(output.pcc)}" for output in self.outputs[:SHOWN])
        if len(self.outputs) > SHOWN:
            outputs += ", ..."
        return f"<ModelComparison of {self._title}: {outputs}; {plural(len(self.layers), 'layer')}>"

    def _repr_html_(self) -> str:
        """Return the tables of outputs and layers for a notebook."""
        titles = (self._title, "")
        tables = zip(titles, self._tables(), strict=False)
        return "".join(html_table(title, headers, rows) for title, (headers, rows) in tables)


def _comparison_row(difference: Difference) -> tuple[str, ...]:
    """Return a difference as a row of a comparison's tables: name, shape, correlation, relative error ("-" if it is
    None) and largest error."""
    if difference.error is None:
        error = "-"
    else:
        error = f"{difference.error:.1e}"
    return (
        difference.name,
        "x".join(map(str, difference.shape)),
        correlation(difference.pcc),
        error,
        number(difference.max_error, 3),
    )


Run = Callable[[Listener], tuple[Array, ...]]


class Compared(Protocol):
    """The parts of a compiled model that a comparison reads."""

    graph: Graph
    placement: Placement
    origin: Any


def compare(
    model: Compared, labels: Sequence[str], inputs: Sequence[Array], precision: Precision, run: Run, *, layers: bool
) -> ModelComparison:
    """Run a compiled model and the model that it was imported from on the same `inputs` (one set, in order), and return
    the differences between their outputs and, with `layers`, between the values of their layers. `labels` name the
    outputs. `run` runs the compiled model in `precision`, reports the result of each op to the listener that it is
    called with, and returns the outputs. Raises HostError if the model was not imported or its framework cannot run it,
    and what `run` raises."""
    origin = model.origin
    if origin is None:
        raise HostError("compare: the model was not imported: there is nothing to compare it with")
    if layers:
        places = model.placement.tiles.places
    else:
        places = {}
    first: dict[str, str] = {}  # reshapes and transpositions give the same values again
    for name, (op, _) in places.items():
        first.setdefault(op, name)
    layer_places = {first[op]: places[first[op]] for op in first if op in model.placement.ops}
    expected, inner = origin.values(inputs, layer_places)
    seen = _LayerComparer({name: layer_places[name] for name in inner}, inner)
    outputs_on_chip = run(seen)
    outputs = [difference(label, want, got) for label, want, got in zip(labels, expected, outputs_on_chip, strict=True)]
    return ModelComparison(
        model=model.graph.name, tool=origin.tool, precision=precision, outputs=tuple(outputs), layers=tuple(seen.found)
    )


class _LayerComparer(Listener):
    """A listener that compares each value of the model as soon as the op that gives it has run, and gathers the
    differences in `found`. `places`: op and layout of each value by its name; `expected`: the values of the imported
    model by name."""

    def __init__(self, places: Mapping[str, tuple[str, Layout]], expected: Mapping[str, Array]) -> None:
        self._by_op = {op: (name, layout) for name, (op, layout) in places.items()}
        self._expected = expected
        self.found: list[Difference] = []

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:  # noqa: ARG002 - always 1 here
        """Compare the result of an op with the expected value, if the op gives a value of the model of that size."""
        if op.name in self._by_op:
            name, layout = self._by_op[op.name]
            want = self._expected[name]
            if want.size == prod(layout.shape):
                self.found.append(difference(name, want, value_of(tiles[0], layout).reshape(want.shape)))


def value_of(tiles: NDArray[np.float32], layout: Layout) -> NDArray[np.float32]:
    """Return the elements of a value, flat in the model's order, from the tiles [tiles, 1024] of the op that gives
    it."""
    t, rows, columns = layout.extent
    matrix = tiles.reshape(t, rows // TILE, columns // TILE, TILE, TILE).transpose(0, 1, 3, 2, 4).reshape(-1)
    return matrix[layout.place("zrc").ravel()]


def difference(name: str, expected: Array, observed: Array) -> Difference:
    """Return the figures of the difference between two arrays of one size over the elements that are finite in both,
    and count the others. Infinities of the same sign in the same place count as equal."""
    a = np.asarray(expected, np.float64).ravel()
    b = np.asarray(observed, np.float64).ravel()
    finite = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < INFINITE) & (np.abs(b) < INFINITE)
    wrong = int(np.count_nonzero(~finite & ~(_are_infinite(a) & _are_infinite(b) & (np.sign(a) == np.sign(b)))))
    a = a[finite]
    b = b[finite]
    moments = Moments()
    moments.add(a, b)
    error_of_elements = b - a
    if a.size:
        size = float(np.sqrt(np.mean(a * a)))
    else:
        size = 0.0
    if a.size:
        rms = float(np.sqrt(np.mean(error_of_elements * error_of_elements)))
    else:
        rms = 0.0
    if size:
        error = rms / size
    elif rms == 0:
        error = 0.0
    else:
        error = None
    if a.size:
        largest = float(np.abs(error_of_elements).max())
    else:
        largest = 0.0
    return Difference(
        name=name, shape=tuple(np.shape(expected)), pcc=moments.pcc(), max_error=largest, error=error, not_finite=wrong
    )


def _are_infinite(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the values of magnitude INFINITE or more, which count as infinite; NaN does not."""
    return np.abs(values) >= INFINITE


@dataclass(frozen=True, slots=True)
class LayerNumerics:
    """Numeric errors of one layer. `error`, `pcc`: those of its result in the whole run, errors of its operands
    included; `worst`: the one of its netlist `ops` that adds the largest error by itself."""

    layer: str
    error: float | None
    pcc: float | None
    worst: OpNumerics
    ops: tuple[OpNumerics, ...]

    @property
    def own(self) -> float:
        """The largest error that one of its ops adds by itself."""
        return own_error(self.worst)

    def __repr__(self) -> str:
        if self.error is None:
            error = "-"
        else:
            error = f"{self.error:.1e}"
        return f"<LayerNumerics {self.layer}: error {error}, {plural(len(self.ops), 'op')}, worst {self.worst!r}>"


@dataclass(frozen=True, slots=True)
class ModelNumerics:
    """Numeric errors of all layers, in the order in which they run."""

    model: str
    arch: str
    layers: tuple[LayerNumerics, ...]

    def worst(self, count: int) -> tuple[LayerNumerics, ...]:
        """Return the `count` layers with the largest errors of their own."""
        return tuple(sorted(self.layers, key=lambda layer: -layer.own)[:count])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each layer (`pandas.DataFrame(found.rows)`): its name, the error and correlation of its
        result in the whole run, and the op that adds the largest error by itself, with this error and its cause."""
        return [
            {
                "layer": layer.layer,
                "run_error": layer.error,
                "run_pcc": layer.pcc,
                "own_error": layer.own,
                "op": layer.worst.name,
                "cause": layer.worst.cause,
            }
            for layer in self.layers
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON-compatible data with their schema version."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    as_json = to_json  # its name in 0.1.0

    def _repairs(self) -> list[str]:
        """Return the sentences about repairs of the worst layers."""
        sentences: list[str] = []
        for layer in self.worst(SHOWN):
            sentences += _repair_advice(layer.worst)
        return sentences

    def __str__(self) -> str:
        """Return a table of the layers, and repairs for the worst ones."""
        rows = [_layer_row(layer) for layer in self.layers]
        lines = [table(_LAYER_HEADERS, rows, right=(1, 2, 3)), "", *self._repairs()]
        return f"{self.model} ({self.arch})\n\n" + "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        worst = "".join(f", worst alone {layer.layer} ({layer.own:.1e})" for layer in self.worst(1))
        return f"<ModelNumerics of {self.model} on {self.arch}: {plural(len(self.layers), 'layer')}{worst}>"

    def _repr_html_(self) -> str:
        """Return the table of the layers and the repairs for a notebook."""
        rows = [_layer_row(layer) for layer in self.layers]
        repairs = "".join(f"<li>{escape(sentence)}</li>" for sentence in self._repairs())
        return html_table(repr(self)[1:-1], _LAYER_HEADERS, rows) + (f"<ul>{repairs}</ul>" if repairs else "")


_LAYER_HEADERS: Final = ("layer", "run: error", "PCC", "op: error", "op", "main cause")


def _layer_row(layer: LayerNumerics) -> tuple[str, ...]:
    """Return the row of the table of layers: errors, correlation, and the op with the greatest error with its cause."""
    if layer.error is None:
        error = "-"
    else:
        error = f"{layer.error:.1e}"
    cause = layer.worst.cause or "-"
    return layer.layer, error, correlation(layer.pcc), f"{layer.own:.1e}", layer.worst.name, str(cause)


def _repair_advice(op: OpNumerics) -> Iterator[str]:
    """Yield at most one line of advice for an op: the change of formats or fidelity that lowers its error, or that the
    error is inherent in the operation."""
    if op.repair is not None:
        changes = " and ".join(f"{change.field} {change.before} -> {change.after}" for change in op.repair.changes)
        yield f"op {op.name}: {changes}: {own_error(op):.1e} -> {op.repair.error:.1e}"
    elif inherent_cause(op):
        yield f"op {op.name}: {own_error(op):.1e} is inherent in {inherent_cause(op)} ({op.type})"


def layer_of(graph: Graph, placement: Placement, op: str) -> str:
    """Return the layer of the model that an op of the netlist belongs to; a fused op belongs to the layer of its last
    part."""
    source = placement.ops[op].op.source
    return graph[source].source or source


def element_places(tiles: TileGraph) -> dict[str, ElementPlaces]:
    """Return where the elements of the model lie in the results of ops, by op, for results that have padding and whose
    layout is known."""
    by_op: dict[str, ElementPlaces] = {}
    for name, layout in _layouts_by_tensor(tiles).items():
        op = tiles.ops.get(name)
        if op is None or layout.extent != (op.shape[0], op.shape[1] * TILE, op.shape[2] * TILE):
            continue  # the op works on other slices than the value that it had been
        repeats = [Repeat(piece.axis, piece.size, piece.stride) for piece in layout.pieces if piece.axis != "-"]
        places = ElementPlaces(layout.extent, tuple(repeats))
        if places.padding_share > 0:
            by_op[name] = places
    return by_op


def _layouts_by_tensor(tiles: TileGraph) -> dict[str, Layout]:
    """Return the layouts of tensors by name, as far as they are known: of values of the model, inputs, outputs, and
    what is computed from these tile by tile."""
    layouts = {
        name: _leading_layout(queue.view, queue.shape) for name, queue in tiles.inputs.items() if not queue.indices
    }
    for queue in tiles.outputs.values():
        if queue.slices == 1:  # the columns of others end within one of their slices, which no layout can say
            layouts[queue.op] = _leading_layout(queue.view, tiles.shape_of(queue.op))
    layouts |= dict(tiles.places.values())
    for op in tiles.ops.values():
        if op.is_tile_by_tile:
            sources = (use.source for use in op.uses if not use.tms)
        else:
            sources = ()
        source_name = next((name for name in sources if name in layouts and tiles.shape_of(name) == op.shape), "")
        if source_name:
            layouts.setdefault(op.name, layouts[source_name])
    return layouts


def _leading_layout(view: tuple[int, int, int], shape: Shape) -> Layout:
    """Return the layout of a value of shape `view` (slices, rows, columns in elements) that lies at the beginning of
    each axis of a tensor of `shape` (t, rows, columns in tiles)."""
    t, rows, columns = shape
    dims = tuple((Piece(size, axis, 1),) for size, axis in zip(view, "zrc", strict=True))
    return Layout(dims, (t, rows * TILE, columns * TILE))


def by_layer(graph: Graph, placement: Placement, ops: tuple[OpNumerics, ...]) -> ModelNumerics:
    """Gather the figures of netlist ops by the layers of the model that the ops belong to. `error` and `pcc` of a layer
    are those of the last of its ops."""
    gathered: dict[str, list[OpNumerics]] = {}
    for op in ops:
        gathered.setdefault(layer_of(graph, placement, op.name), []).append(op)
    layers = [
        LayerNumerics(
            layer=name,
            error=op_numerics[-1].total.rms,
            pcc=op_numerics[-1].total.pcc,
            worst=max(op_numerics, key=own_error),
            ops=tuple(op_numerics),
        )
        for name, op_numerics in gathered.items()
    ]
    return ModelNumerics(graph.name, placement.target.title, tuple(layers))


Tensors = Callable[[], Iterable[tuple[str, Array]]]


def _run_forward(machine: Emulator, rounds: int) -> None:
    """Run the forward program with `rounds` as its number of loops over inputs. The program of a model without inputs
    has no such parameter and runs as it is."""
    program = machine.netlist.programs[program_name(FORWARD)]
    machine.run(program.name, values_for(program, {LOOP: rounds}))


class Machines:
    """The emulated machines that run a model, created when they are first needed. `tensors`: the model's method that
    yields constants and parameters by queue."""

    def __init__(self, netlist: Netlist, placement: Placement, io: ModelIo, tensors: Tensors) -> None:
        self._netlist = netlist
        self._placement = placement
        self._io = io
        self._tensors = weakref.WeakMethod(tensors)  # the model has its machines, and goes with them
        self._machine = OpenMachine()

    @cached_property
    def single(self) -> Netlist:
        """The netlist for one input at a time (`resize_microbatch`). Of a model that is copied to several chips it has
        one copy, with the names of the placement: the same ops on the same cores."""
        if self._placement.copies == 1:
            return resize_microbatch(self._netlist, 1)
        return resize_microbatch(netlist_of(replace(self._placement, copies=1), self._netlist.path), 1)

    def run(self, arrays: Mapping[str, Array], precision: Precision) -> tuple[Array, ...]:
        """Run the model on inputs by name and return its outputs in order. Inputs of several times the model's first
        dimension are several sets: they stream through the machine in rounds, and their outputs are joined."""
        queues = [queue for queue in self._placement.queues.values() if queue.role in ("input", "output")]
        at_once = min(queue.entries for queue in queues) // self._placement.microbatch * self._placement.copies
        rounds = list(split_into_rounds(self._io, arrays, at_once))
        if len(rounds[0]) > 1:
            copies = self._placement.copies
        else:
            copies = 1
        outputs = [self._run_round(precision, sets, copies) for sets in rounds]
        return tuple(join_sets(parts) for parts in zip(*outputs, strict=True))

    def _run_round(self, precision: Precision, sets: Sequence[Mapping[str, Array]], copies: int) -> tuple[Array, ...]:
        """Run one round of input sets, dealt to the copies of the model in turn. If the sets do not fill the last turn,
        the last set is repeated and the outputs of the repetitions are dropped."""
        # All sets become entries before the first is pushed: a set that is refused must not leave others in the queues.
        entries = [self._io.queues(arrays) for arrays in sets]
        dealt = [*entries, *[entries[-1]] * (-len(sets) % copies)]
        with self.use(precision, copies) as machine:
            for position, arrays in enumerate(dealt):
                for name, array in arrays.items():
                    machine.push(self._queue_names(name, copies)[position % copies], array)
            _run_forward(machine, len(dealt) // copies)

            def pop_all(output: ModelOutput) -> Iterator[Array]:
                """Yield the values of an output for all inputs of the round, in order of the inputs."""
                names = self._queue_names(output.queue, copies)
                return (output.from_queue(machine.pop(names[number % copies])) for number in range(len(dealt)))

            outputs = [list(pop_all(output))[: len(sets)] for output in self._io.outputs]
        return tuple(join_sets(parts) for parts in outputs)

    def _queue_names(self, name: str, copies: int) -> tuple[str, ...]:
        """Return the names that the queue `name` has in the machine, one for each of the copies of the model."""
        if copies > 1:
            return self._placement.copy_names(name)
        return (name,)

    @contextmanager
    def use(
        self,
        precision: Precision,
        copies: int = 1,
        keep: OnMachine = do_nothing,
        restore: OnMachine = do_nothing,
    ) -> Generator[Emulator]:
        """Lend the calling thread a machine that holds all constants, for the length of a `with` block. The machine
        stays open for the next block with the same `precision` and `copies`. A block with others closes it and opens a
        new one; an exception in the block closes it. `keep` is called with the machine before that, `restore` with each
        new machine."""
        make = partial(self._open, precision, copies, restore)
        with self._machine.use((precision, copies), make, keep) as machine:
            yield machine

    def _open(self, precision: Precision, copies: int, restore: OnMachine) -> Emulator:
        """Open a machine, push all constants and parameters, and call `restore` with it."""
        if copies > 1:
            netlist = resize_microbatch(self._netlist, 1)
        else:
            netlist = self.single
        machine = Emulator(netlist, precision)
        try:
            self.fill(machine, copies=copies)
            restore(machine)
        except BaseException:
            machine.close()
            raise
        return machine

    def current(self) -> AbstractContextManager[Emulator | None]:
        """Return a context manager that lends the calling thread the open machine, or None if none is open."""
        return self._machine.current()

    def fill(self, machine: Emulator, inputs: Sequence[Array] = (), copies: int = 1) -> None:
        """Push constants and parameters to the queues of each of the `copies` of the model and, if `inputs` is not
        empty, one set of inputs in order; inputs need a machine with one copy."""
        tensors = self._tensors()
        for name, array in tensors() if tensors is not None else ():
            for queue in self._queue_names(name, copies):
                machine.push(queue, array)
        if inputs:
            for name, array in self._io.queues(dict(zip(self._io.labels, inputs, strict=True))).items():
                machine.push(name, array)

    def run_with_listener(self, inputs: Sequence[Array], precision: Precision, listener: Listener) -> tuple[Array, ...]:
        """Run one set of inputs on a new machine that reports the results of ops to `listener`, and return the outputs.
        The machine that `use` left open is closed first, to free its memory."""
        self.close()
        with Emulator(self.single, precision, listeners=(listener,), inputs_at_once=1) as machine:
            self.fill(machine, inputs)
            _run_forward(machine, 1)
            return tuple(output.from_queue(machine.pop(output.queue)) for output in self._io.outputs)

    def close(self) -> None:
        """Free the open machine; the next call opens a new one."""
        self._machine.close()


@dataclass(frozen=True, slots=True)
class ModelPerf:
    """The modelled time of a round of `inputs` inputs, of all copies of the model. `run` has all the figures of
    `buda-emu perf`. `unit` names what `inputs` counts: "input", or "step" for a training, whose steps have all their
    microbatches."""

    run: "PerfRun"
    inputs: int = 1
    unit: str = "input"

    @property
    def cycles(self) -> float:
        """Cycles of the AI clock for a round of inputs: all epochs, each with its set-up."""
        return sum(self.run.programs().values())

    @property
    def inputs_per_second(self) -> float:
        """Inputs per second of the whole round: of the chips with all loading, or of the host link if that is slower.
        `be.perf` has it as `overall_inputs_per_second`."""
        return self.inputs / self.run.overall_seconds

    def __repr__(self) -> str:
        round_text = plural(self.inputs, self.unit)
        pace = f"{self.inputs_per_second:.5g} {self.unit}s/s, {self.cycles:.0f} cycles for {round_text}"
        return f"ModelPerf({self.run.netlist!r}, {self.run.arch}, {pace})"

    def _epoch_rows(self) -> list[tuple[str, ...]]:
        """Return a row of texts for each epoch, in the order in which they run."""
        return [
            (
                epoch.program,
                " + ".join(epoch.graphs),
                f"{epoch.timing.inputs:,}",
                f"{epoch.pace:,.0f}",
                f"{epoch.load.cycles:,.0f}",
                epoch.bottleneck.name or epoch.bottleneck.kind,
            )
            for epoch in self.run.epochs
        ]

    def __str__(self) -> str:
        """Return the pace, and a table of the epochs with what limits each."""
        return f"{self!r}\n\n{table(_EPOCH_HEADERS, self._epoch_rows(), right=(2, 3, 4))}"

    def _repr_html_(self) -> str:
        """Return the table of the epochs for a notebook."""
        return html_table(repr(self), _EPOCH_HEADERS, self._epoch_rows())


_EPOCH_HEADERS: Final = ("program", "graph", "inputs", "steady cycles", "cycles to load", "bottleneck")


class ReportText(str):
    """A text that a prompt and a notebook show as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class CompiledModel:
    """A model compiled by `compile`. Call it with the model's inputs, numpy or torch, in order."""

    def __init__(
        self,
        graph: Graph,
        placement: Placement,
        title: str,
        origin: Origin | None = None,
        examples: Sequence[Any] | None = None,
        source: Mapping[str, bytes] | None = None,
    ) -> None:
        self.graph = graph
        self.source: Mapping[str, bytes] = source or {}
        """The files of the imported model, which `save` puts into the image (`compiler.image_source`)."""
        self.origin = origin
        self._examples = examples
        self.placement = placement
        self.text: str = netlist_text(placement, title)

    def __repr__(self) -> str:
        ops = plural(len(self.placement.ops), "op")
        epochs = plural(self.placement.epochs, "epoch")
        return f"{type(self).__name__}({self.graph.name!r}, {self.placement.target.title}, {ops}, {epochs})"

    def _repr_html_(self) -> str:
        """Return the model's summary and the picture of its grid for a notebook."""
        return f"<p>{escape(repr(self))}</p>{grid_svg(self.netlist)}"

    # ----------------------------------------------------------------------------------------------- the netlist
    @cached_property
    def _check_result(self) -> NetlistResult:
        """The result of the strict check of the netlist's text, computed once: the netlist, None if it is refused, and
        all findings."""
        return check_text(self.text, f"{self.graph.name}.yaml", strict=True)

    def check(self, strict: bool = True) -> tuple[Diagnostic, ...]:
        """Return the findings of `buda-emu check`, none if all is well; with `strict` also those about pipes and
        streams. Several chips are connected as the cluster's file says, else in a row with four links between
        neighbours. Only the command reports that no pipes are made for an architecture (V359), and loads that net2pipe
        takes but advises against (V357, V358, V360)."""
        if not strict:
            return check_text(self.text, f"{self.graph.name}.yaml").diagnostics
        diagnostics = with_routes(self._check_result, self.text, self.placement.links).diagnostics
        return tuple(finding for finding in diagnostics if finding.rule not in (UNSUPPORTED_RULE, *RECOMMENDED))

    @property
    def netlist(self) -> Netlist:
        """The netlist as loaded from its text. Raises InternalError if the checker refuses it."""
        if self._check_result.netlist is None:
            raise InternalError(
                f"the compiler wrote a netlist that is refused:\n{render(self._check_result.diagnostics)}"
            )
        return self._check_result.netlist

    @property
    def chip(self) -> Device:
        """The chip of the target, as the time model takes it."""
        return self.placement.target.chip

    @cached_property
    def machines(self) -> Machines:
        """The emulated machines that run the netlist."""
        return Machines(self.netlist, self.placement, self.io, self.tensors)

    @cached_property
    def io(self) -> ModelIo:
        """The model's inputs and outputs as the host holds them, and the queues that they go through."""
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
                ranges=nodes[queue.label].attrs.get("ranges", ()),
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
        return ModelIo(tuple(nodes), inputs, outputs, elements=element_places(tiles), rules=rules_of(graph))

    @property
    def io_of_image(self) -> ModelIo:
        """The model's inputs and outputs as `save` writes them into an image; a subclass adds what else its images
        describe, such as programs and caches."""
        return self.io

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the queue's name and the values [entries, t, rows, columns], in elements, of each constant, and of each
        state at its beginning. These are what the host writes before the first run."""
        for queue in self.placement.queues.values():
            if queue.role == "constant":
                yield queue.name, self.placement.tiles.constants[queue.tensor].values[None]
        for state in self.placement.tiles.states.values():
            yield state.written, state.entries(state.held)

    # --------------------------------------------------------------------------------------------------- running
    def __call__(self, *inputs: Any, precision: Precision = "ideal", **named: Any) -> tuple[Array, ...]:
        """The outputs in the model's shapes and element types, for inputs in order or by their names. With N times the
        model's first dimension in the inputs, N sets of them stream through the machine, and the outputs are joined
        along their first dimension; an input of the model's own shape goes with each set. Raises HostError for inputs
        that the model does not take, ProgramError as a run does."""
        return self.run(dict(zip(self.io.labels, self._input_arrays(inputs, named), strict=True)), precision)

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Run the model on inputs by name and return the outputs in order. Several sets of inputs stream through the
        machine and errors are raised as in a call of the model."""
        require_names(arrays, self.io.labels)
        return self.machines.run({name: as_numpy(array) for name, array in arrays.items()}, precision)

    def _input_arrays(self, inputs: Sequence[Any], named: Mapping[str, Any] | None = None) -> list[Array]:
        """Return one numpy array for each input of the model, in order, from those given in order and those by name.
        Raises HostError for an input that is missing or that the model does not have."""
        return [as_numpy(array) for array in inputs_by_label(self.io.labels, inputs, named or {}).values()]

    def _one_set(self, inputs: Any) -> list[Array]:
        """Return one set of inputs, given as `compile` takes example inputs, as arrays; None takes the example
        inputs. Raises HostError for others than the model takes."""
        if inputs is None:
            return list(self.example_inputs())
        examples = example_inputs(inputs)
        if isinstance(examples, Mapping):
            return self._input_arrays((), examples)
        return self._input_arrays(examples or ())

    def example_inputs(self, seed: int = 0) -> tuple[Array, ...]:
        """Return the example inputs that `compile` was called with, or random ones from the seed if there were none."""
        if self._examples is not None:
            return tuple(self._input_arrays(self._examples))
        return made_up(self.graph, seed)

    def close(self) -> None:
        """Free the machines that calls opened; the next call opens a new one."""
        self.machines.close()

    # ---------------------------------------------------------------------------------------- what is said of it
    def perf(self) -> ModelPerf:
        """Return the modelled cycles of a round of inputs (the microbatch)."""
        return self._model_time({LOOP: "1"})

    def _model_time(self, params: Mapping[str, str], names: Sequence[str] | None = None) -> ModelPerf:
        """Return the modelled time of the programs `names`, None for all, with values of their parameters by name."""
        netlist = self.netlist
        programs = [netlist.programs[name] for name in names or dict.fromkeys(netlist.program_order)]
        run = model_netlist(netlist, programs, params, chip=self.chip, version=__version__)
        return ModelPerf(replace(run, padding=self.io.padding_shares), self.placement.inputs)

    def compare(
        self,
        inputs: Any = None,
        *,
        precision: Precision = "ideal",
        layers: bool = True,
        progress: Report | None = None,
    ) -> "ModelComparison":
        """Compare the outputs, and with `layers` the values of layers, with those of the model as torch or onnxruntime
        runs it. `inputs`: one set, as `compile` takes example inputs, or None for those; `progress`: a callback for
        activities (docs/python/embedding.md). Print the result for a table. Raises HostError if the framework is not
        installed or refuses the inputs, and what a call raises."""
        arrays = self._one_set(inputs)
        labels = [output.label for output in self.io.outputs]
        with reported_work(progress) as report:
            report(Activity("running the model", "programs", 0, 2))

            def run(listener: Listener) -> tuple[Array, ...]:
                report(Activity("running the netlist", "programs", 1, 2))
                return self.machines.run_with_listener(arrays, precision, listener)

            return compare(self, labels, arrays, precision, run, layers=layers)

    def numerics(
        self,
        inputs: Any = None,
        *,
        only: str | None = None,
        threads: int = 1,
        progress: Report | None = None,
    ) -> "ModelNumerics":
        """Explain the difference between precisions `device` and `ideal`, layer by layer: errors, causes and repairs as
        in `buda-emu numerics`. `inputs`: one set, as `compile` takes example inputs, or None for those; `only`: one op
        of the netlist; `progress`: a callback for activities (docs/python/embedding.md). Print the result for a table.
        Raises HostError for an op that does not exist, and what a call raises."""
        ops = self.numerics_of_ops(inputs, only=only, threads=threads, progress=progress).ops
        return by_layer(self.graph, self.placement, ops)

    def numerics_of_ops(
        self,
        inputs: Any = None,
        *,
        only: str | None = None,
        seed: int = 0,
        progress: Report | None = None,
        **machine: Unpack[Machine],
    ) -> Numerics:
        """Explain the difference between precisions `device` and `ideal` op by op; padding does not count. `inputs`:
        one set, None takes the example inputs, or random ones from the seed; `only`: one op of the netlist; `machine`:
        threads and memory, the memory for both runs together; `progress`: a callback for activities. Raises HostError
        for an op that does not exist, and what a call raises."""
        from buda_emu.emulator.op_errors.numerics import Selection, op_numerics

        if inputs is None:
            arrays = self.example_inputs(seed)
        else:
            arrays = self._one_set(inputs)
        self.close()
        programs = self._programs_with_parameters()
        with reported_work(progress) as report:
            ops = op_numerics(
                self.machines.single,
                partial(self.machines.fill, inputs=arrays),
                programs,
                counted=Selection(only, self.io.elements_of),
                progress=report,
                **share_of_machine(machine, 2),
            )
        return Numerics(
            netlist=self.netlist.path,
            arch=self.netlist.arch_name,
            programs=tuple(name for name, _ in programs),
            parameters={name: value for _, parameters in programs for name, value in parameters.items()},
            seed=seed,
            ops=ops,
        )

    def _programs_with_parameters(self) -> list[tuple[str, dict[str, str]]]:
        """Return the programs that compute the outputs, with parameters for one round."""
        return [(program_name(FORWARD), {LOOP: "1"})]

    def report(self) -> ReportText:
        """Describe where the modelled time goes: the whole beside the first legal placement and the limits of cores,
        DRAM and the host link, then for each epoch what sets its pace and why no move improves it
        (docs/compile/placing.md)."""
        return ReportText(report(evaluate(self.placement), first_placement(self.placement)))

    def save(
        self,
        folder: str | Path,
        name: str = "model",
        *,
        tilized: bool | None = None,
        host: tuple[HostPlan, Mapping[str, bytes]] | None = None,
    ) -> tuple[Path, Path]:
        """Write `<name>.yaml` and `<name>.tti` to a folder, each completely or not at all, and return both paths.
        `tilized`: whether the image holds parameters as tiles in the formats of their queues instead of as the host has
        them; None: only if some parameters lie in files, and are thus too large to be written at twice their size.
        `host`: the host's work between programs, with its files. Raises OSError for a file that cannot be written,
        UnsupportedError for an architecture that has no images."""
        folder = Path(folder)
        text = folder / f"{name}.yaml"
        image = folder / f"{name}.tti"
        result = check_text(self.text, str(text), strict=True)
        netlist = result.netlist or self.netlist
        chips = self.placement.instances
        io = self.io_of_image
        files = dict[str, bytes]()
        if host is not None:
            plan, files = host
            labels = tuple(model_input.label for model_input in plan.given)
            io = replace(self.io, labels=labels, host=plan, rules=())
        if chips:
            io = io.of_copies(chips)
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
            source=self.source,
        )
        make_folder(folder)
        write_file(image, lambda stream: write_image(stream, contents))
        write_file(text, lambda stream: stream.write(self.text.encode()))
        return text, image


def as_numpy(array: Any) -> Array:
    """Return an array or torch tensor as a numpy array, bfloat16 as float32; torch is not imported for it. Raises
    HostError for a masked array."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()  # numpy has no bfloat16
    refuse_masked_arrays(array, "an array of the model")
    return np.asarray(array)
