"""The job in one call: a model in, a compiled one out."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.mixed import Mixed, wide_df
from buda_emu.compiler.pipeline import Observer
from buda_emu.compiler.recipe import Recipe
from buda_emu.errors import UnsupportedError


@contextmanager
def within_memory() -> Generator[None]:
    """Raises UnsupportedError where this machine has not the memory that a model takes."""
    try:
        yield
    except MemoryError as error:
        raise UnsupportedError(f"compile: not enough memory for the model{f': {error}' * bool(str(error))}") from error


@within_memory()
def compile(  # noqa: A001 - as be.compile
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    arch: str = "wormhole_b0",
    df: str = "Float16_b",
    fidelity: str = "HiFi3",
    acc_df: str = "",
    mixed: Mixed = None,
    fuse: bool = True,
    effort: str = "default",
    objective: str = "throughput",
    chips: int | str | PathLike[str] = 1,
    microbatch: int | None = None,
    name: str = "",
    dump: Callable[[str, Graph], None] | None = None,
    loss: Any = None,
    optimizer: str = "sgd",
    learning_rate: Any = 0.01,
    optimizer_options: Mapping[str, float] | None = None,
    optimizer_df: str = "",
    target: Any = None,
    microbatches: int = 1,
    activations_mib: float | None = None,
    chip_softmax: bool = False,
    keeps: Mapping[int, str] | None = None,
    observer: Observer | None = None,
) -> CompiledModel:
    """Compile a model; with `loss`, its training.

    `source`: path of an .onnx or .pt2 file, onnx.ModelProto, torch.nn.Module or ExportedProgram; `inputs`: example
    inputs, needed for a module, and for what an ONNX model leaves open (symbolic sizes, shapes that are inputs).
    `arch`, `df` (of activations and parameters), `fidelity` and `acc_df` as in netlists; `mixed`: other ones for some
    ops, as maps {match: pattern of names, df, acc_df, fidelity} or a YAML file of them. `fuse`: biases, activations and
    chains of element-wise ops are put into one netlist op where the rules allow. `dump` is given the name of each pass
    on graphs and the graph after it; `observer` looks at all passes (docs/pipeline.md), instead.

    `effort` ("low", "default", "high") is how long placing searches, `objective` ("throughput", "latency", "cores") for
    what; `chips` is over how many the model is cut or copied, or the path of a cluster's file; `microbatch` how many
    inputs go through an epoch before the next begins (default: 64, of objective latency 1; fewer where memory is full).
    What keeps states from input to input (training, caches) takes one chip; caches one input at a time, a training the
    microbatches of a step where it can (docs/placing.md).

    `loss`: "mse", "cross_entropy", or a function of the module's output and a target: then a CompiledTraining is
    returned (docs/train-a-model.md), and `optimizer`, `learning_rate` (a number, or a function of the step),
    `optimizer_options`, `optimizer_df` ("Float32": of master copies of the parameters, of gradient sums and of what the
    optimizer keeps), `target` (an example), `microbatches` and `activations_mib` (what the backward pass needs of the
    forward pass may take so much DRAM, and is computed again beyond; default: what there is) count, which mean nothing
    without. `chip_softmax`: the gradient of cross_entropy adds up to 0 on the chip, too, and has not torch's last bits.
    `acc_df` is Float32 then, where the chip has it.

    `keeps`: by the number of an output, the input that it is kept in for the next run, a cache; a mapping of names to
    Programs as `source` is several models that share caches. A CompiledPrograms is returned (docs/generate.md).

    Raises UnsupportedError naming every operator that is not supported, with its count, and where this machine has not
    the memory; HostError for a file that is no model or a wrong word.
    """
    if loss is not None and not acc_df:
        from buda_emu.compiler.train.choices import sums_df

        acc_df = sums_df(arch, df)
    recipe = Recipe.named(
        arch=arch, df=df, fidelity=fidelity, acc_df=acc_df, mixed=mixed, fuse=fuse, name=name, dump=dump,
        effort=effort, objective=objective, chips=chips, microbatch=microbatch, observer=observer,
    )  # fmt: skip
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
    from buda_emu.compiler.train.stored import fitted
    from buda_emu.compiler.train.training import CompiledTraining

    df = wide_df(optimizer_df, recipe.device)
    choices = Choices.named(loss, optimizer, optimizer_options, learning_rate, microbatches, df)
    graph = training_graph(source, inputs, target, choices)
    if chip_softmax:
        from buda_emu.compiler.train.probabilities import probabilities

        graph = probabilities(graph)
    recipe = replace(recipe, aim=replace(recipe.aim, step=microbatches))
    found, stored = fitted(recipe, graph, max(2, microbatches), activations_mib)
    return CompiledTraining(*found, choices, stored)


def _is_mapping(source: object) -> bool:
    return isinstance(source, Mapping)
