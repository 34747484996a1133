"""State files that the package writes and reads again: whatever happened to one, its reader takes it or raises an
error that names it."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import buda_emu as be
from buda_emu.report.baselines import read_baseline
from buda_emu.report.machine_readable.perf_json import read_perf_json
from buda_emu.report.perf_against import against, against_lines
from buda_emu.support.errors import HostError
from buda_emu.testing.coverage.report import coverage_of, read
from buda_emu.testing.verify.runs import verdicts as last_failed
from damaged_json import damaged

NETLISTS = Path(__file__).parents[2] / "netlists"


class Kind:
    """A kind of state file: what is written, and all that reading it again comes to. `refuses` by HostError that names
    the file; others are as if there were none."""

    def __init__(self, content: Callable[[], Any], use: Callable[[Path], object], *, refuses: bool = True) -> None:
        self.content = content
        self.use = use
        self.refuses = refuses


def baseline() -> Any:
    items = [{"what": "output out", "error": 0.03, "reason": "on purpose"}, {"what": "output x", "error": 0.5}]
    return {"schema_version": 1, "test": {"settings": {"precision": "device"}, "files": {"a.yaml": items}}}


def use_baseline(path: Path) -> None:
    read_baseline(str(path), "test", {"precision": "device"}).against({str(path.parent / "a.yaml"): []})


def perf() -> Any:
    return be.perf(NETLISTS / "softmax.yaml").to_json()


def use_perf(path: Path) -> None:
    comparison = against(read_perf_json(path.read_bytes().decode("utf-8", "replace"), str(path)), perf(), str(path))
    list(against_lines(comparison))
    comparison.worst_percent()


def use_last_failed(path: Path) -> None:
    last_failed._read_records(path)


KINDS = {
    "baseline": Kind(baseline, use_baseline),
    "coverage": Kind(lambda: coverage_of([be.load(NETLISTS / "softmax.yaml")]).as_json(), read),
    "perf": Kind(perf, use_perf),
    "last failed": Kind(
        lambda: {"schema_version": 2, "netlists": {"/a.yaml": {"failed": True, "seconds": 1.5}}},
        use_last_failed,
        refuses=False,
    ),
}
SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 1000))]


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    return {name: json.dumps(kind.content()).encode() for name, kind in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_what_was_written(contents: dict[str, bytes], tmp_path: Path, name: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(contents[name])
    KINDS[name].use(path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", KINDS)
def test_damages(contents: dict[str, bytes], tmp_path: Path, name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")
    path = tmp_path / "state.json"
    path.write_bytes(damaged(contents[name], draw))
    try:
        KINDS[name].use(path)
    except HostError as error:
        assert KINDS[name].refuses
        assert str(path) in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.refuses])
@pytest.mark.parametrize("data", [b"", b"5", b"[]", b"{}", b"\xff", b"{" * 100_000, b'{"a": NaN}', b'{"a": 1, "a": 2}'])
def test_what_is_none_at_all(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(data)
    with pytest.raises(HostError, match=str(path)):
        KINDS[name].use(path)


def test_names_that_this_version_does_not_count(contents: dict[str, bytes], tmp_path: Path) -> None:
    """They would be lost without a word."""
    content = json.loads(contents["coverage"])
    content["counts"]["op types"]["of tomorrow"] = 1
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(content))
    with pytest.raises(HostError, match="has no 'of tomorrow' in the list 'op types'"):
        read(path)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 300))])
def test_damaged_snapshots_of_trainings(tmp_path: Path, seed: int) -> None:
    """The notes around the machine's own snapshot."""
    from buda_emu.compiler.train.training import CompiledTraining

    draw = random.Random(seed)
    notes = damaged(json.dumps({"schema_version": 1, "step": 3, "precision": "format"}).encode(), draw)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        archive.writestr("machine", b"no snapshot")
        archive.writestr("training.json", notes)
    data = bytearray(stream.getvalue())
    for _ in range(draw.randrange(3)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path = tmp_path / "training"
    path.write_bytes(data)
    training = CompiledTraining.__new__(CompiledTraining)
    training._machine_of_precision = Refusing  # type: ignore[method-assign,assignment]
    with pytest.raises(HostError, match=f"{path}|restored"):
        training.resume(path)


class Refusing:
    """Stands for a machine, and has read enough when it is asked to restore one."""

    def __init__(self, precision: str) -> None:
        assert precision in ("format", "ideal", "device")

    def restore(self, _: Path) -> None:
        raise HostError("restored")
