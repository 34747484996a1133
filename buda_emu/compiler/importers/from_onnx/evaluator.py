"""One operator by itself, by onnx's own evaluator."""

import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from onnx import helper

from buda_emu.compiler.graph.graph import Array, Shape
from buda_emu.compiler.importers.refusal import NotSupportedError
from buda_emu.device.host_memory import default_memory_limit, mapped_memory

NEEDS: Final = {"ImageDecoder": ("PIL", "Pillow")}
"""Operators for which the evaluator imports a package: the module, and what pip calls it."""
MOST_ROUNDS: Final = 100_000
"""Of an ONNX `Loop` that the host runs, and of those within it; a model that needs more, or never ends it, is
stopped."""
MOST_SECONDS: Final = 600.0
"""Of all rounds of such a loop."""


def evaluated(node: Any, values: Mapping[str, Array], model: Any) -> list[Array]:
    """The results of one operator of a model. Raises what the evaluator raises."""
    given = {name: (value.shape, value.dtype.name) for name, value in values.items()}
    return computes(alone(node, given, model))(*values.values())


def alone(node: Any, given: Mapping[str, tuple[Shape, str]], model: Any) -> Any:
    """An onnx.ModelProto of one operator of a model, whose inputs are the operands, of those shapes and types."""
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for name, (shape, dtype) in given.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "constant", types, results)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def computes(model: Any) -> Callable[..., list[Array]]:
    """A function of the operands of the one operator of a model. Raises NotSupportedError for an operator that the
    evaluator does not know, or knows wrongly, or not without a package that is not installed."""
    (node,) = model.graph.node
    module, package = NEEDS.get(node.op_type, ("", ""))
    if module and find_spec(module) is None:
        raise NotSupportedError(f"on the host it needs the package {package}: pip install {package}")
    if node.op_type == "Scan" and next((item.version for item in model.opset_import if not item.domain), 1) < 9:
        raise NotSupportedError("as it was before opset 9 onnx's evaluator does not compute it: convert the model")
    from onnx.reference import ReferenceEvaluator  # most models have nothing for it

    try:
        made = ReferenceEvaluator(model, new_ops=[_bounded_loop()])
    except Exception as error:  # noqa: BLE001 - it says in several ways that it lacks an operator
        raise NotSupportedError(f"onnx's evaluator: {error}") from None
    inputs = {item.name: helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type) for item in model.graph.input}

    def run(*arrays: Array) -> list[Array]:
        values = {name: array.astype(kind) for (name, kind), array in zip(inputs.items(), arrays, strict=True)}
        try:
            with np.errstate(all="ignore"), _bounded():
                return [np.asarray(array) for array in made.run(None, values)]
        except MemoryError:
            raise
        except Exception as error:  # it raises many kinds
            raise NotSupportedError(f"onnx's evaluator: {error}") from error

    return run


class _Bounds:
    """What is left to a loop of a model; `depth` of loops that are being run."""

    depth, rounds, end = 0, 0, 0.0


@contextmanager
def _bounded() -> Generator[None]:
    """A model takes no more memory than a machine of ours may (`default_memory_limit`), on Linux: numpy raises
    MemoryError."""
    _Bounds.depth = 0
    if sys.platform != "linux" or not (mapped := mapped_memory()):
        yield
        return
    import resource  # there is none on Windows

    low, high = resource.getrlimit(resource.RLIMIT_AS)
    most = mapped + default_memory_limit()
    resource.setrlimit(resource.RLIMIT_AS, (most if low == resource.RLIM_INFINITY else min(low, most), high))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (low, high))


@cache
def _bounded_loop() -> type[Any]:
    """The evaluator's `Loop`, which ends in an error where a model never ends it."""
    from onnx.reference.ops import op_loop

    class Loop(op_loop.Loop):
        op_domain = ""

        def __init__(self, onnx_node: Any, run_params: Any) -> None:
            super().__init__(onnx_node, run_params)
            body: Callable[..., Any] = self._run_body

            def counted(*values: Any, **named: Any) -> Any:
                _Bounds.rounds += 1
                if _Bounds.rounds > MOST_ROUNDS:
                    raise RuntimeError(f"more than {MOST_ROUNDS:,} rounds of one loop")
                if time.monotonic() > _Bounds.end:
                    raise RuntimeError(f"more than {MOST_SECONDS:g} seconds of one loop")
                return body(*values, **named)

            self._run_body = counted

        def _run(self, *values: Any, **named: Any) -> Any:
            if not _Bounds.depth:
                _Bounds.rounds, _Bounds.end = 0, time.monotonic() + MOST_SECONDS
            _Bounds.depth += 1
            try:
                return super()._run(*values, **named)
            finally:
                _Bounds.depth -= 1

    return Loop
