"""onnx's own evaluator: the value of one operator, within limits of time and memory, and where it is known to be
wrong."""

import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import defs, helper

from buda_emu.compiler.graph.graph import Array, Shape
from buda_emu.compiler.importers.from_onnx.standard import static_dims
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.emulator.memory.host import default_memory_limit, mapped_memory

NEEDS: Final = {"ImageDecoder": ("PIL", "Pillow")}
"""Packages that the evaluator imports for an operator: the module, and its name for pip."""
_MODES: Final = {b"bilinear": b"linear", b"bicubic": b"cubic"}
"""Names of GridSample's modes before opset 20, and since, which are the only ones that the evaluator knows."""
MOST_ROUNDS: Final = 100_000
"""Limit for the rounds of an ONNX `Loop` that the host runs, nested loops included."""
MOST_SECONDS: Final = 600.0
"""Limit in seconds for all rounds of such a loop, as MOST_ROUNDS does not bound the time of a single round."""


def evaluate_node(node: Any, values: Mapping[str, Array], model: Any) -> list[Array]:
    """Compute the results of one operator of a model by onnx's evaluator. Raise NotSupportedError for an operator that
    the evaluator does not know, computes wrongly or refuses for these values, MemoryError beyond the limit for
    memory."""
    signature = {name: (value.shape, value.dtype.name) for name, value in values.items()}
    return make_evaluator(make_node_model(node, signature, model))(*values.values())


def make_node_model(node: Any, operands: Mapping[str, tuple[Shape, str]], model: Any) -> Any:
    """Return an onnx.ModelProto with a single operator of a model, whose inputs are the operands with their shapes and
    types."""
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for name, (shape, dtype) in operands.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "constant", types, results)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def make_evaluator(model: Any) -> Callable[..., list[Array]]:
    """Return a function that computes the single operator of a model from its operands. Raise NotSupportedError for an
    operator that the evaluator does not know, computes wrongly, or cannot compute without a package that is not
    installed."""
    (node,) = model.graph.node
    module, package = NEEDS.get(node.op_type, ("", ""))
    if module and find_spec(module) is None:
        raise NotSupportedError(f"on the host it needs the package {package}: pip install {package}")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    version = next((entry.version for entry in model.opset_import if not entry.domain), 1)
    for operator in _all_operators(copy.graph):
        if fault := _find_known_fault(operator, version, copy.graph.input):
            raise NotSupportedError(fault)
        _rename_modes(operator, version)
    from onnx.reference import ReferenceEvaluator  # most models have nothing for it

    try:
        evaluator = ReferenceEvaluator(copy, new_ops=[_make_bounded_loop()])
    except Exception as error:  # noqa: BLE001 - it says in several ways that it lacks an operator
        if not defs.has(node.op_type, node.domain):
            raise NotSupportedError(_without_definition(node)) from None
        raise NotSupportedError(f"onnx's evaluator: {error}") from None
    inputs = {
        entry.name: helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type) for entry in model.graph.input
    }

    def run(*arrays: Array) -> list[Array]:
        """Compute the results from arrays, which are converted to the types of the inputs. Raises NotSupportedError if
        onnx's evaluator fails, and MemoryError beyond its limit."""
        values = {name: array.astype(kind) for (name, kind), array in zip(inputs.items(), arrays, strict=True)}
        try:
            with np.errstate(all="ignore"), _limit_memory():
                return [np.asarray(array) for array in evaluator.run(None, values)]
        except MemoryError:
            raise
        except Exception as error:  # it raises many kinds
            raise NotSupportedError(f"onnx's evaluator: {error}") from error

    return run


def _without_definition(node: onnx.NodeProto) -> str:
    """Return why an operator that the ONNX standard does not define is refused, and what to do about one that
    onnxruntime writes into models that it quantises."""
    reason = "ONNX has no such operator"
    if node.domain == "com.microsoft" and node.op_type.startswith(("Q", "DynamicQuantize", "MatMulInteger")):
        reason += "; quantise in QDQ form instead: quantize_static(..., quant_format=QuantFormat.QDQ) of onnxruntime"
    return reason


class _LoopBudget:
    """The remaining budget of a loop of a model; `depth` counts the nested loops that are running."""

    depth = 0
    rounds = 0
    end = 0.0


@contextmanager
def _limit_memory() -> Generator[None]:
    """Limit the memory of the process within the block (`default_memory_limit`): numpy then raises MemoryError beyond
    it. This works on Linux only."""
    _LoopBudget.depth = 0
    if sys.platform != "linux" or not (mapped := mapped_memory()):
        yield
        return
    import resource  # there is none on Windows

    low, high = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + default_memory_limit()
    resource.setrlimit(resource.RLIMIT_AS, (limit if low == resource.RLIM_INFINITY else min(low, limit), high))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (low, high))


@cache
def _make_bounded_loop() -> type[Any]:
    """Return a subclass of the evaluator's `Loop` that raises RuntimeError beyond a limit of rounds or of time."""
    from onnx.reference.ops import op_loop

    class Loop(op_loop.Loop):
        op_domain = ""

        def __init__(self, onnx_node: Any, run_params: Any) -> None:
            super().__init__(onnx_node, run_params)
            body: Callable[..., Any] = self._run_body

            def run_round(*values: Any, **named: Any) -> Any:
                """Run one round of the loop. Raises RuntimeError beyond the limit of rounds or of time."""
                _LoopBudget.rounds += 1
                if _LoopBudget.rounds > MOST_ROUNDS:
                    raise RuntimeError(f"more than {MOST_ROUNDS:,} rounds of one loop")
                if time.monotonic() > _LoopBudget.end:
                    raise RuntimeError(f"more than {MOST_SECONDS:g} seconds of one loop")
                return body(*values, **named)

            self._run_body = run_round

        def _run(self, *values: Any, **named: Any) -> Any:
            """Run the loop; the outermost loop starts the budget that nested loops share."""
            if not _LoopBudget.depth:
                _LoopBudget.rounds = 0
                _LoopBudget.end = time.monotonic() + MOST_SECONDS
            _LoopBudget.depth += 1
            try:
                return super()._run(*values, **named)
            finally:
                _LoopBudget.depth -= 1

    return Loop


def find_shape_fault(node: Any, arrays: Sequence[Array], foreseen: Mapping[str, Shape]) -> str:
    """Return how the results of onnx's evaluator, `arrays`, differ in shape from those that the standard infers
    (`foreseen`), or ""."""
    for name, array in zip((name for name in node.output if name), arrays, strict=True):
        if foreseen.get(name, array.shape) != array.shape:
            return f"onnx's evaluator gives shape {list(array.shape)}, not {list(foreseen[name])}"
    return ""


def _all_operators(graph: Any) -> Iterator[Any]:
    """Yield the operators of a graph, those of branches and loops included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _all_operators(inner)


def _attribute_value(node: Any, name: str, default: Any) -> Any:
    """Return the value of an attribute of a node, text as bytes; the default where the node leaves it out."""
    return next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == name), default)


def _has_sparse_value(node: Any, _: Sequence[Any]) -> bool:
    """Return whether a Constant holds a sparse tensor."""
    return _attribute_value(node, "sparse_value", None) is not None


def _is_cubic_within_border(node: Any, _: Sequence[Any]) -> bool:
    """Return whether a GridSample is by cubics and repeats the border."""
    is_cubic = _attribute_value(node, "mode", b"") in (b"cubic", b"bicubic")
    return is_cubic and _attribute_value(node, "padding_mode", b"") == b"border"


def _has_dimensions_behind_axis(node: Any, inputs: Sequence[Any]) -> bool:
    """Return whether the operand of a softmax has, or may have, more than one element behind the axis."""
    axis = _attribute_value(node, "axis", 1)
    shapes = {value.name: static_dims(value.type) for value in inputs}
    shape = shapes.get(node.input[0])
    if shape is None or not -len(shape) <= axis < len(shape):
        return True
    return prod(shape[axis:]) != shape[axis]


class _Fault(NamedTuple):
    """A known fault of the evaluator: the operators that have it, the text for it, the version of the standard before
    which they have it (any where None), and the nodes to which it applies (all where None), given the inputs of the
    model."""

    operators: tuple[str, ...]
    text: str
    before: int | None = None
    applies: Callable[[Any, Sequence[Any]], bool] | None = None


_FAULTS: Final = (
    _Fault(("Constant",), "a sparse tensor", applies=_has_sparse_value),
    _Fault(("Scan",), "as it was before opset 9 onnx's evaluator does not compute it: convert the model", before=9),
    _Fault(
        ("BatchNormalization",),
        "before opset 14 onnx's evaluator takes statistics of the operand instead of the given ones",
        before=14,
    ),
    _Fault(
        ("GridSample",),
        "by cubics, with the border as padding, onnx's evaluator bounds the places instead of the elements",
        applies=_is_cubic_within_border,
    ),
    _Fault(
        ("Softmax", "LogSoftmax", "Hardmax"),
        "before opset 13 it is of all dimensions from the axis on, for onnx's evaluator of one",
        before=13,
        applies=_has_dimensions_behind_axis,
    ),
)


def _find_known_fault(node: Any, version: int, inputs: Sequence[Any]) -> str:
    """Return how the evaluator is wrong for an operator of this version of the standard, or ""; `inputs` are those of
    its model, with their shapes."""
    if node.domain not in ("", "ai.onnx"):
        return ""
    for fault in _FAULTS:
        if node.op_type not in fault.operators or (fault.before is not None and version >= fault.before):
            continue
        if fault.applies is None or fault.applies(node, inputs):
            return fault.text
    return ""


def _rename_modes(node: Any, version: int) -> None:
    """Give a GridSample of before opset 20, in place, the name of its mode that the evaluator knows; leave any other
    node alone."""
    if node.op_type != "GridSample" or node.domain not in ("", "ai.onnx") or version >= 20:
        return
    mode = _attribute_value(node, "mode", b"bilinear")
    others = [entry for entry in node.attribute if entry.name != "mode"]
    del node.attribute[:]
    node.attribute.extend([*others, helper.make_attribute("mode", _MODES.get(mode, mode))])
