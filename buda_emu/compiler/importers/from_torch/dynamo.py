"""`torch.compile(model, backend="buda")`: what torch._dynamo hands over is compiled and run in precision `ideal`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from buda_emu.compiler.compile import compile as compile_model


def buda(module: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend of torch.compile: the graph module as a function of its inputs. `options` are those of `compile`, and
    `precision` of the run."""
    given = dict(options.get("options") or {})
    precision = given.pop("precision", "ideal")
    tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
    with torch.no_grad():
        compiled = compile_model(module.eval(), [item.detach() for item in tensors], **given)

    def run(*arguments: Any) -> tuple[Any, ...]:
        arrays = [item.detach() for item in arguments if isinstance(item, torch.Tensor)]
        return tuple(torch.from_numpy(np.ascontiguousarray(item)) for item in compiled(*arrays, precision=precision))

    return run
