"""Conversion of plain data to strict JSON, which has no NaN and no infinity."""

from math import isfinite
from typing import Any


def strict(value: Any) -> Any:
    """Return the same plain data with null for floats that are not finite."""
    if isinstance(value, dict):
        return {key: strict(element) for key, element in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [strict(element) for element in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
