"""The joint graph of a module and its loss: torch's ahead-of-time autograd writes the backward pass, and the importer
reads both as one graph of two programs."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from buda_emu.compiler.graph.graph import FORWARD, Graph, Node, Output
from buda_emu.compiler.importers.attention import Complex
from buda_emu.compiler.importers.from_torch.reader import ASSERTED, Reader, decomposed, dtype_name, refuse_changes
from buda_emu.compiler.importers.from_torch.trace import apart, array_of, traced, unlogged
from buda_emu.compiler.train.choices import BACKWARD, GRADIENT, Choices
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

LOSS = "loss"
TARGET = "target"
Loss = Callable[[Any, Any], Any]
_LOSSES: Final[Mapping[str, Loss]] = {"mse": functional.mse_loss, "cross_entropy": functional.cross_entropy}


class _WithLoss(torch.nn.Module):
    """The module's outputs compared with a target, or several, over a number of microbatches."""

    def __init__(self, model: Any, loss: Loss, share: float, several: int) -> None:
        super().__init__()
        self.model = model
        self._loss = loss
        self._share = share
        self._several = several

    def forward(self, *inputs: Any) -> Any:
        count = len(inputs) - (self._several or 1)
        found = self._loss(self.model(*inputs[:count]), inputs[count:] if self._several else inputs[-1])
        return found if self._share == 1 else found * self._share


def joint_graph(module: Any, inputs: Sequence[Any], target: Any, choices: Choices) -> Graph:
    """Forward and backward pass: the loss, and a gradient for each parameter that wants one. Raises HostError,
    UnsupportedError."""
    if not isinstance(module, torch.nn.Module):
        raise HostError(f"compile: {type(module).__name__} is not a torch.nn.Module, and only those are trained")
    refuse_masked_arrays(inputs, "compile: example inputs")
    refuse_masked_arrays(target, "compile: target")
    loss = choices.loss
    function = _LOSSES[loss] if isinstance(loss, str) else loss
    name = type(module).__name__
    tensors = list(apart(inputs))
    if target is None:
        target = _target(module, tensors, loss)
    several = choices.targets
    whole = _WithLoss(module, function, 1 / choices.microbatches, several)
    arguments = (*tensors, *apart(target if several else (target,)))
    try:
        program = _joint(whole, arguments, _reached(whole, arguments), name)
    except HostError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever keeps torch from tracing
        reason = str(error).strip().splitlines()
        raise HostError(
            f"compile: torch cannot trace the training of {name}: {reason[0] if reason else error!r}"
        ) from None
    refuse_changes(program.graph_signature, name, keeps_buffers=True)
    return _JointReader(program, name, _labels(module, len(tensors), several), _first_names(whole)).read()


def _reached(whole: Any, arguments: tuple[Any, ...]) -> set[str]:
    """Names of the parameters that the loss depends on; torch's own optimizers leave the others alone."""
    with torch.enable_grad():
        loss = _once(whole, arguments)
        wanted = {name: item for name, item in whole.named_parameters() if item.requires_grad}
        found: Any = torch.autograd.grad(loss, tuple(wanted.values()), allow_unused=True) if wanted else ()
    return {name for name, gradient in zip(wanted, found, strict=True) if gradient is not None}


def _once(module: Any, arguments: Sequence[Any]) -> Any:
    """What a module gives, its buffers left as they are: batch norms count what they see."""
    buffers = {name: item.clone() for name, item in module.named_buffers()}
    return torch.func.functional_call(module, buffers, tuple(arguments))


def _first_names(whole: Any) -> dict[str, str]:
    """The first name of each parameter, by all of its names: a tied one has several."""
    first = {id(item): name for name, item in whole.named_parameters()}
    return {name: first[id(item)] for name, item in whole.named_parameters(remove_duplicate=False)}


def _joint(whole: Any, arguments: tuple[Any, ...], reached: set[str], name: str) -> Any:
    from torch.export.experimental import _export_forward_backward  # pyright: ignore[reportPrivateUsage]

    # The other kernels have backward passes of their own.
    plain: Any = sdpa_kernel(SDPBackend.MATH)  # pyright: ignore[reportUnknownVariableType]
    with plain, torch.enable_grad():
        program, asserted = traced(whole, arguments, name, gradients=True)
        first = _first_names(whole)
        parameters = program.graph_signature.inputs_to_parameters
        for node in program.graph.nodes:  # torch traces no gradients that there are not
            own = parameters.get(node.name) if node.op == "placeholder" else None
            if own is not None and (first[own] not in reached or not node.users):
                node.meta["val"].requires_grad_(False)
        with unlogged():
            joint: Any = _export_forward_backward(program)
            with torch.no_grad():
                found = decomposed(joint, ASSERTED if asserted else ())
    if not any(map(_tests_nan, program.graph.nodes)):
        _drop_tests_for_nan(found.graph)
    return found


def _drop_tests_for_nan(graph: Any) -> None:
    """Without the tests by which torch's own losses and backward passes hand NaN on, where the module has none: a loss
    of NaN is lost either way."""
    for node in list(graph.nodes):
        word = str(node.target)
        if word == "aten.where.self" and _tests_nan(node.args[0]):
            kept = node.args[2]
        elif word == "aten.logical_or.default" and any(map(_tests_nan, node.args)):
            kept = node.args[_tests_nan(node.args[0])]
        else:
            continue
        if kept.meta["val"].shape == node.meta["val"].shape:
            node.replace_all_uses_with(kept)
    graph.eliminate_dead_code()


def _tests_nan(node: Any) -> bool:
    """Whether all that it gives is where something is NaN."""
    word = str(node.target)
    return word == "aten.isnan.default" or (word == "aten.logical_and.default" and all(map(_tests_nan, node.args)))


def _target(module: Any, inputs: Sequence[Any], loss: str | Loss) -> Any:
    """One of the shape that the loss wants, made from the module's output."""
    with torch.no_grad():
        found = _once(module, inputs)
    if not isinstance(found, torch.Tensor) or not isinstance(loss, str):
        raise HostError("compile: give target=, an example: the module has several outputs, or the loss is a function")
    if loss == "cross_entropy":
        return torch.zeros((found.shape[0], *found.shape[2:]) if found.dim() > 1 else (), dtype=torch.int64)
    return torch.zeros_like(found)


def _labels(module: Any, count: int, several: int) -> list[str]:
    """Names of inputs and targets."""
    names = [
        item.name
        for item in inspect.signature(module.forward).parameters.values()
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]
    names = names[:count] if len(names) >= count else [f"input_{number}" for number in range(count)]
    return [*names, *(f"{TARGET}_{number}" for number in range(several))] if several else [*names, TARGET]


class _JointReader(Reader):
    """Parameters that have a gradient, and buffers that change, are states; gradients are added to states."""

    def __init__(self, program: Any, name: str, labels: Sequence[str], first: Mapping[str, str]) -> None:
        super().__init__(program, name)
        self._first = first
        signature = program.graph_signature
        self._labels = dict(zip(signature.user_inputs, labels, strict=True))
        self._gradients: dict[str, str] = signature.backward_signature.gradients_to_parameters
        self._kept: dict[str, str] = signature.buffers_to_mutate
        self._loss: str = signature.backward_signature.loss_output

    def _placeholder(self, node: Any, names: dict[str, str], held: dict[str, Any]) -> Node | Complex:
        name = names.get(node.name)
        if name is None:
            found = node.meta["val"]
            return self._b.input(self._labels[node.name], tuple(map(int, found.shape)), dtype_name(found.dtype))
        if name in self._gradients.values() or name in self._kept.values():
            return self._b.state(self._own(name), array_of(held[name]))
        return super()._placeholder(node, names, held)

    def _outputs(self, node: Any, signature: Any) -> None:
        del signature
        forward: list[Output] = []
        backward: list[Output] = []
        for item in node.args[0]:
            if item is None:
                continue
            value = self._values[item]
            if not isinstance(value, Node):
                continue
            if item.name == self._loss:
                forward.append(Output(LOSS, value.name, value.dtype))
            elif item.name in self._kept:
                label = self._own(self._kept[item.name])
                forward.append(Output(label=label, value=value.name, dtype=value.dtype, program=FORWARD, state=label))
            elif item.name in self._gradients:
                label = GRADIENT + self._own(self._gradients[item.name])
                backward.append(
                    Output(
                        label=label, value=value.name, dtype=value.dtype, program=BACKWARD, state=label, accumulate=True
                    )
                )
        if not backward and not self._refused:
            raise HostError(f"compile: {self._graph.name} has no parameter that the loss depends on")
        self._graph.outputs += [*forward, *backward]

    def _own(self, name: str) -> str:
        """The module's own name of a parameter or buffer, its first one."""
        return self._first.get(name, name).removeprefix("model.")
