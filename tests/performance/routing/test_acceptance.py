"""Verdicts and streams are those of the vendor's programs: of netlists near limits, of the mutants, of the corpus."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from buda_emu.netlist.load import CheckResult
from buda_emu.netlist.rules import RULES
from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.epochs import route_netlist
from buda_emu.spec.boards import cluster_of
from core_streams import exact, ours
from performance.routing.near_limits import KINDS, near_limits
from performance.routing.one_or_two import one_or_two
from router_vectors import RecordedText, needs_router_vectors, recorded_texts, recorded_verdicts
from shared_files import SHARED
from vendor_router import ARCHS, epoch_pipes, needs_vendor_router, refusal, row_of_chips, stream_counts

_SAMPLE: Final = len(KINDS)
_ALL: Final = 1000
"""Seeds: for each maker of netlists and two architectures."""
_OFFLINE: Final = "N"
"""The stage of rules that the offline programs have: what parser, model or runtime refuse they may take."""


def _slow_from(first: int, seeds: range) -> list[object]:
    return [seed if seed < first else pytest.param(seed, marks=pytest.mark.slow) for seed in seeds]


def _sampled(paths: list[Path], step: int) -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(path, marks=slow) if number % step else path for number, path in enumerate(paths)]


def _errors(result: CheckResult) -> list[str]:
    return [one.rule for one in result.diagnostics if one.severity == "error"]


@needs_router_vectors
@pytest.mark.parametrize("case", recorded_texts(), ids=lambda case: case.name)
def test_recorded_netlists_near_limits(case: RecordedText) -> None:
    """Verdicts, and streams id by id. Quick enough for all of them: some 20 ms each."""
    result = check_text(case.text, arch=case.arch)
    assert bool(_errors(result)) != case.accepted, case.reason or _errors(result)
    if case.accepted:
        assert result.netlist is not None
        for epoch, streams in zip(route_netlist(result.netlist, phases=True), case.epochs, strict=True):
            assert exact(ours(epoch.routed.cores, case.arch)) == exact(streams)


def _hold_streams(result: CheckResult, arch: str, folder: Path) -> None:
    assert result.netlist is not None
    for epoch, pipes in zip(route_netlist(result.netlist), epoch_pipes(folder / "out"), strict=True):
        assert {core.place: len(core.streams) for core in epoch.routed.cores} == stream_counts(pipes, arch)


@needs_vendor_router
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", _slow_from(_SAMPLE, range(_ALL)))
@pytest.mark.parametrize("make", [near_limits, one_or_two])
def test_random_netlists(make: Callable[[int, str], str], seed: int, arch: str, tmp_path: Path) -> None:
    text = make(seed, arch)
    said, result = refusal(text, arch, tmp_path), check_text(text, arch=arch)
    assert bool(said) == bool(_errors(result)), said or _errors(result)
    if not said:
        _hold_streams(result, arch, tmp_path)


_MUTANTS: Final = sorted((SHARED / "corpus/mutants").glob("*.yaml"))
_NAMES: Final = (
    (re.compile(r"^  g:$", re.M), "  graph:"),
    (re.compile(r"graph_name: g\b"), "graph_name: graph"),
    (re.compile(r"arch: \[grayskull, wormhole, wormhole_b0, blackhole\]"), "arch: {arch}"),
)
"""Their graphs have names of one character, for which net2pipe refuses all of them."""
_SEVERAL_CHIPS: Final = re.compile(r"target_device: (1|\[)")
_ROW: Final = row_of_chips("wormhole_b0", 2)
_NEVER_EXECUTED: Final = {"398_V074-ram_bin"}
"""What is wrong is in a graph that no program executes: the programs do not look at it."""


@needs_vendor_router
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("path", _sampled(_MUTANTS, 50), ids=lambda path: path.stem)
def test_mutants(path: Path, arch: str, tmp_path: Path) -> None:
    text = path.read_text()
    for pattern, new in _NAMES:
        text = pattern.sub(new.format(arch=arch), text)
    several = arch == "wormhole_b0" and _SEVERAL_CHIPS.search(text) is not None
    said = refusal(text, arch, tmp_path, cluster=_ROW if several else "")
    result = check_text(text, arch=arch, cluster=cluster_of(yaml.safe_load(_ROW), "row") if several else None)
    errors = _errors(result)
    if said:
        assert errors, said
    elif path.stem not in _NEVER_EXECUTED:
        assert all(RULES[rule].stage != _OFFLINE for rule in errors), errors


# Refused by us alone: queues that lie in the same bytes of DRAM, which the runtime refuses (V154), and buffers of an op
# that are larger than the whole L1, where pipegen2's addresses pass 0 (V164).
_OURS_ALONE: Final[Mapping[str, set[str]]] = {
    "default_netlist.yaml": {"V154"},
    "netlist_binary.yaml": {"V154"},
    "netlist_add_and_norm_512_512.yaml": {"V164", "V355"},
    "netlist_add_and_norm_64_4096.yaml": {"V164", "V355"},
}


@pytest.mark.slow
@needs_router_vectors
@pytest.mark.parametrize(("path", "arch", "accepted"), recorded_verdicts(), ids=str)
def test_verdicts_of_the_corpus(path: Path, arch: str, accepted: bool) -> None:
    errors = set(_errors(check_text(path.read_text(), arch=arch)))
    if path.name in _OURS_ALONE:
        assert errors
        assert errors <= _OURS_ALONE[path.name]
    else:
        assert (not errors) == accepted, errors
