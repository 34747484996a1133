"""How an intrinsic is declared: which arguments a function takes in a kernel, and the LLVM code that a call becomes."""

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
    """A call of `function` is what the decorated `emit(context, builder, *arguments)` gives, None where it gives
    nothing.

    kinds: of the arguments, types or classes of types; integers of any width and flags serve for `intp`. Of arrays
    `emit` gets the addresses of their first elements, of tuples their items.
    """

    def typer(*given: Any) -> Any:
        taken = [_accept(one, kind) for one, kind in zip(given, kinds, strict=True)]
        return None if None in taken else signature(result, *taken)

    def decorate(emit: Emit) -> Emit:
        def lower(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
            made = emit(context, builder, *on_data(context, builder, call, arguments))
            return context.get_dummy_value() if made is None else made

        own: Any = typer
        own.__signature__ = inspect.signature(function)  # numba goes by it: what is not in it would be put into a tuple
        type_callable(function)(lambda _context: own)
        lower_builtin(function, *kinds)(lower)
        return emit

    return decorate


def shared_intrinsic(function: Callable[..., Any], *kinds: Any, by_lanes: bool = False) -> Callable[[Emit], Emit]:
    """A call of `function`, which gives nothing, is a call of one LLVM function, whose body the decorated
    `emit(builder, *arguments)` makes: see `call_shared`. `by_lanes`: `emit` gets the lanes of a vector before them."""

    def decorate(emit: Emit) -> Emit:
        @intrinsic(function, types.none, *kinds)
        def call(context: Any, builder: Builder, *arguments: Value) -> None:  # pyright: ignore[reportUnusedFunction]
            code = partial(emit, lanes_for(context)) if by_lanes else emit
            call_shared(builder, function.__name__, arguments, code)

        return emit

    return decorate


def _accept(given: Any, kind: Any) -> Any:
    """The type that an argument is given as; None where it does not fit."""
    if inspect.isclass(kind):
        return given if isinstance(given, kind) else None
    integer = kind == types.intp and isinstance(given, types.Integer | types.Boolean)
    return kind if integer or given == kind else None
