"""The compiler's entry point for trainings, and the joint graph of a module and its loss.

torch's ahead-of-time autograd writes the backward pass, and the importer reads both as one graph of two programs.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Unpack

import numpy as np
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from buda_emu.compiler.compilation import (
    Compilation,
    CompileOptions,
    OptionWords,
    with_words,
    within_memory,
    without_sizes,
)
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.examples import example_sequence
from buda_emu.compiler.graph.graph import FORWARD, Graph, Node, Output
from buda_emu.compiler.importers.from_torch.parameters import named_tensors, refuse_missing_data
from buda_emu.compiler.importers.from_torch.reader import ASSERTED, Reader, decompose, dtype_name, refuse_changes
from buda_emu.compiler.importers.from_torch.trace import (
    Arguments,
    array_of,
    distinct_tensors,
    refuse_inputs,
    silence_loggers,
    trace_module,
)
from buda_emu.compiler.importers.index_inputs import limit_input
from buda_emu.compiler.importers.signals import Complex
from buda_emu.compiler.mixed import wide_df
from buda_emu.compiler.train.activation_memory import fit_activations
from buda_emu.compiler.train.choices import (
    BACKWARD,
    GRADIENT,
    MASTER,
    NUMBER,
    OPTIMIZE,
    Choices,
    Numbers,
    Optimizer,
    sums_df,
)
from buda_emu.compiler.train.training import CompiledTraining
from buda_emu.emulator.image.index_range import IndexRange
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

LOSS = "loss"
TARGET = "target"
Loss = Callable[[Any, Any], Any]
_LOSSES: Final[Mapping[str, Loss]] = {"mse": functional.mse_loss, "cross_entropy": functional.cross_entropy}


class _WithLoss(torch.nn.Module):
    """A module followed by its loss, divided by the number of microbatches."""

    def __init__(self, model: Any, loss: Loss, share: float, several: int) -> None:
        super().__init__()
        self.model = model
        self._loss = loss
        self._share = share
        self._several = several

    def forward(self, *inputs: Any) -> Any:
        """Return this microbatch's share of the loss; the last inputs are its targets."""
        count = len(inputs) - (self._several or 1)
        loss = self._loss(self.model(*inputs[:count]), inputs[count:] if self._several else inputs[-1])
        if self._share == 1:
            return loss
        return loss * self._share


def joint_graph(module: Any, inputs: Sequence[Any], target: Any, choices: Choices) -> Graph:
    """Import forward and backward pass: the loss, and a gradient for each parameter that requires one. Without a
    `target` one of zeros is made up. Raises HostError for a module that torch cannot trace or that has no parameter to
    train, UnsupportedError for operators that are not supported."""
    if not isinstance(module, torch.nn.Module):
        raise HostError(f"compile: {type(module).__name__} is not a torch.nn.Module, and only those are trained")
    refuse_masked_arrays(inputs, "compile: example inputs")
    refuse_masked_arrays(target, "compile: target")
    refuse_missing_data(
        named_tensors(module), type(module).__name__, "give them values, as load_state_dict(..., assign=True) does"
    )
    loss = choices.loss
    if isinstance(loss, str):
        function = _LOSSES[loss]
    else:
        function = loss
    name = type(module).__name__
    tensors = list(distinct_tensors(inputs))
    if target is None:
        target = _example_target(module, tensors, loss)
    several = choices.targets
    with_loss = _WithLoss(module, function, 1 / choices.microbatches, several)
    arguments = (*tensors, *distinct_tensors(target if several else (target,)))
    try:
        program, hot_inputs = _trace_joint_program(
            with_loss, arguments, _parameters_in_loss(with_loss, arguments), name
        )
    except HostError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever keeps torch from tracing
        refuse_inputs(module, Arguments(tensors), name)
        refuse_inputs(with_loss, Arguments(arguments), f"{name} with its loss")
        reason = str(error).strip().splitlines()
        raise HostError(
            f"compile: torch cannot trace the training of {name}: {reason[0] if reason else error!r}"
        ) from None
    refuse_changes(program.graph_signature, name, keeps_buffers=True)
    graph = _JointReader(
        program, name, _input_and_target_labels(module, len(tensors), several), _first_names(with_loss)
    ).read()
    for place, count in hot_inputs:
        limit_input(graph, graph.inputs[place], IndexRange(count))
    return graph


def _parameters_in_loss(with_loss: Any, arguments: tuple[Any, ...]) -> set[str]:
    """Return the names of the parameters that the loss depends on; torch's own optimizers leave the others
    unchanged."""
    with torch.enable_grad():
        loss = _call_keeping_buffers(with_loss, arguments)
        trained = {name: parameter for name, parameter in with_loss.named_parameters() if parameter.requires_grad}
        gradients: Any = torch.autograd.grad(loss, tuple(trained.values()), allow_unused=True) if trained else ()
    return {name for name, gradient in zip(trained, gradients, strict=True) if gradient is not None}


def _call_keeping_buffers(module: Any, arguments: Sequence[Any]) -> Any:
    """Call a module on copies of its buffers, because batch norms change theirs."""
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    return torch.func.functional_call(module, buffers, tuple(arguments))


def _first_names(with_loss: Any) -> dict[str, str]:
    """Return the first name of the parameter that each name stands for, by the name; a tied parameter has several
    names."""
    first = {id(parameter): name for name, parameter in with_loss.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in with_loss.named_parameters(remove_duplicate=False)}


def _trace_joint_program(
    with_loss: Any, arguments: tuple[Any, ...], needed_parameters: set[str], name: str
) -> tuple[Any, list[tuple[int, int]]]:
    """Trace the module with its loss and return torch's joint program of forward and backward pass, and the numbers of
    its inputs that hold classes, each with the number of classes. Raises HostError if torch cannot trace it, and what
    torch raises."""
    from torch.export.experimental import _export_forward_backward  # pyright: ignore[reportPrivateUsage]

    # The other kernels have backward passes of their own.
    plain: Any = sdpa_kernel(SDPBackend.MATH)  # pyright: ignore[reportUnknownVariableType]
    with plain, torch.enable_grad():
        program, asserted = trace_module(with_loss, Arguments(arguments), name, gradients=True)
        first = _first_names(with_loss)
        parameters = program.graph_signature.inputs_to_parameters
        for node in program.graph.nodes:  # torch traces no gradients that there are not
            if node.op == "placeholder":
                parameter = parameters.get(node.name)
            else:
                parameter = None
            if parameter is not None and (first[parameter] not in needed_parameters or not node.users):
                node.meta["val"].requires_grad_(False)
        with silence_loggers():
            joint: Any = _export_forward_backward(program)
            with torch.no_grad():
                core_program = decompose(joint, ASSERTED if asserted else ())
    if not any(map(_tests_nan, program.graph.nodes)):
        _drop_tests_for_nan(core_program.graph)
    return core_program, _one_hot_inputs(program)


_KEEP_ELEMENTS: Final = frozenset({
    "flatten", "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "to", "_to_copy", "contiguous",
    "clone",
})  # fmt: skip
"""Operators whose result holds all elements of their first argument."""


def _one_hot_inputs(program: Any) -> list[tuple[int, int]]:
    """Return numbers of inputs that torch takes for classes of one-hot rows, and how many classes there are. Of the
    rows the joint program has only comparisons, which refuse no class."""
    places = {name: place for place, name in enumerate(program.graph_signature.user_inputs)}
    counts: list[tuple[int, int]] = []
    for node in program.graph.nodes:
        if str(node.target) != "aten.one_hot.default":
            continue
        classes = node.args[0]
        while str(classes.target).partition(".")[2].partition(".")[0] in _KEEP_ELEMENTS:
            classes = classes.args[0]
        count = node.args[1] if len(node.args) > 1 else -1
        if classes.name in places and count > 0:
            counts.append((places[classes.name], count))
    return counts


def _drop_tests_for_nan(graph: Any) -> None:
    """Remove the tests by which torch's own losses and backward passes propagate NaN, for a module without such tests:
    a loss of NaN is lost either way."""
    for node in list(graph.nodes):
        word = str(node.target)
        if word == "aten.where.self" and _tests_nan(node.args[0]):
            value = node.args[2]
        elif word == "aten.logical_or.default" and any(map(_tests_nan, node.args)):
            value = node.args[_tests_nan(node.args[0])]
        else:
            continue
        if value.meta["val"].shape == node.meta["val"].shape:
            node.replace_all_uses_with(value)
    graph.eliminate_dead_code()


def _tests_nan(node: Any) -> bool:
    """Return whether a node only says where other values are NaN."""
    word = str(node.target)
    return word == "aten.isnan.default" or (word == "aten.logical_and.default" and all(map(_tests_nan, node.args)))


def _example_target(module: Any, inputs: Sequence[Any], loss: str | Loss) -> Any:
    """Return a target of zeros with the shape that the loss takes for the module's output. Raises HostError for several
    outputs, a loss that is a function, and inputs on which the module fails."""
    refuse_inputs(module, Arguments(inputs), type(module).__name__)
    with torch.no_grad():
        output = _call_keeping_buffers(module, inputs)
    if not isinstance(output, torch.Tensor) or not isinstance(loss, str):
        raise HostError("compile: give target=, an example: the module has several outputs, or the loss is a function")
    if loss == "cross_entropy":
        return torch.zeros((output.shape[0], *output.shape[2:]) if output.dim() > 1 else (), dtype=torch.int64)
    return torch.zeros_like(output)


def _input_and_target_labels(module: Any, count: int, several: int) -> list[str]:
    """Return the names of `count` inputs, those of the module's parameters if it has as many, and of the targets, of
    which there are `several`, or 0 if there is a single one."""
    names = [
        parameter.name
        for parameter in inspect.signature(module.forward).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(names) >= count:
        names = names[:count]
    else:
        names = [f"input_{number}" for number in range(count)]
    if several:
        return [*names, *(f"{TARGET}_{number}" for number in range(several))]
    return [*names, TARGET]


class _JointReader(Reader):
    """An importer that reads parameters with a gradient, and buffers that change, as states, and adds gradients to
    states."""

    def __init__(self, program: Any, name: str, labels: Sequence[str], first: Mapping[str, str]) -> None:
        super().__init__(program, name)
        self._first = first
        signature = program.graph_signature
        self._labels = dict(zip(signature.user_inputs, labels, strict=True))
        self._gradients: dict[str, str] = signature.backward_signature.gradients_to_parameters
        self._mutated_buffers: dict[str, str] = signature.buffers_to_mutate
        self._loss: str = signature.backward_signature.loss_output

    def _placeholder(self, node: Any, names: dict[str, str], tensors: dict[str, Any]) -> Node | Complex | None:
        """Add a placeholder: a state for a parameter with a gradient or a buffer that changes, an input for a value
        that is no parameter, or else a constant."""
        name = names.get(node.name)
        if name is None:
            example = node.meta["val"]
            return self._b.input(self._labels[node.name], tuple(map(int, example.shape)), dtype_name(example.dtype))
        if name in self._gradients.values() or name in self._mutated_buffers.values():
            return self._b.state(self._module_name(name), array_of(tensors[name]))
        return super()._placeholder(node, names, tensors)

    def _outputs(self, node: Any, signature: Any) -> None:
        """Declare the loss and new values of buffers as outputs of the forward program, and gradients as outputs of the
        backward one that add to states. Raises HostError if the loss depends on no parameter."""
        del signature
        forward: list[Output] = []
        backward: list[Output] = []
        for node_of_output in node.args[0]:
            if node_of_output is None:
                continue
            value = self._values[node_of_output]
            if not isinstance(value, Node):
                continue
            if node_of_output.name == self._loss:
                forward.append(Output(LOSS, value.name, value.dtype))
            elif node_of_output.name in self._mutated_buffers:
                label = self._module_name(self._mutated_buffers[node_of_output.name])
                forward.append(Output(label=label, value=value.name, dtype=value.dtype, program=FORWARD, state=label))
            elif node_of_output.name in self._gradients:
                label = GRADIENT + self._module_name(self._gradients[node_of_output.name])
                backward.append(
                    Output(
                        label=label, value=value.name, dtype=value.dtype, program=BACKWARD, state=label, accumulate=True
                    )
                )
        if not backward and not self._refused:
            raise HostError(f"compile: {self._graph.name} has no parameter that the loss depends on")
        self._graph.outputs += [*forward, *backward]

    def _module_name(self, name: str) -> str:
        """Return the name that a parameter or buffer has in the module, its first one if it is tied, from that in the
        module with its loss."""
        return self._first.get(name, name).removeprefix("model.")


def training_graph(module: Any, inputs: Any, target: Any, choices: Choices) -> Graph:
    """Build the graph of all three programs: forward, backward and optimizer. Raises HostError without example inputs,
    for a module that torch cannot trace or that has no parameter to train, UnsupportedError for operators that are not
    supported."""
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
