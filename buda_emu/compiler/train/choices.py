"""The options of a training besides the module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from buda_emu.compiler.train.optimizers import Numbers, Optimizer, optimizer_named
from buda_emu.errors import HostError

Schedule = Callable[[int], float]
"""The learning rate of a step, counted from 0."""
LOSSES = ("mse", "cross_entropy")
BACKWARD, OPTIMIZE = "bwd_0", "opt_0"
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
