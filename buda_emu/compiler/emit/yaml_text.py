"""Writing values of the netlist language: the one place that knows how a name, a list or a map is written."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_WORDS: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none", "host", "nan", "inf"}


def safe_name(text: str) -> str:
    """A name of the model as one of a netlist: letters, digits, points and underscores, and no word of YAML."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "value"
    if not _SAFE.match(name) or name.lower() in _WORDS:
        name = f"v_{name}"
    return name


def kept_name(text: str) -> str:
    """A name that stands for itself to the host, as the model has it wherever its letters allow."""
    return text if _SAFE.match(text) else safe_name(text)


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
    """Lines of a comment."""
    import textwrap

    return [f"{' ' * indent}# {line}" for line in textwrap.wrap(text, width - 2 - indent)]
