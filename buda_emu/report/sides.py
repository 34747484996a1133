"""The names of the two compared sides, in the words that every report uses."""

from collections.abc import Mapping
from typing import Any


def sides(settings: Mapping[str, Any]) -> str:
    """Of a test run's settings: `precision device, expected ideal`; with tensors from outside `..., expected DIR, else
    ideal`."""
    reference = settings.get("reference")
    expected = f"{reference}, else {settings['expected']}" if reference else settings["expected"]
    return f"precision {settings['precision']}, expected {expected}"
