"""JSON members of an image: strict JSON, and none that costs more than it says."""

from typing import Any, cast

from buda_emu.checker.text import shown
from buda_emu.image.rules import Place
from buda_emu.strict_json import parse


def parse_object(data: bytes, place: Place) -> dict[str, Any]:
    """The object that a JSON member holds. Raises ImageError for everything else."""
    try:
        value = parse(data)
    except ValueError as error:
        raise place.error("image-json", shown(error)) from None
    if not isinstance(value, dict):
        raise place.error("image-json", "it is not an object")
    return cast("dict[str, Any]", value)
