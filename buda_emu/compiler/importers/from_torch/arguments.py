"""Binding of the arguments of an ATen operator to the parameters of its handler, by the operator's schema and its
defaults."""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.arguments import REQUIRED, Argument, refuse_unread
from buda_emu.compiler.importers.from_torch.declared import Handler

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
    parameters = _parameters(handler)
    ordered = [name for name, kind in parameters if kind in _IN_ORDER]
    named = {name for name, kind in parameters if kind is Parameter.KEYWORD_ONLY}
    takes_all = any(kind is Parameter.VAR_POSITIONAL for _, kind in parameters)
    values: list[Any] = []
    named_values: dict[str, Any] = {}
    unread: list[Argument] = []
    for place, declared in enumerate(schema.arguments):
        argument = _argument(declared, place, arguments, options)
        if argument.name in named:
            named_values[argument.name] = argument.value
        elif declared.kwarg_only or (len(values) >= len(ordered) and not takes_all):
            unread.append(argument)
        else:
            if len(values) < len(ordered) and ordered[len(values)].startswith("_"):
                unread.append(argument)
            values.append(argument.value)
    refuse_unread("torch", schema.name.rpartition("::")[2], unread)
    extra_options = {
        name: value
        for name, value in options.items()
        if name not in {argument_declaration.name for argument_declaration in schema.arguments}
    }
    return handler(b, *values, **named_values, **extra_options)


def reduces_scalar_dim(target: Any, arguments: Sequence[Any]) -> bool:
    """Return whether an operator works along a dimension of a tensor that has none; torch treats such a tensor as a row
    of one element."""
    schema = getattr(target, "_schema", None)
    if schema is None or not arguments or not isinstance(arguments[0], Node) or arguments[0].shape:
        return False
    bound_arguments = [_argument(declared, place, arguments, {}) for place, declared in enumerate(schema.arguments)]
    return any(
        argument.name in ("dim", "dims", "dimension") and argument.value not in (None, [])
        for argument in bound_arguments
    )


@cache
def _parameters(handler: Handler) -> list[tuple[str, Any]]:
    """Return names and kinds of a handler's parameters without the builder."""
    return [(name, parameter.kind) for name, parameter in signature(handler).parameters.items()][1:]


def _argument(declared: Any, place: int, arguments: Sequence[Any], options: Mapping[str, Any]) -> Argument:
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
