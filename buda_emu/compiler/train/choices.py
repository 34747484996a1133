"""The options of a training besides the module."""

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
    """`options`: with their defaults, torch's; `kept`: names of the tensors that it keeps of each parameter.

    `numbers(learning rate, step from 1, options)`: what the host pushes before a step, by name. `update(builder,
    parameter, gradient, kept, numbers, options)`: the parameter and what is kept afterwards.
    """

    name: str
    doc: str
    options: Numbers
    kept: Callable[[Numbers], tuple[str, ...]]
    numbers: Callable[[float, int, Numbers], dict[str, float]]
    update: Callable[[Builder, Node, Node, Nodes, Nodes, Numbers], tuple[Node, dict[str, Node]]]


def _decayed(b: Builder, p: Node, g: Node, decay: float) -> Node:
    return b.add(g, b.multiply(p, decay)) if decay else g


def _sgd(b: Builder, p: Node, g: Node, kept: Nodes, numbers: Nodes, options: Numbers) -> tuple[Node, dict[str, Node]]:
    g = _decayed(b, p, g, options["weight_decay"])
    made: dict[str, Node] = {}
    if "momentum" in kept:
        g = b.add(b.multiply(kept["momentum"], options["momentum"]), g)
        made["momentum"] = g
    return b.subtract(p, b.multiply(g, numbers["learning_rate"])), made


def _moved(b: Builder, old: Node, new: Node, share: float) -> Node:
    """old + share (new - old): a mean that forgets; small shares survive formats of few bits better than 1 - share."""
    return b.add(old, b.multiply(b.subtract(new, old), share))


def _adam(b: Builder, p: Node, g: Node, kept: Nodes, numbers: Nodes, options: Numbers) -> tuple[Node, dict[str, Node]]:
    if "decay" not in numbers:
        g = _decayed(b, p, g, options["weight_decay"])
    mean = _moved(b, kept["mean"], g, 1 - options["beta1"])
    variance = _moved(b, kept["variance"], b.square(g), 1 - options["beta2"])
    size = b.add(b.multiply(b.sqrt(variance), numbers["correction"]), options["eps"])
    step = b.multiply(b.multiply(mean, b.reciprocal(size)), numbers["step_size"])
    start = b.subtract(p, b.multiply(p, numbers["decay"])) if "decay" in numbers else p
    return b.subtract(start, step), {"mean": mean, "variance": variance}


def _rate(rate: float, step: int, options: Numbers) -> dict[str, float]:
    del step, options
    return {"learning_rate": rate}


def _adam_numbers(rate: float, step: int, options: Numbers) -> dict[str, float]:
    """The corrections of the first steps' bias: powers of 0.999 would be 1 in formats of 8 bits."""
    return {"step_size": rate / (1 - options["beta1"] ** step), "correction": (1 - options["beta2"] ** step) ** -0.5}


def _adamw_numbers(rate: float, step: int, options: Numbers) -> dict[str, float]:
    return {**_adam_numbers(rate, step, options), "decay": rate * options["weight_decay"]}


def _momentum(options: Numbers) -> tuple[str, ...]:
    return ("momentum",) if options["momentum"] else ()


def _moments(options: Numbers) -> tuple[str, ...]:
    del options
    return "mean", "variance"


_ADAM: Final = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
_ALL: Final = (
    Optimizer(
        name="sgd",
        doc="p - lr g; with momentum u = momentum u + g and p - lr u; g + weight_decay p first",
        options={"momentum": 0.0, "weight_decay": 0.0},
        kept=_momentum,
        numbers=_rate,
        update=_sgd,
    ),
    Optimizer(
        name="adam",
        doc="p - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps), m and v means of g and g^2; "
        "g + weight_decay p first",
        options={**_ADAM, "weight_decay": 0.0},
        kept=_moments,
        numbers=_adam_numbers,
        update=_adam,
    ),
    Optimizer(
        name="adamw",
        doc="as adam, but p - lr weight_decay p first",
        options={**_ADAM, "weight_decay": 0.01},
        kept=_moments,
        numbers=_adamw_numbers,
        update=_adam,
    ),
)
OPTIMIZERS: Final[Mapping[str, Optimizer]] = {item.name: item for item in _ALL}


def optimizer_named(name: str, options: Mapping[str, float] | None) -> tuple[Optimizer, Numbers]:
    """With its options, defaults filled in. Raises HostError for a name that is not known."""
    found = OPTIMIZERS.get(name)
    if found is None:
        raise HostError(f"compile: optimizer {name!r} is not one of: {', '.join(OPTIMIZERS)}")
    unknown = [key for key in options or {} if key not in found.options]
    if unknown:
        raise HostError(f"compile: {name} has no option {', '.join(unknown)}; it has {', '.join(found.options)}")
    return found, {**found.options, **(options or {})}


Schedule = Callable[[int], float]
"""The learning rate of a step, counted from 0."""
LOSSES = ("mse", "cross_entropy")
BACKWARD = "bwd_0"
OPTIMIZE = "opt_0"
GRADIENT = "grad_acc_"
"""In front of a parameter's name: the sum of its gradients (FRONTEND 5)."""
MASTER = ".master"
"""After a parameter's name: the copy of it that the optimizer changes, where that is kept in another format."""
NUMBER = "optimizer."
"""In front of the names of the numbers that the host pushes before a step."""


@dataclass(frozen=True, slots=True)
class Choices:
    """`options` of the optimizer, complete; `loss`: one of LOSSES or a function of output and target;
    `df` of what the optimizer keeps, "" the model's; `targets` of the loss, where it takes a tuple of them, else 0."""

    loss: Any
    optimizer: Optimizer
    options: Numbers
    learning_rate: float | Schedule
    microbatches: int
    df: str = ""
    targets: int = 0

    @staticmethod
    def named(
        loss: Any,
        optimizer: str,
        options: Mapping[str, float] | None,
        learning_rate: Any,
        microbatches: int,
        df: str = "",
        target: Any = None,
    ) -> "Choices":
        """From words and numbers, and an example of the target. Raises HostError for one that makes no sense."""
        if not callable(loss) and loss not in LOSSES:
            raise HostError(f"compile: loss {loss!r} is not one of: {', '.join(LOSSES)}, and no function")
        rate: float | Schedule = learning_rate
        if not callable(learning_rate) and not isinstance(learning_rate, (int, float)):
            raise HostError(f"compile: learning_rate {learning_rate!r} is neither a number nor a function of the step")
        if type(microbatches) is not int or microbatches < 1:
            raise HostError(f"compile: microbatches={microbatches!r}, which is not an integer from 1 on")
        found = optimizer_named(optimizer, options)
        several = type(target) in (tuple, list) and any(np.ndim(item) for item in target)
        return Choices(loss, *found, rate, microbatches, df, len(target) if several else 0)


def sums_df(arch: str, df: str) -> str:
    """What a training sums in unless it is told: Float32 where the chip can beside the format (no Grayskull, V090; 8
    bits of exponent), else what a model does. Gradients are long sums of numbers that nearly cancel."""
    return "Float32" if arch != "grayskull" and df in ("Float32", "Float16_b", "Bfp8_b") else ""
