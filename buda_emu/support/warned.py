"""Warnings about what a caller asked for: shown at the caller's line, and collected by commands that print them."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from inspect import currentframe
from typing import Final

_INSIDE: Final = (__name__.partition(".")[0], "contextlib")
"""Packages whose frames are not the caller's; `contextlib` has the frames of decorators."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the innermost frame outside of this package, however deep in it the call went."""
    frame = currentframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


@contextmanager
def collected_warnings(category: type[Warning]) -> Generator[list[str]]:
    """Collect warnings of a category: at the end the list holds each text once. Other warnings are passed on."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always", category)
        yield texts
    for warning in recorded:
        if not issubclass(warning.category, category):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif str(warning.message) not in texts:
            texts.append(str(warning.message))
