"""The compiler's entry point for trainings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from buda_emu.compiler.compilation import (
    Compilation,
    CompileOptions,
    OptionWords,
    with_words,
    within_memory,
    without_sizes,
)
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Node, Output
from buda_emu.compiler.importers.source import example_sequence
from buda_emu.compiler.mixed import wide_df
from buda_emu.compiler.train.activation_memory import fit_activations
from buda_emu.compiler.train.choices import GRADIENT, MASTER, NUMBER, OPTIMIZE, Choices, Numbers, Optimizer, sums_df
from buda_emu.compiler.train.joint import joint_graph
from buda_emu.compiler.train.training import CompiledTraining
from buda_emu.support.errors import HostError


def training_graph(module: Any, inputs: Any, target: Any, choices: Choices) -> Graph:
    """Build the graph of all three programs. Raises HostError, UnsupportedError."""
    examples = example_sequence(inputs)
    if examples is None:
        raise HostError("compile: training needs example inputs: compile_training(module, (tensor, ...), loss=...)")
    graph = joint_graph(module, examples, target, choices)
    add_optimizer(graph, choices.optimizer, choices.options, choices.df)
    return graph


def add_optimizer(graph: Graph, optimizer: Optimizer, options: Numbers, df: str = "") -> None:
    """Add the program that changes each parameter by the sum of its gradients. It reads only states, so it can run once
    for many microbatches. With `df` all that it reads has that format; the parameter is then a copy beside the one that
    the model reads."""
    b = Builder(graph, decompose=False)
    numbers = {
        name: b.state(NUMBER + name, np.float32(value), df=df)
        for name, value in optimizer.numbers(0.0, 1, options).items()
    }
    initial = {node.attrs["label"]: node for node in graph if node.op == "state"}
    for output in [output for output in graph.outputs if output.accumulate]:
        name = output.state.removeprefix(GRADIENT)
        b.scope = b.source = f"optimizer.{name}"
        shape = initial[name].shape
        if df:
            copies = [name, name + MASTER]
        else:
            copies = [name]
        p = b.state(copies[-1], initial[name].attrs["initial"], df=df)
        g = b.state(output.state, np.zeros(shape, np.float32), df=df)
        tensors: dict[str, Node] = {
            key: b.state(f"{name}.{key}", np.zeros(shape, np.float32), df=df) for key in optimizer.kept(options)
        }
        after, changed = optimizer.update(b, p, g, tensors, numbers, options)
        values = [(copy, after) for copy in copies] + [(f"{name}.{key}", value) for key, value in changed.items()]
        for label, value in values:
            graph.outputs.append(Output(label=label, value=value.name, dtype="float32", program=OPTIMIZE, state=label))


def softmax_from_logarithm(graph: Graph) -> Graph:
    """Replace `exp(log_softmax(x))`, which torch's backward passes contain, by `softmax(x)`.

    The chip's exp is a few percent off (numbers-on-the-chip). Divided by their sum its values still add up to 1; the
    exponential of the logarithm does not, and the remainder pulls at all parameters in every step. The core ops that
    both decompose to are computed once (pass `cse`).
    """
    nodes = dict(graph.nodes)
    for node in graph:
        if node.op == "exp" and not node.attrs and graph[node.inputs[0]].op == "log_softmax":
            logarithm = graph[node.inputs[0]]
            nodes[node.name] = replace(node, op="softmax", inputs=logarithm.inputs, attrs=logarithm.attrs)
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


@within_memory()
def compile_training(
    source: Any,
    inputs: Any = None,
    *,
    loss: Any,
    optimizer: str = "sgd",
    learning_rate: Any = 0.01,
    optimizer_options: Mapping[str, float] | None = None,
    optimizer_df: str = "",
    target: Any = None,
    microbatches: int = 1,
    activations_mib: float | None = None,
    chip_softmax: bool = False,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> CompiledTraining:
    """Compile the training of a torch module (docs/compile/train-a-model.md): forward pass, backward pass and
    optimizer.

    `source`: a torch.nn.Module; `inputs`: example inputs; `loss`: "mse", "cross_entropy", or a function of the module's
    output and a target; `target`: an example, needed for a function and for a module of several outputs; a tuple, if
    the loss takes one.

    `optimizer`: "sgd", "adam" or "adamw", with `optimizer_options` as torch names them; `learning_rate`: a number, or a
    function of the step, counted from 0; `optimizer_df`: "Float32" for master copies of the parameters, gradient sums
    and what the optimizer keeps, "" for the model's format. `microbatches` of a step: its rows are so many times those
    of `inputs`. `activations_mib`: MiB of DRAM for what the backward pass needs of the forward pass; what does not fit
    is computed again; None: what the chip has. `chip_softmax`: the gradient of cross_entropy adds up to 0 on the chip,
    too, and differs from torch's in its last bits.

    `options`, or its fields as keywords, which replace those of `options`: see CompileOptions.

    Raises HostError for a module without inputs, for words that do not exist and for a limit that cannot be kept;
    UnsupportedError and TypeError as `compile` does.
    """
    resolved_options = without_sizes(with_words(options, words, "compile_training"), "compile_training")
    if not resolved_options.acc_df:
        resolved_options = replace(resolved_options, acc_df=sums_df(resolved_options.arch, resolved_options.df))
    compilation = Compilation.of(resolved_options)
    df = wide_df(optimizer_df, compilation.device)
    choices = Choices.from_options(loss, optimizer, optimizer_options, learning_rate, microbatches, df, target)
    with compilation.loading():
        graph = training_graph(source, inputs, target, choices)
    if chip_softmax:
        graph = softmax_from_logarithm(graph)
    compilation = replace(compilation, objective=replace(compilation.objective, step=microbatches))
    placement, stored = fit_activations(compilation, graph, max(2, microbatches), activations_mib)
    return CompiledTraining(*placement, choices, stored)
