"""Streams of real netlists are those that the vendor's pipegen2 allocates, core by core and id by id.

What it said of the corpus is recorded; addresses, and changed pipes, need the program.
"""

from pathlib import Path
from random import Random

import pytest

from buda_emu.performance.routing.streams.model import LIMITS, UNUSED_L1, Routed
from buda_emu.performance.routing.streams.route import route
from core_streams import ours
from pipe_mutations import as_text, mutated
from pipe_reading import read
from router_vectors import RecordedFile, needs_router_vectors, recorded_files
from vendor_router import (
    lowest_addresses,
    needs_vendor_router,
    our_lowest_addresses,
    pipe_graphs,
    streams,
)

# One of each kind of pipe, all small.
_SMALL = (
    "dram_multicast/netlist_100.yaml",
    "dram_gather",
    "dram_prefetch_pre_tm/netlist_200.yaml",
    "dram_prefetch_post_tm",
    "packer_serial_fork/netlist_100.yaml",
    "output_padding/netlist_100.yaml",
    "embedding",
    "tilize",
    "fused_op/netlist_fused_op_with_relu.yaml",
    "eth_datacopy",
    "multichip/mmio",
)


def _small() -> list[RecordedFile]:
    smallest: list[RecordedFile] = []
    for name in _SMALL:
        alike = [case for case in recorded_files() if name in str(case.path)]
        smallest += sorted(alike, key=lambda case: case.path.stat().st_size)[:1]
    return smallest


def _hold_recorded(case: RecordedFile) -> None:
    for number, (text, expected) in enumerate(zip(case.pipes(), case.streams(), strict=True)):
        routed = route(read(text, f"{case.path}, epoch {number}"), case.arch, phases=True)
        if expected is None:
            assert routed.refusals, (case.path, number)
        else:
            assert not routed.refusals, (case.path, number)
            assert ours(routed.cores, case.arch) == expected, (case.path, number)


def _hold(netlist: Path, arch: str, out: Path) -> None:
    for pipes in pipe_graphs(netlist, arch, out):
        expected, said = streams(pipes, arch)
        graph = read(pipes.read_text(), str(pipes))
        routed = route(graph, arch, phases=True)
        if expected is None:
            assert routed.refusals, f"{netlist}: pipegen2 says {said[-300:]}"
        else:
            assert not routed.refusals, netlist
            assert ours(routed.cores, arch) == expected, f"{netlist}, {pipes}"
            worker = {core: low for core, low in lowest_addresses(pipes, arch).items() if core[1] not in (0, 6)}
            assert our_lowest_addresses(routed.cores, arch) == worker, f"{netlist}, {pipes}"


def _name(case: RecordedFile) -> str:
    return f"{case.path.stem[-60:]}-{case.arch}"


@needs_router_vectors
@pytest.mark.parametrize("case", _small(), ids=_name)
def test_one_of_each_kind(case: RecordedFile) -> None:
    _hold_recorded(case)


@needs_router_vectors
@pytest.mark.slow
@pytest.mark.parametrize("case", recorded_files(), ids=_name)
def test_corpus(case: RecordedFile) -> None:
    _hold_recorded(case)


@needs_vendor_router
@pytest.mark.slow
@pytest.mark.parametrize("case", recorded_files(), ids=_name)
def test_corpus_with_the_programs(case: RecordedFile, tmp_path: Path) -> None:
    _hold(case.path, case.arch, tmp_path)


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_changed_netlists(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    case = random.choice([case for case in recorded_files() if case.path.stat().st_size < 20_000])
    arch = case.arch
    for pipes in list(pipe_graphs(case.path, arch, tmp_path))[:1]:
        graph = mutated(read(pipes.read_text(), str(pipes)), random)
        pipes.write_text(as_text(graph))
        expected, said = streams(pipes, arch)
        routed = route(graph, arch, phases=True)
        if expected is None:
            assert routed.refusals, said[-300:]
        elif not _beyond_all_l1(routed, arch):
            assert not routed.refusals
            assert ours(routed.cores, arch) == expected


def _beyond_all_l1(routed: Routed, arch: str) -> bool:
    """Where data buffers alone are larger than the whole L1, pipegen2's addresses pass 0, and it refuses nothing."""
    return any(core.l1_bytes - core.blob_bytes > LIMITS[arch].l1_end - UNUSED_L1 for core in routed.cores)
