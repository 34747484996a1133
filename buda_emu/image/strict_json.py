"""JSON members of an image: strict JSON, and none that costs more than it says."""

import json
import math
from collections.abc import Iterator
from typing import Any

from buda_emu.checker.text import shown
from buda_emu.files import each_name_once
from buda_emu.image.fields import json_object
from buda_emu.image.rules import Place

_MAX_DEPTH = 64
_LOW, _HIGH = -(1 << 63), 1 << 64


def parse_object(data: bytes, place: Place) -> dict[str, Any]:
    """The object that a JSON member holds. Raises ImageError for everything else."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise place.error("image-json", f"byte {error.start} is not UTF-8") from None
    try:
        value: Any = json.loads(
            text, parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=each_name_once
        )
    except RecursionError:
        raise place.error("image-json", f"it is nested deeper than {_MAX_DEPTH} levels") from None
    except ValueError as error:  # JSONDecodeError among them
        raise place.error("image-json", f"it is not strict JSON: {shown(error)}") from None
    if not isinstance(value, dict):
        raise place.error("image-json", "it is not an object")
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = list(_inner(level))
        if not level:
            return value  # pyright: ignore[reportUnknownVariableType] - from JSON
    raise place.error("image-json", f"it is nested deeper than {_MAX_DEPTH} levels")


def _inner(level: list[Any]) -> Iterator[Any]:
    """The lists and maps directly inside of those."""
    for outer in level:
        items: list[Any] = list(json_object(outer).values()) if isinstance(outer, dict) else outer
        for item in items:
            if isinstance(item, dict | list):
                yield item


def _whole(text: str) -> int:
    value = int(text) if len(text) <= 20 else _HIGH
    if not _LOW <= value < _HIGH:
        raise ValueError("a number has more than 64 bits")
    return value


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")
