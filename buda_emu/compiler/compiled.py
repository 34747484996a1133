"""A compiled model: netlist, parameters, and what it does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render
from buda_emu.checker.text import plural
from buda_emu.compiler.comparison import compare
from buda_emu.compiler.emit.netlist import netlist_text
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.examples import below, made_up
from buda_emu.compiler.graph.graph import FORWARD, Graph, Origin, host_shape
from buda_emu.compiler.layer_numerics import by_layer, elements_of
from buda_emu.compiler.machines import Machines
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.evaluate import judged
from buda_emu.compiler.search.placer import first_placement
from buda_emu.compiler.search.report import report
from buda_emu.errors import HostError, InternalError
from buda_emu.files import write_file
from buda_emu.image.host.plan import HostPlan
from buda_emu.image.model_io import ModelInput, ModelIo, ModelOutput
from buda_emu.image.pack import Contents, Form, write_image
from buda_emu.netlist.load import NetlistResult, check_text
from buda_emu.netlist.microbatch import LOOP
from buda_emu.netlist.model import Netlist
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.routing.checking import NOT_JUDGED, RECOMMENDED, with_routes
from buda_emu.spec.precision import Precision
from buda_emu.tensor.referenced import Referenced
from buda_emu.timing.model import model_netlist
from buda_emu.unmasked import require_unmasked
from buda_emu.version import __version__

if TYPE_CHECKING:
    from buda_emu.compiler.comparison import Comparison
    from buda_emu.compiler.layer_numerics import ModelNumerics
    from buda_emu.timing.result import PerfRun

Array = NDArray[Any]


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
        ops, epochs = plural(len(self.placement.ops), "op"), plural(self.placement.epochs, "epoch")
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
        graph, tiles = self.graph, self.placement.tiles
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
            ModelOutput(queue.name, queue.label, queue.host_shape, queue.dtype, queue.view, queue.slices)
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
        from buda_emu.verify.op_by_op.numerics import Counted, op_numerics

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
        text, image = folder / f"{name}.yaml", folder / f"{name}.tti"
        result = check_text(self.text, str(text), strict=True)
        netlist = result.netlist or self.netlist
        chips = self.placement.instances
        io, files = self.io.on_chip(chips[0]) if chips else self.io, dict[str, bytes]()
        if host is not None:
            plan, files = host
            io = replace(io, labels=tuple(item.label for item in plan.given), host=plan)
        tensors = dict(self.tensors())
        if tilized is None:
            tilized = any(isinstance(node.value, Referenced) for node in self.graph if node.op == "constant")
        form: Form = "BACKEND_TILIZED" if tilized else "BACKEND"
        contents = Contents(netlist, self.text.encode(), tensors, name, __version__, form, io.as_json(), files)
        folder.mkdir(parents=True, exist_ok=True)
        write_file(image, lambda stream: write_image(stream, contents))
        write_file(text, lambda stream: stream.write(self.text.encode()))
        return text, image


def as_numpy(item: Any) -> Array:
    """Torch tensors have no need of torch to be turned. Raises HostError for a masked array."""
    if hasattr(item, "detach"):
        item = item.detach().cpu()
        item = (item.float() if str(item.dtype) == "torch.bfloat16" else item).numpy()  # numpy has no bfloat16
    require_unmasked(item, "an array of the model")
    return np.asarray(item)
