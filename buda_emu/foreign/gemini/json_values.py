"""Type checks of decoded JSON values: each function returns the value with its type, or None if it has another type."""

import json
from collections.abc import Mapping
from typing import Any, cast

_SHOWN = 40


def as_list(value: Any, count: int | None = None) -> list[Any] | None:
    """Return the value if it is a list, and of length `count` where that is given."""
    if not isinstance(value, list):
        return None
    entries = cast("list[Any]", value)
    if count in (None, len(entries)):
        return entries
    return None


def as_object(value: Any) -> Mapping[str, Any] | None:
    """Return the value if it is a JSON object."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    return None


def as_integers(
    value: Any, count: int | None = None, least: int = -(1 << 62), limit: int = 1 << 62
) -> list[int] | None:
    """Return the value if it is a list (of length `count` where given) of integers from `least` up to, not including,
    `limit`. Booleans are not integers."""
    entries = as_list(value, count)
    if entries is not None and all(type(entry) is int and least <= entry < limit for entry in entries):
        return entries
    return None


def as_texts(value: Any) -> list[str] | None:
    """Return the value if it is a list of strings."""
    entries = as_list(value)
    if entries is not None and all(isinstance(entry, str) for entry in entries):
        return entries
    return None


def describe(value: Any) -> str:
    """Return the value as text for a message, shortened where it is long."""
    items = as_list(value)
    content = as_object(value)
    if content is not None and len(content) > _SHOWN:
        return "an object"
    if items is not None and len(items) > _SHOWN:
        return f"a list of {len(items)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "a value that JSON does not have"
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}..."
