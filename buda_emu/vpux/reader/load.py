"""Text to a document. Text that cannot be read is a finding (X001) of its split, never an exception."""

import re

from buda_emu.errors import HostError
from buda_emu.vpux.model import Document, Split
from buda_emu.vpux.reader.scanner import ReadError, without_comments
from buda_emu.vpux.reader.statements import StatementReader

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


def read_into(document: Document, split: int | None = None) -> None:
    """Add what a document's text holds: all its splits, or one. Raises HostError for a split that is not there."""
    text = document.text
    marks = [found.span() for found in _SPLIT.finditer(text)]
    starts = [0, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(text)]
    if split is not None and not 0 <= split < len(starts):
        raise HostError(f"{document.path} has splits 0 to {len(starts) - 1}, not {split}")
    parts = [(number, *span) for number, span in enumerate(zip(starts, ends, strict=True)) if split in (None, number)]
    plain = ""
    for number, start, end in parts:
        plain += text[len(plain) : start] + without_comments(text[start:end])
        _read_split(document, plain, number, start, end)


def _read_split(document: Document, plain: str, number: int, start: int, end: int) -> None:
    reader = StatementReader(document, plain, start, end, number)
    try:
        module = reader.read()
    except ReadError as error:
        document.add(Split(number, start, end, None, (error.offset, str(error))), ())
        return
    document.add(Split(number, start, end, module), reader.functions)
