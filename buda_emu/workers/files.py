"""Files that jobs read, on machines that do not have them: they lie there in a folder, under numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

_PLACES: Final[dict[str, str]] = {}
"""Of a process on another machine: where each file of its job lies."""


def here(path: str) -> str:
    """Where a file of the job lies for this process: on the machine that has it, where it always did."""
    return _PLACES.get(path, path)


def names(paths: Sequence[str]) -> dict[str, str]:
    """The name of each file in the folder; suffixes tell kinds of files apart, so they stay."""
    return {path: f"{number}{PurePath(path).suffix}" for number, path in enumerate(paths)}


def write(contents: Mapping[str, bytes], folder: Path) -> None:
    """Put files by path into the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, name in names(list(contents)).items():
        (folder / name).write_bytes(contents[path])


def look_in(folder: str, paths: Sequence[str]) -> None:
    """Find the files of a job in this folder from now on."""
    _PLACES.update({path: str(Path(folder) / name) for path, name in names(paths).items()})
