"""Benchmark results that last: what counts as slower, how they are kept, and the page."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench_history import Change, changes, file_of, keep, latest, page, read

MACHINE = {"processor": "Some (R) CPU @ 2.50GHz", "cores": 2, "python": "3.11.7"}


def run(*values: float, threads: int = 1, at: str = "2026-01-01") -> dict[str, Any]:
    return {
        "at": at,
        "version": "0.1.0",
        "threads": threads,
        "precision": "format",
        "yardsticks": {"sgemm": 80.0, "copy": 9.5, "libyaml": 4.25},
        "ratios": {"a.yaml": {"run": list(values)}},
    }


@pytest.mark.parametrize(
    ("old", "new", "factor"),
    [
        ([1.0, 1.01, 1.02], [2.0, 2.02, 2.04], 2.0),
        ([2.0, 2.02, 2.04], [1.0, 1.01, 1.02], 0.5),
        ([1.0, 1.01, 1.02], [1.05, 1.06, 1.07], None),  # apart, but by little
        ([1.0, 1.5, 3.0], [1.2, 2.0, 3.0], None),  # by much, but not apart
        ([1.0, 1.0, 1.0, 1.0], [1.05, 2.0, 2.0, 2.0], 2.0),
        ([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 2.0, 2.0], None),  # one was as quick as ever
        ([1.0], [1.2], 1.2),
    ],
)
def test_what_differs_beyond_noise(old: list[float], new: list[float], factor: float | None) -> None:
    found = changes(run(*old)["ratios"], run(*new)["ratios"])
    assert [(change.netlist, change.stage) for change in found] == ([] if factor is None else [("a.yaml", "run")])
    assert factor is None or found[0].factor == pytest.approx(factor)


def test_the_slowest_comes_first_and_what_is_new_is_no_change() -> None:
    old = {"a": {"run": [1.0]}, "b": {"run": [1.0], "pop": [1.0]}}
    new = {"a": {"run": [2.0], "load": [9.0]}, "b": {"run": [3.0], "pop": [0.5]}, "c": {"run": [9.0]}}
    assert changes(old, new) == [Change("b", "run", 3.0), Change("a", "run", 2.0), Change("b", "pop", 0.5)]


def test_runs_are_added_to_the_file_of_their_machine(tmp_path: Path) -> None:
    path = file_of(MACHINE, tmp_path / "results")
    assert path.name == "some-r-cpu-2.50ghz-2-cores.json"
    for one in (run(1.0), run(2.0, threads=2), run(3.0, at="2026-02-01")):
        keep(path, MACHINE, one)
    found = read(path)
    assert found["schema_version"] == 1
    assert found["machine"] == MACHINE
    assert len(found["runs"]) == 3
    assert latest(found, run(0.0)) == run(3.0, at="2026-02-01")
    assert latest(found, run(0.0, threads=2)) == run(2.0, threads=2)
    assert latest(found, run(0.0, threads=4)) is None


@pytest.mark.parametrize("content", [[], {}, {"schema_version": 2}])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="no file of benchmark results"):
        read(path)


def test_the_page_has_a_column_for_each_run(tmp_path: Path) -> None:
    path = file_of(MACHINE, tmp_path)
    keep(path, MACHINE, run(1.0, 1.1, 1.2))
    keep(path, MACHINE, run(2.0, at="2026-02-01"))
    assert (
        "| netlist | stage | 2026-01-01, 0.1.0, format, 1 threads | 2026-02-01, 0.1.0, format, 1 threads |\n"
        "|---|---|---:|---:|\n"
        "| a.yaml | run, GFLOP | 1.1 ± 5 % | 2 ± 0 % |\n"
        "| yardstick | sgemm, GFLOP/s | 80 | 80 |\n"
    ) in page(tmp_path)
