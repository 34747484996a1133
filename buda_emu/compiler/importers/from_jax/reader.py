"""Reader of JAX functions: jax lowers them to StableHLO, and each operator goes to its handler. Calls are inlined, and
loops with a known end are unrolled."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from inspect import signature
from keyword import iskeyword
from typing import Any, Final

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.examples import Examples
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output, Shape
from buda_emu.compiler.importers.arguments import REQUIRED, Argument, RecordedAttributes, refuse_unread
from buda_emu.compiler.importers.from_jax.declared import HLO, Call
from buda_emu.compiler.importers.operators import ARGUMENT_ERRORS, NotSupportedError, Refusals, reason_of
from buda_emu.support.errors import HostError, UnsupportedError

_DTYPES: Final = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "float32", "i1": "bool", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32",
    "ui64": "uint64",
}  # fmt: skip
_NUMBERS: Final = (stablehlo.DotDimensionNumbers, stablehlo.ConvDimensionNumbers, stablehlo.GatherDimensionNumbers)
_LIBRARY: Final = re.compile(r"[\\/](site|dist)-packages[\\/](jax|flax)[\\/]")
_FILE: Final = re.compile(r'"([^"\n]+)":(\d+):\d+')


def type_of(mlir_type: Any) -> tuple[Shape, str]:
    """Return shape and element type of an MLIR type; bfloat16 becomes float32, since numpy has none. Raise
    NotSupportedError for other types and open shapes."""
    if isinstance(mlir_type, ir.RankedTensorType):
        tensor_type = mlir_type
    else:
        tensor_type = None
    if tensor_type is not None:
        word = str(tensor_type.element_type)
    else:
        word = str(mlir_type)
    if tensor_type is None or word not in _DTYPES:
        raise NotSupportedError(f"a value of type {word}")
    if not tensor_type.has_static_shape:
        raise NotSupportedError(f"a shape that is left open: {mlir_type}")
    return tuple(tensor_type.shape), _DTYPES[word]


def array_of(attribute: Any) -> Array:
    """Return a constant attribute as an array. Raise NotSupportedError for an element type that jax's bindings do not
    convert."""
    shape, dtype = type_of(attribute.type)
    try:
        return np.array(attribute)
    except TypeError:
        if attribute.is_splat:
            return np.full(shape, attribute.get_splat_value().value, dtype)
        raise NotSupportedError(f"of type {attribute.type}: keep parameters in float32") from None


def attributes_of(operation: Any) -> dict[str, Any]:
    """Return the attributes of an operation by name as numbers, lists, words or dictionaries of dimension numbers."""
    return {name: _plain_value(operation.attributes[name]) for name in operation.attributes}


def _plain_value(attribute: Any) -> Any:
    """Convert an attribute of MLIR to Python: numbers, lists, a dictionary of fields for a record of dimension numbers,
    and a word for anything else, such as `LT` for `#stablehlo<comparison_direction LT>`."""
    for kind in _NUMBERS:
        if kind.isinstance(attribute):
            typed = kind(attribute)
            fields = {name: getattr(typed, name) for name in dir(typed) if not name.startswith("_")}
            return {name: value for name, value in fields.items() if isinstance(value, (int, list))}
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return np.array(attribute).tolist()
    if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseBoolArrayAttr)):
        return [int(value) for value in attribute]
    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr, ir.StringAttr)):
        return attribute.value
    return str(attribute).rstrip(">").rpartition(" ")[2]  # a word, as of #stablehlo<comparison_direction LT>


def layer_of(location: Any) -> str:
    """Return the path of a flax module from a location, without function and operator: `jit(f)/Model/Dense_0/dot`
    becomes `Model.Dense_0`; "" if the location names no module."""
    parts = [part for part in str(getattr(location, "name_str", "")).split("/")[:-1] if "(" not in part]
    return ".".join(parts)


def line_of(*locations: Any) -> str:
    """Return file and line, "file:line", of the innermost frame that is not in jax or flax, else of the innermost of
    all, "" if there is no frame. `locations` are those of an operation and of the calls around it, innermost first."""
    frames = [f"{file}:{line}" for location in locations for file, line in _FILE.findall(str(location))]
    user_frames = [frame for frame in frames if not _LIBRARY.search(frame)]
    return next(iter(user_frames or frames), "")


class JaxOrigin:
    """A function under `jax.jit`, run by jax itself."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def tool(self) -> str:
        """The name and version of jax."""
        return f"jax {jax.__version__}"

    def values(self, inputs: Sequence[Array], node_names: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Run the function and return its outputs; inner values are not available. Raise HostError if jax refuses the
        inputs."""
        del node_names
        try:
            results = self._function(*inputs)
        except Exception as error:  # noqa: BLE001 - jax raises many kinds
            raise HostError(f"compare: jax cannot run the function: {error}") from None
        return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(results)], {}


MOST_ROUNDS: Final = 1024
"""Limit for the rounds of a loop that is unrolled, the same as for steps of a recurrent layer."""
_MOST_NODES: Final = 200_000
"""Limit for the nodes of a graph: nested loops that stay within the limit of rounds multiply, and would fill memory."""


def read_jax(function: Any, inputs: Examples) -> Graph:
    """Import a function with example inputs. Raise HostError if jax cannot trace it, UnsupportedError naming every
    operator that is not supported."""
    name = getattr(function, "__name__", type(function).__name__)
    if inputs is None:
        raise HostError("compile: a JAX function needs example inputs: compile(function, (array, ...))")
    if isinstance(inputs, Mapping):
        inputs = _in_order_of_signature(function, name, inputs)
    for number, example in enumerate(inputs):
        if not hasattr(example, "shape"):
            raise HostError(
                f"compile: {name}: input {number} is of type {type(example).__name__}, not an array: keep parameters "
                "in the function, as in compile(lambda x: model.apply(parameters, x), (x,))"
            )
    if hasattr(function, "lower"):
        jitted = function
    else:
        jitted = jax.jit(function)
    try:
        lowered = jitted.lower(*inputs)
        module = lowered.compiler_ir("stablehlo")
    except Exception as error:  # noqa: BLE001 - whatever keeps jax from tracing
        reason = str(error).strip().splitlines()
        raise HostError(f"compile: jax cannot trace {name}: {reason[0] if reason else error!r}") from None
    return _Reader(module, name.strip("<>"), jitted).read()


def _in_order_of_signature(function: Any, name: str, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return example inputs by name in the order of a function's parameters. Raises HostError if they do not fit
    them."""
    try:
        bound = signature(function).bind(**inputs)
    except TypeError as error:
        raise HostError(f"compile: {name}: example inputs: {error}") from None
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise HostError(f"compile: {name}: example inputs {names}: the function takes them by name alone")
    return bound.args


class _Reader:
    def __init__(self, module: Any, name: str, function: Any) -> None:
        self._functions = {operation.attributes["sym_name"].value: operation for operation in module.body.operations}
        self._function = function
        self._graph = Graph(name)
        self._b = Builder(self._graph, decompose=False)
        self._refused = Refusals()
        self._calls: list[Any] = []
        """The locations of the calls around the operation that is read, outermost first."""

    def read(self) -> Graph:
        """Read the function `main` and return its graph. Raises UnsupportedError that lists all constructs that are not
        supported, or for a result without elements."""
        block = self._functions["main"].regions[0].blocks[0]
        values: list[Any] = []
        for number, argument in enumerate(block.arguments):
            shape, dtype = type_of(argument.type)
            label = getattr(argument.location, "name_str", "") or f"arg{number}"
            values.append(self._b.input(label, shape, dtype))
        results = self._run_block(block, values)
        self._refused.raise_if_any(self._graph.name)
        for number, node in enumerate(results):
            if 0 in node.shape:
                raise UnsupportedError(f"compile: {self._graph.name}: output {number} has no elements: {node.shape}")
            self._graph.outputs.append(Output(f"output_{number}" if number else "output", node.name, node.dtype))
        self._graph.origin = JaxOrigin(self._function)
        return self._graph

    def _run_block(self, block: Any, arguments: Sequence[Any], outer: dict[Any, Any] | None = None) -> list[Any]:
        """Import a block for these arguments and return the values that it returns; `outer` are values visible in
        it."""
        values = dict(outer or {})
        values |= dict(zip(block.arguments, arguments, strict=True))
        for operation in block.operations:
            op = operation.operation
            operands = [values[operand] for operand in op.operands]
            if op.name in ("func.return", "stablehlo.return"):
                return operands
            results = self._read_operation(op, operands, values)
            values |= dict(zip(op.results, results, strict=True))
        return []

    def _read_operation(self, op: Any, operands: list[Any], values: dict[Any, Any]) -> list[Any]:
        """Add one operation to the graph and return its results. Of one that is not supported, which is noted for the
        error at the end, or that reads such a result, they are `_POISONED`."""
        self._b.scope = layer_of(op.location)
        self._b.source = self._line_of(op)
        poisoned = [_POISONED] * len(op.results)
        word = op.name.removeprefix("stablehlo.")
        if iskeyword(word):
            word = op.name  # an `and` would read as a part of the message
        try:
            if op.name == "stablehlo.constant":
                return [self._b.constant(array_of(op.attributes["value"]))]
            if op.name == "func.call":
                return self._run_function(op, operands)
            if _POISONED in operands:
                if op.name not in HLO and op.name not in _CONTROL:
                    self._refuse(word, op)
                return poisoned
            if op.name in _CONTROL:
                return getattr(self, _CONTROL[op.name])(op, operands, values)
            return self._run_handler(op, operands)
        except ARGUMENT_ERRORS as error:
            self._refuse(f"{word}{reason_of(error)}", op)
            return poisoned

    def _run_function(self, call: Any, operands: list[Any]) -> list[Any]:
        """Import the function that an operation calls in place of the call, and return its results."""
        self._calls.append(call.location)
        try:
            return self._run_block(self._functions[call.attributes["callee"].value].regions[0].blocks[0], operands)
        finally:
            self._calls.pop()

    def _line_of(self, op: Any) -> str:
        """Return the line of the user's source that an operation comes from; functions of jax's own are called from
        it."""
        return line_of(op.location, *reversed(self._calls))

    def _run_handler(self, op: Any, operands: list[Node]) -> list[Node]:
        """Run the handler of an operator and return its results, in the element types that the program states. Raises
        NotSupportedError without a handler, or for an attribute that the handler did not read."""
        declared = HLO.get(op.name)
        if declared is None:
            raise NotSupportedError(_custom_call_target(op))
        types = [type_of(result.type) for result in op.results]
        regions = tuple(tuple(_operator_names(region)) for region in op.regions)
        attrs = RecordedAttributes(attributes_of(op))
        operator = op.name.partition(".")[2]
        shapes = tuple(shape for shape, _ in types)
        dtypes = tuple(dtype for _, dtype in types)
        output = declared.handler(
            Call(
                b=self._b,
                operands=tuple(operands),
                shapes=shapes,
                dtypes=dtypes,
                attrs=attrs,
                regions=regions,
                operator=operator,
            )
        )
        refuse_unread("stablehlo", operator, _unread_arguments(attrs))
        nodes: list[Node] = output if isinstance(output, list) else [output]
        return [
            node if node.dtype == dtype else self._b.retype(node, dtype)
            for node, dtype in zip(nodes, dtypes, strict=True)
        ]

    def _unroll_while(self, op: Any, operands: list[Node], values: dict[Any, Any]) -> list[Node]:
        """Unroll a loop as long as its condition is a constant, and return the values that it leaves. Raises
        NotSupportedError if the condition depends on an input, and for a loop of too many rounds or nodes."""
        condition, body = (region.blocks[0] for region in op.regions)
        for _ in range(MOST_ROUNDS):
            (goes_on,) = self._run_block(condition, operands, values)
            if goes_on is _POISONED or goes_on.op != "constant":
                raise NotSupportedError("a loop whose end depends on computed values: write it with a known count")
            if not goes_on.value.item():
                return operands
            operands = self._run_block(body, operands, values)
            if len(self._graph.nodes) > _MOST_NODES:
                raise NotSupportedError(f"unrolled: more than {_MOST_NODES:,} nodes")
        raise NotSupportedError(f"a loop of more than {MOST_ROUNDS:,} rounds")

    def _import_case(self, op: Any, operands: list[Node], values: dict[Any, Any]) -> list[Node]:
        """Import the branch that a constant selects, and return its results. Raises NotSupportedError if the selector
        is computed."""
        if operands[0].op != "constant":
            raise NotSupportedError("a branch that depends on computed values: use jnp.where")
        chosen = int(operands[0].value.item())
        last = len(op.regions) - 1
        if op.name == "stablehlo.if":
            if chosen:
                chosen = 0
            else:
                chosen = 1
        return self._run_block(op.regions[chosen if 0 <= chosen <= last else last].blocks[0], (), values)

    def _refuse(self, construct: str, op: Any) -> None:
        """Note a construct that is not supported, with the line of the user's source, its layer or else `main` as its
        place."""
        self._refused.add(construct, self._line_of(op) or layer_of(op.location) or "main")


_POISONED: Any = object()
_CONTROL: Final = {"stablehlo.while": "_unroll_while", "stablehlo.case": "_import_case", "stablehlo.if": "_import_case"}


def _custom_call_target(op: Any) -> str:
    """Return the name of the function that a `custom_call` calls, "" for any other operation."""
    if op.name == "stablehlo.custom_call":
        return op.attributes["call_target_name"].value
    return ""


def _unread_arguments(attrs: RecordedAttributes) -> Iterator[Argument]:
    """Yield the attributes that a handler did not read. One that is empty, 0 or false is as good as absent; those of
    another dialect (`mhlo.sharding`) are annotations."""
    for name, value in attrs.unread():
        if "." not in name and value not in ([], 0, ""):
            yield Argument(name, value, REQUIRED)


def _operator_names(region: Any) -> list[str]:
    """Return the names of the operators of a region, without its terminator; comparisons with their direction, as in
    "compare GT"."""
    names: list[str] = []
    for operation in region.blocks[0].operations:
        op = operation.operation
        word = op.name.removeprefix("stablehlo.")
        if word == "compare":
            word += f" {attributes_of(op)['comparison_direction']}"
        names.append(word)
    return names[:-1]
