"""The table of handlers of ATen operators, which the reader, torch's decompositions and the documentation use; and the
binding of an operator's arguments to the parameters of its handler, by its schema and its defaults."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.arguments import REQUIRED, Argument, refuse_unread
from buda_emu.compiler.importers.operators import Operators

FAMILIES = ("elementwise", "products", "windows", "reductions", "moves", "index", "complex_numbers",
            "backward")  # fmt: skip
"""The modules of `operators`. None of them imports torch."""
Handler = Callable[..., Any]
"""A handler takes the builder and the arguments of the operator that it reads (`run_handler`). It returns a node, or a
list of nodes for several results."""


ATEN: Final = Operators[Handler]("buda_emu.compiler.importers.from_torch.operators", FAMILIES)
"""Declarations by the operator's name without its overload."""
aten = ATEN.declare


def declare_plain(table: Mapping[str, str], *, intact: tuple[str, ...] = ()) -> None:
    """Declare operators that are a single front-end op on all operands. `table`: the front-end op by the operator's
    name; `intact`: the operators that torch must not decompose."""
    for name, op in table.items():
        aten(name, becomes=table, intact=name in intact, family="elementwise")(_make_handler(op))


def _make_handler(op: str) -> Handler:
    """Return the handler of an operator that is the front-end op `op` on all its operands."""

    def handler(b: Builder, *inputs: Any) -> Node:
        """Emit the front-end op on the operands, Python numbers as floats."""
        return b.emit(op, *(as_float(operand) for operand in inputs))

    return handler


def as_float(operand: Any) -> Any:
    """Convert a Python int or float to float, as torch does in arithmetic with tensors of floats; return anything else,
    bools too, unchanged."""
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return float(operand)
    return operand


def dims_of(x: Node, dims: Any) -> tuple[int, ...]:
    """Return dimensions of x counted from the front. `dims`: one number or a list, negative ones from the end; None and
    [] are all dimensions."""
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    return tuple(int(dim) % len(x.shape) for dim in (dims if isinstance(dims, list) else [dims]))


_IN_ORDER = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def run_handler(handler: Handler, b: Builder, target: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call the handler of an operator with the arguments of a call.

    A keyword-only parameter of the handler takes the schema's argument of the same name; the others take the remaining
    arguments in order. A parameter whose name begins with an underscore is one that the handler does not read. Raise
    NotSupportedError for an argument that the handler does not read and that is not at its default.
    """
    schema = getattr(target, "_schema", None)
    if schema is None:
        return handler(b, *arguments, **options)
    ordered_values, named_values = _bind_arguments(handler, schema, arguments, options)
    declared_names = {declared.name for declared in schema.arguments}
    extra_options = {name: value for name, value in options.items() if name not in declared_names}
    return handler(b, *ordered_values, **named_values, **extra_options)


def _bind_arguments(
    handler: Handler, schema: Any, arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call that a handler takes in order, and those that it takes by name. Raise
    NotSupportedError for an argument that the handler does not read and that is not at its default."""
    parameters = _parameters(handler)
    ordered = [name for name, kind in parameters if kind in _IN_ORDER]
    named = {name for name, kind in parameters if kind is Parameter.KEYWORD_ONLY}
    takes_all = any(kind is Parameter.VAR_POSITIONAL for _, kind in parameters)
    values: list[Any] = []
    named_values: dict[str, Any] = {}
    unread: list[Argument] = []
    for place, declared in enumerate(schema.arguments):
        argument = _bind_argument(declared, place, arguments, options)
        if argument.name in named:
            named_values[argument.name] = argument.value
        elif declared.kwarg_only or (len(values) >= len(ordered) and not takes_all):
            unread.append(argument)
        else:
            if len(values) < len(ordered) and ordered[len(values)].startswith("_"):
                unread.append(argument)
            values.append(argument.value)
    refuse_unread("torch", schema.name.rpartition("::")[2], unread)
    return values, named_values


def reduces_scalar_dim(target: Any, arguments: Sequence[Any]) -> bool:
    """Return whether an operator works along a dimension of a tensor that has none; torch treats such a tensor as a row
    of one element."""
    schema = getattr(target, "_schema", None)
    if schema is None or not arguments or not isinstance(arguments[0], Node) or arguments[0].shape:
        return False
    bound_arguments = [
        _bind_argument(declared, place, arguments, {}) for place, declared in enumerate(schema.arguments)
    ]
    return any(
        argument.name in ("dim", "dims", "dimension") and argument.value not in (None, [])
        for argument in bound_arguments
    )


@cache
def _parameters(handler: Handler) -> list[tuple[str, Any]]:
    """Return names and kinds of a handler's parameters without the builder."""
    return [(name, parameter.kind) for name, parameter in signature(handler).parameters.items()][1:]


def _bind_argument(declared: Any, place: int, arguments: Sequence[Any], options: Mapping[str, Any]) -> Argument:
    """Return a declared argument with its value: the one at its place in `arguments`, or of its name in `options`, or
    its default, which is `REQUIRED` if the operator declares none."""
    if declared.has_default_value():
        default = declared.default_value
    else:
        default = REQUIRED
    if place < len(arguments):
        value = arguments[place]
    else:
        value = options.get(declared.name, default)
    return Argument(declared.name, value, default)
