"""Reading and writing the YAML files that describe devices."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buda_emu.errors import HostError
from buda_emu.files import read_yaml


def read_map(path: str) -> dict[str, Any]:
    """A file that holds a map. Raises RuntimeError."""
    try:
        content = read_yaml(path, "a map")
    except HostError as error:
        raise RuntimeError(str(error)) from error
    if not isinstance(content, dict):
        raise RuntimeError(f"{path}: not a map")
    return content  # pyright: ignore[reportUnknownVariableType]


def write_map(path: str, content: Mapping[str, Any]) -> None:
    """Write a map, and the folders above it. Raises RuntimeError."""
    import yaml

    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"{path}: {error}") from error
