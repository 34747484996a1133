"""The frames of a traceback that are the caller's, for notebooks."""

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PACKAGE: Final = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_NOTEBOOK: Final = ("/IPython/", "/ipykernel/")
"""Parts of the paths of files that run the cells of a notebook."""
_CELL: Final = ("/ipykernel_", "<ipython-input")
"""Parts of the names that cells have in tracebacks."""


def caller_lines(error: BaseException) -> Iterator[str]:
    """Yield a line for each frame of an exception that belongs neither to this package nor to what runs a notebook,
    from the outermost to the innermost: its place and its source."""
    for frame in traceback.extract_tb(error.__traceback__):
        file = frame.filename.replace("\\", "/")
        if frame.filename.startswith(_PACKAGE) or any(part in file for part in _NOTEBOOK):
            continue
        if any(part in file for part in _CELL):
            place = f"cell, line {frame.lineno}"
        else:
            place = f'File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        yield f"{place}: {frame.line}" if frame.line else place
