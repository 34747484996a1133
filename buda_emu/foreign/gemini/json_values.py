"""JSON values of unknown type, looked at: each function gives the value with its type, or None."""

import json
from collections.abc import Mapping
from typing import Any, cast

_SHOWN = 40


def a_list(value: Any, count: int | None = None) -> list[Any] | None:
    """A list (of so many)."""
    found = cast("list[Any]", value) if isinstance(value, list) else None
    return found if found is not None and count in (None, len(found)) else None


def an_object(value: Any) -> Mapping[str, Any] | None:
    """A JSON object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def whole_numbers(
    value: Any, count: int | None = None, least: int = -(1 << 62), most: int = 1 << 62
) -> list[int] | None:
    """A list (of so many) integers from `least` on and below `most`; booleans do not count."""
    found = a_list(value, count)
    return found if found is not None and all(type(one) is int and least <= one < most for one in found) else None


def texts(value: Any) -> list[str] | None:
    """A list of texts."""
    found = a_list(value)
    return found if found is not None and all(isinstance(one, str) for one in found) else None


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    items = a_list(value)
    content = an_object(value)
    if content is not None and len(content) > _SHOWN:
        return "an object"
    if items is not None and len(items) > _SHOWN:
        return f"a list of {len(items)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "a value that JSON does not have"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
