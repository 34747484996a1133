"""Writing values of the netlist language: the one place that knows how a list or a map is written."""

from collections.abc import Mapping, Sequence
from typing import Any


def flow(value: Any) -> str:
    """On one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        items: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in items.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts: Sequence[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "[" + ", ".join(flow(item) for item in parts) + "]"
    if isinstance(value, float):
        return f"{value:.9g}" if "." in f"{value:.9g}" or "e" not in f"{value:.9g}" else f"{value:.1e}"
    return str(value)


def comment(text: str, width: int = 118, indent: int = 0) -> list[str]:
    """Lines of a comment, without what YAML has no place for."""
    import textwrap

    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return [f"{' ' * indent}# {line}" for line in textwrap.wrap(plain, width - 2 - indent)]
