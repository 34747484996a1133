"""Tracing of a module by torch.export: the trace, names and open sizes of inputs, names of layers, and the values that
torch computes.

torch.export takes a buffer for data, so it refuses a Python decision on a whole number in a buffer, or a size that
hangs on one, such as the stride of a convolution. While such a module is traced, a mode computes beside the trace what
depends on those buffers alone, and answers with it where Python asks for a number. The graph stays as torch writes it:
a buffer that the module changes is still seen.
"""

import contextlib
import io
import logging
import sysconfig
import traceback
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import InputKind
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)
from torch.utils._pytree import tree_leaves, tree_map

from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.operators import OpenSizes, missing_size_text
from buda_emu.support.errors import HostError, UnsupportedError

_READS: Final = ("item", "__int__", "__bool__", "__index__", "__float__", "tolist")
"""Functions that ask a tensor for a number."""
_COMPUTED: Final = frozenset({
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "remainder", "neg",
    "abs", "ceil", "floor", "round", "trunc", "maximum", "minimum", "max", "min", "clamp", "pow", "to", "int", "long",
    "float", "bool", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "__radd__",
    "__rsub__", "__rmul__", "__rdiv__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__", "__floordiv__",
    "__mod__", "__pow__", "__truediv__",
})  # fmt: skip
"""Functions of whole numbers that are computed beside the trace."""
_SIZED: Final = frozenset({
    "pad", "view", "reshape", "expand", "repeat", "narrow", "split", "unflatten", "roll", "interpolate", "__getitem__",
    "new_zeros", "new_ones", "new_empty", "new_full", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d",
    "max_pool1d", "conv1d", "unfold",
})  # fmt: skip
"""Functions whose further arguments are sizes and places: they take the numbers."""
_CHANGES: Final = frozenset({
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__ifloordiv__", "__imod__",
    "__ipow__", "__iand__", "__ior__", "__ixor__",
})  # fmt: skip

TRACING: Final = RLock()
"""Held by the thread that traces or decomposes: torch keeps what it does so far in globals."""


class _ConstantValues(TorchFunctionMode):
    """A mode that knows the values of some traced tensors, and of all that is computed from them."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[int, tuple[Tensor, Tensor]] = {}
        """By the identity of a traced tensor the tensor, so that it lives as long, and its value."""

    def learn(self, traced: Tensor, value: Tensor) -> None:
        """Enter the value of a traced tensor."""
        self._values[id(traced)] = (traced, value)

    def _knows(self, argument: Any) -> bool:
        """Return whether an argument is a tensor whose value is known."""
        return isinstance(argument, Tensor) and id(argument) in self._values

    def _value_if_known(self, argument: Any) -> Any:
        """Return the value of a tensor if it is known, any other argument unchanged."""
        return self._values[id(argument)][1] if self._knows(argument) else argument

    def _with_known_numbers(self, argument: Any) -> Any:
        """Return an argument with numbers for the tensors whose values are known."""
        if self._knows(argument):
            return self._value_if_known(argument).item()
        if isinstance(argument, slice):
            return slice(*map(self._with_known_numbers, (argument.start, argument.stop, argument.step)))
        if type(argument) in (tuple, list):
            return type(argument)(map(self._with_known_numbers, argument))
        return argument

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function, and compute its value too if it depends on known values only."""
        keywords = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        tensors = [argument for argument in tree_leaves((args, keywords)) if isinstance(argument, Tensor)]
        known_tensors = [tensor for tensor in tensors if self._knows(tensor)]
        if not known_tensors:
            return func(*args, **keywords)
        if _changes_in_place(name, keywords):
            self._values.clear()  # a view of what is changed may be among them
        elif len(known_tensors) == len(tensors) and name in (*_COMPUTED, *_READS):
            return self._compute(func, name, args, keywords)
        elif name in _SIZED and args:
            return func(
                args[0], *map(self._with_known_numbers, args[1:]), **tree_map(self._with_known_numbers, keywords)
            )
        return func(*args, **keywords)

    def _compute(self, func: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Compute an operator on known values. Return the value itself where Python reads a number (`_READS`), or else
        the traced result, whose value is known from now on."""
        with _disable_current_modes(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            value = func(*tree_map(self._value_if_known, args), **tree_map(self._value_if_known, keywords))
        if name in _READS:
            return value
        traced = func(*args, **keywords)
        if isinstance(traced, Tensor) and isinstance(value, Tensor):
            self.learn(traced, value)
        return traced


def _changes_in_place(name: str, keywords: Mapping[str, Any]) -> bool:
    """Return whether a function of torch writes to an operand."""
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or name in _CHANGES or keywords.get("out") is not None


def constant_buffers(module: Any) -> dict[str, Tensor]:
    """Return the whole numbers and truth values among a module's buffers, by name, each copied."""
    return {
        name: buffer.clone()
        for name, buffer in module.named_buffers()
        if buffer.numel() == 1 and not buffer.is_floating_point() and not buffer.is_complex() and not buffer.is_meta
    }


@contextlib.contextmanager
def answer_constants(module: Any) -> Generator[None]:
    """Answer, within the block, what depends on the module's constant buffers alone, whenever the module is called."""
    values = constant_buffers(module)
    modes: list[_ConstantValues] = []

    def enter(traced_module: Any, *_: Any) -> None:
        """Start to answer reads of the module's buffers, before its forward is traced."""
        mode = _ConstantValues()
        for name, buffer in traced_module.named_buffers():
            if name in values:
                mode.learn(buffer, values[name])
        mode.__enter__()
        modes.append(mode)

    def leave(*_: Any) -> None:
        """Stop the mode that `enter` started last."""
        modes.pop().__exit__(None, None, None)

    handles = [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True, slots=True)
class Arguments:
    """Example inputs of a module: tensors by position, and values by name. A value by name that is no tensor, such as
    `use_cache=False`, is a constant of the model."""

    tensors: Sequence[Any]
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])


def trace_module(module: Any, examples: Arguments, name: str, *, gradients: bool = False) -> tuple[Any, bool]:
    """Return the ExportedProgram of a module, and whether it is right only if its assertions hold: if the model decides
    in Python by values, torch decides by the example inputs and asserts the decisions. What depends on whole numbers in
    the module's buffers alone is decided by these (`answer_constants`). Raise HostError if torch cannot trace the
    module."""
    with TRACING:
        return _trace_module(module, examples, name, gradients)


def _trace_module(module: Any, examples: Arguments, name: str, gradients: bool) -> tuple[Any, bool]:
    """Return the ExportedProgram of a module, and whether it is right only if its assertions hold; the caller holds the
    lock of tracing. Raise HostError if torch cannot trace the module."""
    program, error = _export(module, examples, gradients)
    decides = isinstance(error, GuardOnDataDependentSymNode) or _reads_values(program)
    if decides and not gradients and constant_buffers(module):  # a step of a training may change buffers
        with answer_constants(module):
            better, _ = _export(module, examples, gradients)
        if better is not None:
            return better, False
    if error is None:
        return program, False
    refusal = HostError(f"compile: torch.export cannot trace {name}: {_reason_of_refusal(error)}{_error_place(error)}")
    if not isinstance(error, GuardOnDataDependentSymNode):
        refuse_inputs(module, examples, name)
    if isinstance(error, GuardOnDataDependentSymNode):
        draft = _export_draft(module, examples, gradients)
    else:
        draft = None
    if draft is None:
        raise refusal from None
    return draft, True


def refuse_inputs(module: Any, examples: Arguments, name: str) -> None:
    """Raise HostError with torch's sentence if the module fails on its example inputs without any tracing, too. Its
    buffers and the state of random numbers stay as they are."""
    tensors = [*module.parameters(), *module.buffers(), *examples.tensors]
    if any(type(tensor) is FakeTensor or tensor.is_meta for tensor in tensors):
        return
    buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
    try:
        with _quietly(gradients=False), torch.random.fork_rng(devices=()):
            torch.func.functional_call(module, buffers, tuple(examples.tensors), dict(examples.named))
    except Exception as error:  # noqa: BLE001 - whatever a model raises
        raise HostError(
            f"compile: {name} cannot run with these inputs, in torch itself either: "
            f"{_reason_of_refusal(error)}{_line_of_model(error)}"
        ) from None


_UNKNOWN_TYPE = " in output, which is not a known type"
"""Words of torch about a model that returns an object other than tensors in tuples, lists and dicts."""


_QUANTISED = "torch.classes.quantized"
"""Words of torch about the packed parameters of a module that its eager quantisation made."""


def _reason_of_refusal(error: Exception) -> str:
    """Return the first line of an error of torch.export; for an output that torch cannot take apart, with what to do
    about it instead of torch's advice for its own developers, and so for quantised modules."""
    lines = str(error).strip().splitlines()
    if not lines:
        return repr(error)
    beginning, unknown_type, _ = lines[0].partition(_UNKNOWN_TYPE)
    if unknown_type:
        return (
            f"{beginning}{unknown_type}: let the model return tensors, or tuples and dicts of them; a model of "
            "transformers does without its cache if the example inputs are a dict with use_cache=False"
        )
    if _QUANTISED in lines[0]:
        return (
            "torch.export takes no modules of torch.ao.quantization: compile the float module with a format of 8 bits "
            '(df="Bfp8_b"), or its ONNX export in QDQ form (onnxruntime.quantization.quantize_static)'
        )
    return lines[0]


def _export(module: Any, examples: Arguments, gradients: bool) -> tuple[Any, Exception | None]:
    """Return the ExportedProgram of a module and None, or None and the error that keeps torch from tracing."""
    try:
        with _quietly(gradients):
            return torch.export.export(module, tuple(examples.tensors), dict(examples.named)), None
    except Exception as error:  # noqa: BLE001 - whatever keeps torch from tracing
        return None, error


def _reads_values(program: Any) -> bool:
    """Return whether a program asks tensors for numbers."""
    return program is not None and any("_local_scalar_dense" in str(node.target) for node in program.graph.nodes)


@contextlib.contextmanager
def _quietly(gradients: bool) -> Generator[None]:
    """Set the context for tracing, within the block: gradients on or off, and no output of torch about graphs that it
    refuses. A conversion of a module to the type it has already is skipped, since torch cannot replace parameters while
    it traces."""
    kind: Any = torch.nn.Module
    convert = kind._apply

    def convert_on_change(module: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Convert a module as `Module._apply` does, but leave it alone if the change would keep each tensor as it
        is."""
        with _disable_current_modes():
            types = {(tensor.dtype, tensor.device) for tensor in (*module.parameters(), *module.buffers())}
            examples = [torch.empty(1, dtype=dtype, device=device) for dtype, device in types]
            changes = any(change(tensor) is not tensor for tensor in examples)
        if changes:
            return convert(module, change, recurse)
        return module

    kind._apply = convert_on_change
    try:
        with torch.set_grad_enabled(gradients), silence_loggers(), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        kind._apply = convert


def _export_draft(module: Any, examples: Arguments, gradients: bool) -> Any:
    """Export the program as example inputs decide it, with assertions of every decision; return None if torch
    cannot."""
    if find_spec("torch.export._draft_export") is None:  # before torch 2.6
        return None
    draft: Any = import_module("torch.export._draft_export")
    try:
        with _quietly(gradients):
            program = draft.draft_export(module, tuple(examples.tensors), dict(examples.named))
    except Exception:  # noqa: BLE001 - torch raises many kinds
        return None
    kinds = {failure.failure_type for failure in program._report.failures}
    if kinds <= {draft.FailureType.DATA_DEPENDENT_ERROR}:
        return program
    return None


@contextlib.contextmanager
def silence_loggers() -> Generator[None]:
    """Silence torch's log messages, such as tracebacks of what it cannot trace: the refusal says what they say. Other
    threads wait, as each restores what it found."""
    with TRACING:
        names = [name for name in list(logging.root.manager.loggerDict) if name.startswith("torch.")]
        loggers = [logging.getLogger(name) for name in names]
        disabled_before = [logger.disabled for logger in loggers]
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger, disabled in zip(loggers, disabled_before, strict=True):
                logger.disabled = disabled


def _error_place(error: Exception) -> str:
    """Return the line of the model at which torch failed and advice, or "" if it was at none."""
    line = _line_of_model(error)
    if not line:
        return ""
    advice = "write it without Python decisions on values of tensors, or give inputs that avoid it"
    if isinstance(error, (AttributeError, TypeError)):  # no tensor is what it is without tracing: an input was left out
        advice = "the model goes another way while torch traces it: give all its inputs, masks, too"
    return f"{line}; {advice}"


def _line_of_model(error: Exception) -> str:
    """Return the line of the model at which it failed, " at File ...", or "" if it was at none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_model(frame.filename)]
    if not frames:
        return ""
    last = frames[-1]
    return f' at File "{last.filename}", line {last.lineno}, in {last.name}: {last.line}'


def _is_of_model(file: str) -> bool:
    """Return whether a file belongs neither to torch nor to this package nor to Python's library."""
    python = file.startswith(sysconfig.get_path("stdlib")) and "-packages" not in file
    ours = (str(Path(torch.__file__).parent), str(Path(__file__).parents[3]))
    return not python and not file.startswith(("<", *ours))


def distinct_tensors(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return examples as tensors that are distinct objects, since torch.export takes one object for one input."""
    tensors = [torch.as_tensor(tensor) for tensor in inputs]
    return tuple(
        tensor.clone() if any(tensor is other for other in tensors[:number]) else tensor
        for number, tensor in enumerate(tensors)
    )


def named_arguments(module: Any, values: Mapping[str, Any]) -> Arguments:
    """Return example inputs by name, in the order of the module's parameters. Raises HostError for a name that it does
    not take, or if one that it needs is missing."""
    try:
        bound = signature(module.forward).bind(**values)
    except TypeError as error:
        raise HostError(f"compile: {type(module).__name__}: example inputs: {error}") from None
    arrays = {name: value for name, value in values.items() if hasattr(value, "shape") or hasattr(value, "__array__")}
    tensors = dict(zip(arrays, distinct_tensors(list(arrays.values())), strict=True))
    names = [name for name in bound.arguments if name in values]
    return Arguments((), {name: tensors.get(name, values[name]) for name in dict.fromkeys((*names, *values))})


class TorchOrigin:
    """A decomposed ExportedProgram, run by torch. `names` maps its nodes to nodes of the imported graph."""

    def __init__(self, program: Any, names: Mapping[Any, str]) -> None:
        self._program = program
        self._names = names

    @property
    def tool(self) -> str:
        """The name and version of torch."""
        return f"torch {torch.__version__}"

    def values(self, inputs: Sequence[Array], node_names: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Run the program and return its outputs, and the values for which the nodes `node_names` stand, by these
        names. Raise HostError if torch refuses the inputs."""
        seen: dict[str, Array] = {}
        module = self._program.module(check_guards=False)
        names = {node.name: name for node, name in self._names.items()}
        walk = _Walk(module, names, node_names, seen)
        try:
            with torch.no_grad():
                outputs = walk.run(*self._placeholder_values(module, inputs))
        except Exception as error:  # noqa: BLE001 - torch raises many kinds
            raise HostError(f"compare: torch cannot run the model: {error}") from None
        return [array_of(leaf) for leaf in _tensor_leaves(outputs)], seen

    def _placeholder_values(self, module: Any, inputs: Sequence[Array]) -> Iterator[Any]:
        """Yield what the placeholders of the program's module take: an input's tensor, in the element type that the
        program was traced with (numpy has no bfloat16), or a constant of the program."""
        specs = self._program.graph_signature.input_specs
        placeholders = [node for node in self._program.graph.nodes if node.op == "placeholder"]
        traced = iter(
            node.meta.get("val", ...)
            for node, spec in zip(placeholders, specs, strict=True)
            if spec.kind == InputKind.USER_INPUT
        )
        arrays = iter(inputs)
        for node in module.graph.nodes:
            if node.op != "placeholder":
                continue
            value = next(traced)  # by place: the module's placeholders have other names
            if is_plain_constant(value):
                yield value
                continue
            tensor = torch.from_numpy(next(arrays).copy())
            if isinstance(value, torch.Tensor):
                tensor = tensor.to(value.dtype)
            yield tensor


def _tensor_leaves(tree: Any) -> list[Any]:
    """Return the tensors in nested lists and dictionaries, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        inner = tree.values()
    elif isinstance(tree, (list, tuple)):
        inner = tree
    else:
        inner = ()
    return [*chain.from_iterable(map(_tensor_leaves, inner))]


class _Walk(torch.fx.Interpreter):
    def __init__(
        self, module: Any, names: Mapping[str, str], node_names: Container[str], seen: dict[str, Array]
    ) -> None:
        super().__init__(module)
        self._names = names
        self._wanted = node_names
        self._seen = seen

    def run_node(self, n: Any) -> Any:
        """Run a node, and keep its value if it is among the wanted ones."""
        output = super().run_node(n)
        name = self._names.get(n.name)
        if name is not None and name in self._wanted and isinstance(output, torch.Tensor):
            self._seen[name] = array_of(output)
        return output


def array_of(tensor: Any) -> Array:
    """Return a tensor as an array that shares its memory; bfloat16 becomes float32, since numpy has none."""
    plain = tensor.detach().cpu()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()


def is_plain_constant(value: object) -> bool:
    """Return whether the value of a placeholder is a constant of Python, whose uses torch has replaced by its value."""
    return value is None or isinstance(value, (bool, int, float, str))


def input_labels(program: Any) -> dict[str, str]:
    """Return the names of inputs in the module by their placeholders, whose names torch writes in small letters."""
    stated = getattr(program.module_call_graph[0].signature, "forward_arg_names", None) or ()
    labels = [label for label in stated if isinstance(label, str)]  # a file may hold anything
    names = program.graph_signature.user_inputs
    return {
        name: next((label for label in labels if label.lower() == name), name)
        for name in names
        if isinstance(name, str)
    }


def input_shapes(
    program: Any, model: str, inputs: Sequence[Any] | None, sizes: OpenSizes
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs with open sizes, by the names of their placeholders. Sizes of example inputs come
    first, then those requested; a size that several inputs share needs one of them. Raise HostError for a size beyond
    the program's bounds, UnsupportedError naming a size that is missing."""
    names = input_labels(program)
    shapes = _symbolic_shapes(program, names)
    examples = dict(zip(shapes, map(np.shape, inputs or ()), strict=False))
    bound_sizes: dict[Any, int] = {}
    open_places = [(name, place, size) for name, shape in shapes.items() for place, size in _open_sizes(shape)]
    words = _names_of_sizes(program, names)
    for name, place, size in open_places:
        requested = sizes.of(names[name], place, words.get((name, place), ""))
        if name in examples:
            value = examples[name][place]
        else:
            value = requested
        if value is not None:
            bound_sizes.setdefault(size, _check_bounds(program, size, value, f"{model}: {names[name]}.{place}"))
    missing = [
        (names[name], place, words.get((name, place), ""))
        for name, place, size in open_places
        if size not in bound_sizes
    ]
    sizes.check(model)
    if missing:
        raise UnsupportedError(f"compile: {model}: not supported: {missing_size_text(*missing[0])}")
    return {
        name: tuple(int(size if isinstance(size, int) else size.subs(bound_sizes)) for size in shape)
        for name, shape in shapes.items()
        if not all(isinstance(size, int) for size in shape)
    }


def _symbolic_shapes(program: Any, names: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """Return the shapes of the inputs by placeholder, with an expression in place of each open size."""
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    values = [(node.name, node.meta["val"]) for node in nodes if isinstance(node.meta["val"], torch.Tensor)]
    return {
        name: tuple(getattr(getattr(size, "node", None), "expr", size) for size in value.shape)
        for name, value in values
    }


def _names_of_sizes(program: Any, names: Mapping[str, str]) -> dict[tuple[str, int], str]:
    """Return the names that torch.export.Dim gave to dimensions, by placeholder and dimension. A program from a file
    has none: torch does not save them."""
    words: dict[tuple[str, int], str] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.name not in names or not isinstance(value, torch.Tensor):
            continue
        for place, size in enumerate(value.shape):
            shape_env = getattr(getattr(size, "node", None), "shape_env", None)
            names_by_source = getattr(shape_env, "source_name_to_debug_name", {})
            word = names_by_source.get(f"L['{names[node.name]}'].size()[{place}]", "")
            if word:
                words[node.name, place] = word
    return words


def _open_sizes(shape: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return dimension and symbol of the sizes that are open and no expressions of others."""
    return [(place, size) for place, size in enumerate(shape) if getattr(size, "is_Symbol", False)]


def _check_bounds(program: Any, symbol: Any, value: int, subject: str) -> int:
    """Return a size if it lies within the bounds that the program has for its symbol. Raises HostError for any other;
    `subject` names it there."""
    bounds = program.range_constraints.get(symbol)
    if bounds is not None and not bounds.lower <= value <= bounds.upper:
        raise HostError(f"compile: {subject}={value}: the program takes {bounds.lower} to {bounds.upper}")
    return value


_BOOKKEEPING = ("getitem", "_assert_tensor_metadata", "alias", "detach")
"""Nodes that are not layers."""


def layer_names(graph: Any) -> dict[Any, str]:
    """Return a name for each node of an exported graph: `encoder.0.query` if that module is one operator, else module
    and operator, `encoder.0.softmax`; numbered if a module is called again."""
    paths = {node: _module_path(node) for node in graph.nodes}
    nodes_in_module = Counter(
        path for node, path in paths.items() if node.op == "call_function" and not _is_bookkeeping(node)
    )
    uses: Counter[str] = Counter()
    layer_of: dict[Any, str] = {}
    for node, path in paths.items():
        word = _operator_word(node)
        if path and nodes_in_module[path] == 1 and not _is_bookkeeping(node):
            name = path
        elif path:
            name = f"{path}.{word}"
        else:
            name = word
        if uses[name]:
            layer_of[node] = f"{name}_{uses[name]}"
        else:
            layer_of[node] = name
        uses[name] += 1
    return layer_of


def _module_path(node: Any) -> str:
    """Return the path of the innermost module of a node, or ""."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if stack and node.op == "call_function":
        return str(stack[-1][0])
    return ""


def _operator_word(node: Any) -> str:
    """Return the name of the operator without its overload, or the node's name if it calls none."""
    if node.op != "call_function":
        return str(node.name)
    return str(node.target).removeprefix("aten.").split(".")[0].strip("_")


def _is_bookkeeping(node: Any) -> bool:
    """Return whether a node is no layer but a selection from a tuple, a check, an alias or a detach."""
    return any(word in str(node.target) for word in _BOOKKEEPING)
