"""The options of a training in addition to the module and those of any compilation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.support.errors import HostError

Numbers = Mapping[str, float]
Nodes = Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer as torch defines it. `options` with their defaults; `kept(options)`: names of the tensors that it
    keeps for each parameter.

    `numbers(learning rate, step from 1, options)` returns what the host pushes before a step, by name. `update(builder,
    parameter, gradient, kept, numbers, options)` returns the changed parameter and the changed tensors.
    """

    name: str
    doc: str
    options: Numbers
    kept: Callable[[Numbers], tuple[str, ...]]
    numbers: Callable[[float, int, Numbers], dict[str, float]]
    update: Callable[[Builder, Node, Node, Nodes, Nodes, Numbers], tuple[Node, dict[str, Node]]]


def _add_decay(b: Builder, p: Node, g: Node, decay: float) -> Node:
    """Return the gradient `g` of the parameter `p` plus `decay` times the parameter; g itself if there is no decay."""
    if decay:
        return b.add(g, b.multiply(p, decay))
    return g


def _make_sgd_step(
    b: Builder, p: Node, g: Node, tensors: Nodes, numbers: Nodes, options: Numbers
) -> tuple[Node, dict[str, Node]]:
    """Emit a step of stochastic gradient descent of the parameter `p` by its gradient `g`, and return the parameter and
    its momentum after it. `tensors`: the momentum before; `numbers`: what the host pushes."""
    g = _add_decay(b, p, g, options["weight_decay"])
    changed: dict[str, Node] = {}
    if "momentum" in tensors:
        g = b.add(b.multiply(tensors["momentum"], options["momentum"]), g)
        changed["momentum"] = g
    return b.subtract(p, b.multiply(g, numbers["learning_rate"])), changed


def _moving_mean(b: Builder, old: Node, new: Node, share: float) -> Node:
    """Return old + share (new - old), a mean that forgets old values. Small shares survive formats of few bits better
    than 1 - share does."""
    return b.add(old, b.multiply(b.subtract(new, old), share))


def _make_adam_step(
    b: Builder, p: Node, g: Node, tensors: Nodes, numbers: Nodes, options: Numbers
) -> tuple[Node, dict[str, Node]]:
    """Emit a step of Adam of the parameter `p` by its gradient `g`, or of AdamW if the host pushes a `decay`, and
    return the parameter and its two moments after it. `tensors`: the moments before; `numbers`: what the host
    pushes."""
    if "decay" not in numbers:
        g = _add_decay(b, p, g, options["weight_decay"])
    mean = _moving_mean(b, tensors["mean"], g, 1 - options["beta1"])
    variance = _moving_mean(b, tensors["variance"], b.square(g), 1 - options["beta2"])
    size = b.add(b.multiply(b.sqrt(variance), numbers["correction"]), options["eps"])
    step = b.multiply(b.multiply(mean, b.reciprocal(size)), numbers["step_size"])
    if "decay" in numbers:
        start = b.subtract(p, b.multiply(p, numbers["decay"]))
    else:
        start = p
    return b.subtract(start, step), {"mean": mean, "variance": variance}


def _sgd_numbers(rate: float, step: int, options: Numbers) -> dict[str, float]:
    """Return the only number of plain gradient descent, the learning rate."""
    del step, options
    return {"learning_rate": rate}


def _adam_numbers(rate: float, step: int, options: Numbers) -> dict[str, float]:
    """Return the numbers that the host pushes before a step of Adam, from 1: `step_size`, the rate divided by
    1 - beta1^step, and `correction`, (1 - beta2^step)^-0.5, which undo the bias of the first steps. The host computes
    them because powers of 0.999 would be 1 in formats of 8 bits."""
    return {"step_size": rate / (1 - options["beta1"] ** step), "correction": (1 - options["beta2"] ** step) ** -0.5}


def _adamw_numbers(rate: float, step: int, options: Numbers) -> dict[str, float]:
    """Return the numbers that the host pushes before a step of AdamW: those of Adam, and the weight decay of one
    step."""
    return {**_adam_numbers(rate, step, options), "decay": rate * options["weight_decay"]}


def _sgd_states(options: Numbers) -> tuple[str, ...]:
    """Return the names of the states beside each parameter: the momentum, if there is one."""
    if options["momentum"]:
        return ("momentum",)
    return ()


def _adam_states(options: Numbers) -> tuple[str, ...]:
    """Return the names of the states beside each parameter: both moments."""
    del options
    return "mean", "variance"


_ADAM: Final = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
_ALL: Final = (
    Optimizer(
        name="sgd",
        doc="p - lr g; with momentum u = momentum u + g and p - lr u; g + weight_decay p first",
        options={"momentum": 0.0, "weight_decay": 0.0},
        kept=_sgd_states,
        numbers=_sgd_numbers,
        update=_make_sgd_step,
    ),
    Optimizer(
        name="adam",
        doc="p - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps), m and v means of g and g^2; "
        "g + weight_decay p first",
        options={**_ADAM, "weight_decay": 0.0},
        kept=_adam_states,
        numbers=_adam_numbers,
        update=_make_adam_step,
    ),
    Optimizer(
        name="adamw",
        doc="as adam, but p - lr weight_decay p first",
        options={**_ADAM, "weight_decay": 0.01},
        kept=_adam_states,
        numbers=_adamw_numbers,
        update=_make_adam_step,
    ),
)
OPTIMIZERS: Final[Mapping[str, Optimizer]] = {item.name: item for item in _ALL}


def find_optimizer(name: str, options: Mapping[str, float] | None) -> tuple[Optimizer, Numbers]:
    """Return an optimizer and its options, with defaults for those that are missing. Raises HostError for an unknown
    name or option."""
    optimizer = OPTIMIZERS.get(name)
    if optimizer is None:
        raise HostError(f"compile: optimizer {name!r} is not one of: {', '.join(OPTIMIZERS)}")
    unknown = [key for key in options or {} if key not in optimizer.options]
    if unknown:
        raise HostError(f"compile: {name} has no option {', '.join(unknown)}; it has {', '.join(optimizer.options)}")
    return optimizer, {**optimizer.options, **(options or {})}


Schedule = Callable[[int], float]
"""The learning rate as a function of the step, counted from 0."""
LOSSES = ("mse", "cross_entropy")
BACKWARD = "bwd_0"
OPTIMIZE = "opt_0"
GRADIENT = "grad_acc_"
"""Prefix of a parameter's name in the name of the sum of its gradients (FRONTEND 5)."""
MASTER = ".master"
"""Suffix of a parameter's name in the name of the copy that the optimizer changes, if that has another format."""
NUMBER = "optimizer."
"""Prefix of the names of the numbers that the host pushes before a step."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The checked options of a training. `options` of the optimizer, complete; `loss`: one of LOSSES or a function of
    output and target; `df`: format of what the optimizer keeps, "" the model's; `targets`: length of the tuple of
    targets that the loss takes, 0 if it takes a single one."""

    loss: Any
    optimizer: Optimizer
    options: Numbers
    learning_rate: float | Schedule
    microbatches: int
    df: str = ""
    targets: int = 0

    @staticmethod
    def from_options(
        loss: Any,
        optimizer: str,
        options: Mapping[str, float] | None,
        learning_rate: Any,
        microbatches: int,
        df: str = "",
        target: Any = None,
    ) -> "Choices":
        """Check the options of a training and an example of the target. Raises HostError for an invalid one."""
        if not callable(loss) and loss not in LOSSES:
            raise HostError(f"compile: loss {loss!r} is not one of: {', '.join(LOSSES)}, and no function")
        rate: float | Schedule = learning_rate
        if not callable(learning_rate) and not isinstance(learning_rate, (int, float)):
            raise HostError(f"compile: learning_rate {learning_rate!r} is neither a number nor a function of the step")
        if type(microbatches) is not int or microbatches < 1:
            raise HostError(f"compile: microbatches={microbatches!r}, which is not an integer from 1 on")
        optimizer_and_options = find_optimizer(optimizer, options)
        several = type(target) in (tuple, list) and any(np.ndim(part) for part in target)
        return Choices(loss, *optimizer_and_options, rate, microbatches, df, len(target) if several else 0)


def sums_df(arch: str, df: str) -> str:
    """Return the default accumulation format of a training: Float32 if the chip has it beside the format (not on
    Grayskull, V090; 8 bits of exponent), else "", the model's. Gradients are long sums of numbers that nearly
    cancel."""
    if arch != "grayskull" and df in ("Float32", "Float16_b", "Bfp8_b"):
        return "Float32"
    return ""
