"""The declaration of an intrinsic: the arguments that a function takes in a kernel, and the LLVM code of a call."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.arithmetic.jit.intrinsics.code import Builder, Value, call_shared, on_data
from buda_emu.arithmetic.jit.intrinsics.vectors import lanes_for

Emit = TypeVar("Emit", bound=Callable[..., Any])


def intrinsic(function: Callable[..., Any], result: Any, *kinds: Any) -> Callable[[Emit], Emit]:
    """Decorate `emit(context, builder, *arguments)`, which returns the value of a call of `function` in a kernel, or
    None for a call without a result.

    kinds: types or classes of types of the arguments; integers of any width and flags serve for `intp`. Of arrays
    `emit` gets the addresses of their first elements, of tuples their items.
    """

    def typer(*types_given: Any) -> Any:
        accepted = [_accept(type_given, kind) for type_given, kind in zip(types_given, kinds, strict=True)]
        return None if None in accepted else signature(result, *accepted)

    def decorate(emit: Emit) -> Emit:
        def lower(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
            value = emit(context, builder, *on_data(context, builder, call, arguments))
            return context.get_dummy_value() if value is None else value

        signed_typer: Any = typer
        signed_typer.__signature__ = inspect.signature(
            function
        )  # numba goes by it: what is not in it would be put into a tuple
        type_callable(function)(lambda _context: signed_typer)
        lower_builtin(function, *kinds)(lower)
        return emit

    return decorate


def shared_intrinsic(function: Callable[..., Any], *kinds: Any, by_lanes: bool = False) -> Callable[[Emit], Emit]:
    """Decorate `emit(builder, *arguments)`, which makes the body of one LLVM function for all calls of `function`,
    which has no result: see `call_shared`. `by_lanes`: `emit` gets the lanes of a vector before the arguments."""

    def decorate(emit: Emit) -> Emit:
        @intrinsic(function, types.none, *kinds)
        def call(context: Any, builder: Builder, *arguments: Value) -> None:  # pyright: ignore[reportUnusedFunction]
            code = partial(emit, lanes_for(context)) if by_lanes else emit
            call_shared(builder, function.__name__, arguments, code)

        return emit

    return decorate


def _accept(argument: Any, kind: Any) -> Any:
    """Return the type as which an argument is passed; None where it does not fit."""
    if inspect.isclass(kind):
        if isinstance(argument, kind):
            return argument
        return None
    integer = kind == types.intp and isinstance(argument, types.Integer | types.Boolean)
    return kind if integer or argument == kind else None
