"""Lists of transfers: how one is read, checked, summed up and timed. A transfer is a line `SOURCE TARGET BYTES`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from buda_emu.performance.timeline.picture import Lane, Slice, TimelinePicture
from buda_emu.support.checker import CheckResult, Diagnostic, Finding, Options, RuleBook, TextPlace
from buda_emu.support.errors import DocumentError

BOOK = RuleBook(kind="list of transfers", prefix="T")
BOOK.declare("T001", "error", "a line is not a source, a target and a number of bytes", source="this file")
BYTES_A_CYCLE = 32
DIGITS = 18
"""The most that a number of bytes may have."""


@dataclass(frozen=True)
class Transfer:
    """One transfer, and the line where it stands."""

    source: str
    target: str
    size: int
    line: int


@dataclass(frozen=True)
class Transfers:
    """A list of transfers, which go one after the other."""

    transfers: tuple[Transfer, ...]

    def summary(self) -> Mapping[str, int | str]:
        """Return the figures that `info` prints."""
        return {"transfers": len(self.transfers), "bytes": sum(transfer.size for transfer in self.transfers)}

    def timeline(self) -> TimelinePicture:
        """Return when each transfer happens, for `info --timeline`."""
        lanes = list(dict.fromkeys(transfer.source for transfer in self.transfers))
        slices: list[Slice] = []
        start = 0.0
        for transfer in self.transfers:
            end = start + transfer.size / BYTES_A_CYCLE
            slices.append(Slice(lanes.index(transfer.source), start, end, f"to {transfer.target}"))
            start = end
        return TimelinePicture(title=f"{len(slices)} transfers", lanes=[Lane(name) for name in lanes], slices=slices)


@BOOK.rule("T002", "error", "a transfer from a unit to itself", source="this file", fix="leave it out")
def to_itself(document: Transfers) -> Iterator[Finding]:
    """Refuse a transfer whose target is its source."""
    for transfer in document.transfers:
        if transfer.source == transfer.target:
            yield Finding(TextPlace(transfer.line), f"{transfer.source} sends to itself")


def read(path: str) -> tuple[Transfers, list[Diagnostic]]:
    """Return the transfers of a file, and what is wrong with its lines. No contents of a file raise. Raises OSError."""
    transfers: list[Transfer] = []
    findings: list[Diagnostic] = []
    lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    for number, text in enumerate(lines[1:], start=2):
        words = text.split()
        if len(words) == 3 and words[2].isdecimal() and len(words[2]) <= DIGITS:
            transfers.append(Transfer(words[0], words[1], int(words[2]), number))
        elif words:
            message = f"{len(words)} words, the last of them {words[-1]!r}"
            findings.append(BOOK.diagnostic(path, "T001", TextPlace(number), message))
    return Transfers(tuple(transfers)), findings


def load(path: str) -> Transfers:
    """Open a file. Raises DocumentError for one that cannot be read, OSError."""
    document, findings = read(path)
    if findings:
        raise DocumentError(f"{path} is no list of transfers", findings)
    return document


def check_file(path: str, options: Options) -> CheckResult[Transfers]:
    """Return all findings about a file. Raises OSError."""
    document, findings = read(path)
    return CheckResult(document, tuple(BOOK.run(document, path=path, strict=options.strict, reading_findings=findings)))
