"""What the vendor's net2pipe and pipegen2 said of netlists, recorded in `../shared/router_vectors`: verdicts, the pipes
of each epoch, and the streams of each core. The programs themselves are not needed (`vendor_router` runs them)."""

import json
import lzma
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from core_streams import Core, Streams
from shared_files import CORPUS, SHARED

VECTORS: Final = SHARED / "router_vectors"
needs_router_vectors = pytest.mark.skipif(
    not VECTORS.is_dir(), reason=f"no recorded verdicts of the vendor's router at {VECTORS} (set BUDA_EMU_SHARED)"
)
_EPOCH: Final = re.compile(r"#epoch \d+\n")

EpochStreams = Mapping[Core, Streams] | None
"""The streams of an epoch's cores; None where pipegen2 refuses the epoch."""


@dataclass(frozen=True, slots=True)
class RecordedText:
    """A random netlist near the limits of a core, and what the programs said of it."""

    name: str
    arch: str
    text: str
    accepted: bool
    reason: str
    epochs: Sequence[EpochStreams]


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A netlist of the corpus of which pipes and streams were recorded."""

    path: Path
    arch: str
    file: str

    def streams(self) -> list[EpochStreams]:
        """The streams of each epoch."""
        return _streams(json.loads((VECTORS / "corpus" / f"{self.file}.json").read_text())["streams"])

    def pipes(self) -> list[str]:
        """The text of `pipegen.yaml` of each epoch; none where net2pipe refuses the netlist."""
        path = VECTORS / "corpus" / f"{self.file}.pipes.xz"
        return _EPOCH.split(lzma.decompress(path.read_bytes()).decode())[1:] if path.exists() else []


@cache
def recorded_texts() -> list[RecordedText]:
    """The netlists near limits; none without the data."""
    path = VECTORS / "near_limits.jsonl.xz"
    if not path.exists():
        return []
    rows = map(json.loads, lzma.decompress(path.read_bytes()).decode().splitlines())
    return [
        RecordedText(
            name=f"{row['make']}-{row['seed']}-{row['arch']}",
            arch=row["arch"],
            text=row["text"],
            accepted=row["verdict"] == "ok",
            reason=row["why"],
            epochs=_streams(row["streams"]),
        )
        for row in rows
    ]


def recorded_files() -> list[RecordedFile]:
    """The netlists of the corpus whose pipes and streams were recorded; none without the data."""
    return [RecordedFile(CORPUS / "netlists" / row[0], row[1], row[4]) for row in _rows("corpus/INDEX.tsv")]


def recorded_verdicts() -> list[tuple[Path, str, bool]]:
    """Netlists of the corpus that need one chip only, their architectures, and whether the programs take them."""
    return [(CORPUS / "netlists" / row[0], row[1], row[2] == "ok") for row in _rows("verdicts.tsv")]


def _rows(name: str) -> list[list[str]]:
    if not (VECTORS / name).exists():
        return []
    return [line.split("\t") for line in (VECTORS / name).read_text().splitlines()[1:]]


def _streams(epochs: list[Any]) -> list[EpochStreams]:
    return [None if epoch is None else {_core(key): _phases(epoch[key]) for key in epoch} for epoch in epochs]


def _core(key: str) -> Core:
    chip, row, column = map(int, key.split("-"))
    return chip, row, column


def _phases(streams: Mapping[str, int]) -> Streams:
    return Streams({int(id): phases for id, phases in streams.items()})
