"""Rows of the census: one model compiled with one set of options, and what came of it, as JSON lines."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

from buda_emu.support.strict_json import read_object

Verdict = Literal["right", "parted", "refused", "wrong", "crash", "slow", "unbuilt"]
VERDICTS: Final[Mapping[Verdict, str]] = {
    "right": "equal to the original in `ideal`",
    "parted": "equal, with operators that the host computes",
    "refused": "not compiled, with a message that says why",
    "wrong": "another result than the original's",
    "crash": "an error that names no rule, or a process that died",
    "slow": "more processor time or memory than the limits",
    "unbuilt": "no model: the library or torch cannot build or run it in this configuration; not counted",
}
PCC: Final = 0.9999
ERROR: Final = 1e-4
"""Bounds of a right output: its correlation with the original's, or its largest error relative to the scale."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model with the options it is compiled with. `form`: "torch", or "onnx" for a model that is exported or a
    file."""

    library: str
    family: str
    name: str
    form: str = "torch"
    arch: str = "wormhole_b0"
    effort: str = "low"

    @property
    def title(self) -> str:
        """The words of the case, separated by spaces."""
        return f"{self.library} {self.name} {self.form} {self.arch} {self.effort}"


@dataclass(slots=True)
class Row:
    """The result of a case.

    `identity` is a digest of all that the original's result depends on. `operators` names what is refused, and `why` is
    the message; with `without_masks` the model compiles as its refusal advises. `pcc` and `error` are the worst
    output's; `findings` are the messages of `check --strict`. `seconds` is processor time by stage, and `memory` the
    most bytes that the process held, torch and the libraries included.
    """

    library: str
    family: str
    name: str
    form: str
    arch: str
    effort: str
    identity: str
    verdict: Verdict = "crash"
    stage: str = "starting"
    why: str = ""
    operators: tuple[str, ...] = ()
    pcc: float | None = None
    error: float | None = None
    findings: tuple[str, ...] = ()
    on_host: tuple[str, ...] = ()
    without_masks: bool = False
    parameters: int = 0
    ops: int = 0
    epochs: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    memory: int = 0
    versions: dict[str, str] = field(default_factory=dict[str, str])
    commit: str = ""

    def as_json(self) -> str:
        """Return the row as one line."""
        return json.dumps(asdict(self))


def identify(case: Case, seed: int, versions: Mapping[str, str]) -> str:
    """Return a digest of the case, the seed of its weights and inputs, and the versions of the libraries."""
    words = json.dumps([asdict(case), seed, dict(sorted(versions.items()))])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def make_row(case: Case, seed: int, versions: Mapping[str, str], commit: str) -> Row:
    """Return the row of a case that has not run."""
    return Row(**asdict(case), identity=identify(case, seed, versions), versions=dict(versions), commit=commit)


def read_rows(path: Path) -> dict[str, Row]:
    """Return the rows of a file by identity, the last of each; none if there is no file. A name that ends in .gz is a
    compressed file. Raises HostError for a line that is no row."""
    if not path.exists():
        return {}
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    rows: dict[str, Row] = {}
    for number, line in enumerate(data.splitlines(), 1):
        row = parse_row(line, f"{path}:{number}")
        rows[row.identity] = row
    return rows


def parse_row(line: bytes, place: str) -> Row:
    """Return the row of a line. Raises HostError for a line that is none."""
    fields = read_object(line, place, "a row of the census", "remove this line")
    for name in ("operators", "findings", "on_host"):
        fields[name] = tuple(fields.get(name, ()))
    return Row(**fields)


def append_row(path: Path, row: Row) -> None:
    """Add a row to a file of plain lines."""
    with path.open("a", encoding="utf-8") as file:
        file.write(row.as_json() + "\n")


def write_gzip(path: Path, rows: Iterable[Row]) -> None:
    """Write all rows, sorted, so that equal rows give equal bytes."""
    lines = sorted(row.as_json() for row in rows)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
