"""The `inline` decorator: copies a function into the code of each caller, however large it is.

A loop becomes vector code only when nothing in it is called, and the compiler leaves functions of this size apart.
"""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["inline"]

F = TypeVar("F", bound=Callable[..., Any])


def inline(function: F) -> F:
    """Stands above `kernel` or `helper`; without effect where these leave the plain Python function."""
    options: dict[str, Any] | None = getattr(function, "targetoptions", None)
    if options is not None:
        options["forceinline"] = True
    return function
