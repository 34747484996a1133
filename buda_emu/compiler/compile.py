"""The job in one call: a model in, a compiled one out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.fuse.fuse import fuse as fuse_ops
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.mixed import Rule, assign, read_rules
from buda_emu.compiler.passes.pipeline import run_passes
from buda_emu.compiler.place.placer import Placement, place
from buda_emu.compiler.target import Target


def compile(  # noqa: A001 - as be.compile
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    arch: str = "wormhole_b0",
    df: str = "Float16_b",
    fidelity: str = "HiFi3",
    acc_df: str = "",
    mixed: str | Path | Sequence[Mapping[str, Any]] | None = None,
    fuse: bool = True,
    name: str = "",
    dump: Callable[[str, Graph], None] | None = None,
    loss: Any = None,
    optimizer: str = "sgd",
    learning_rate: Any = 0.01,
    optimizer_options: Mapping[str, float] | None = None,
    target: Any = None,
    microbatches: int = 1,
    keeps: Mapping[int, str] | None = None,
) -> CompiledModel:
    """Compile a model; with `loss`, its training.

    `source`: path of an .onnx or .pt2 file, onnx.ModelProto, torch.nn.Module or ExportedProgram; `inputs`: example
    inputs, needed for a module, and for what an ONNX model leaves open (symbolic sizes, shapes that are inputs).
    `arch`, `df` (of activations and parameters), `fidelity` and `acc_df` as in netlists; `mixed`: other ones for some
    ops, as maps {match: pattern of names, df, acc_df, fidelity} or a YAML file of them. `fuse`: biases, activations and
    chains of element-wise ops are put into one netlist op where the rules allow. `dump` is given the name of each pass
    and the graph behind it.

    `loss`: "mse", "cross_entropy", or a function of the module's output and a target: then a CompiledTraining is
    returned (docs/train-a-model.md), and `optimizer`, `learning_rate` (a number, or a function of the step),
    `optimizer_options`, `target` (an example) and `microbatches` count, which mean nothing without.

    `keeps`: by the number of an output, the input that it is kept in for the next run, a cache; a mapping of names to
    Programs as `source` is several models that share caches. A CompiledPrograms is returned (docs/generate.md).

    Raises UnsupportedError naming every operator that is not supported, with its count; HostError for a file that is no
    model or a wrong word.
    """
    device = Target.named(arch, df, fidelity, acc_df)
    recipe = Recipe(device, tuple(read_rules(mixed, device)), fuse, name, dump or _nothing)
    if keeps is not None or _is_mapping(source):
        from buda_emu.compiler.generate.caches import Program, programs_graph
        from buda_emu.compiler.generate.programs import CompiledPrograms

        graph, parts = programs_graph(source if keeps is None else {"model": Program(source, inputs or (), keeps)})
        return CompiledPrograms(*recipe.placed(graph, entries=4), parts)
    if loss is None:
        graph = read_model(source, inputs)
        return CompiledModel(*recipe.placed(graph), graph.origin, inputs)
    from buda_emu.compiler.train.choices import Choices
    from buda_emu.compiler.train.programs import training_graph
    from buda_emu.compiler.train.training import CompiledTraining

    choices = Choices.named(loss, optimizer, optimizer_options, learning_rate, microbatches)
    graph = training_graph(source, inputs, target, choices)
    return CompiledTraining(*recipe.placed(graph, entries=max(2, microbatches)), choices)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a graph becomes a placed one: all that a caller chose. `dump` is given each pass and the graph behind it."""

    device: Target
    rules: tuple[Rule, ...]
    fuse: bool
    name: str
    dump: Callable[[str, Graph], None]

    def placed(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """The graph behind all passes, its netlist ops on cores, and a title."""
        graph.name = self.name or graph.name
        graph = run_passes(graph, self.dump)
        tiles = lower(graph, self.device)
        if self.fuse:
            fuse_ops(tiles, self.device)
        assign(tiles, self.rules)
        return graph, place(tiles, self.device, entries=entries), _title(graph, self.device)


def _is_mapping(source: object) -> bool:
    return isinstance(source, Mapping)


def _nothing(name: str, graph: Graph) -> None:
    del name, graph


def _title(graph: Graph, target: Target) -> str:
    formats = f"{target.activation_df}, sums in {target.acc_df}, {target.fidelity}"
    return f"Model {graph.name} by buda-emu compile: {target.arch.name}, {formats}. Names are the model's own."
