"""Files to documents. Text that cannot be read is a finding (X001) of its split, never an exception."""

import re
from pathlib import Path
from typing import Final

from buda_emu.errors import HostError
from buda_emu.vpux.model import Document, Split
from buda_emu.vpux.reader.scanner import ReadError, without_comments
from buda_emu.vpux.reader.statements import StatementReader

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
MOST_BYTES: Final = 64 << 20
"""Of a file; a larger one is refused."""


def load(path: str | Path, split: int | None = None) -> Document:
    """Read a file, or one split of it (its number, and lines, are those of the file).

    Never raises for bad text: `document.check()` reports it as X001. Raises OSError, and HostError for a file that is
    too large and for a split that is not there.
    """
    file = Path(path)
    if file.stat().st_size > MOST_BYTES:
        raise HostError(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    return read(file.read_text(encoding="utf-8", errors="replace"), str(path), split)


def read(text: str, path: str = "<text>", split: int | None = None) -> Document:
    """Read text as `load` reads a file."""
    document = Document(path, text)
    marks = [found.span() for found in _SPLIT.finditer(text)]
    starts = [0, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(text)]
    if split is not None and not 0 <= split < len(starts):
        raise HostError(f"{path} has splits 0 to {len(starts) - 1}, not {split}")
    parts = [(number, *span) for number, span in enumerate(zip(starts, ends, strict=True)) if split in (None, number)]
    plain = ""
    for number, start, end in parts:
        plain += text[len(plain) : start] + without_comments(text[start:end])
        _read_split(document, plain, number, start, end)
    return document


def _read_split(document: Document, plain: str, number: int, start: int, end: int) -> None:
    reader = StatementReader(document, plain, start, end, number)
    try:
        module = reader.read()
    except ReadError as error:
        document.add(Split(number, start, end, None, (error.offset, str(error))), ())
        return
    document.add(Split(number, start, end, module), reader.functions)
