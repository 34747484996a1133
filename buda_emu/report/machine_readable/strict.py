"""Strict JSON has no NaN and no infinity."""

from math import isfinite
from typing import Any


def strict(value: Any) -> Any:
    """The same plain data with null where a float is not a number."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
