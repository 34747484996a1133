"""Streams of real netlists are those that the vendor's pipegen2 allocates, core by core and id by id."""

from pathlib import Path
from random import Random

import pytest

from buda_emu.routing.streams.limits import LIMITS, UNUSED_L1
from buda_emu.routing.streams.model import Routed
from buda_emu.routing.streams.route import route
from pipe_mutations import as_text, mutated
from pipe_reading import read
from vendor_router import (
    lowest_addresses,
    needs_vendor_router,
    our_lowest_addresses,
    ours,
    pipe_graphs,
    streams,
    verdicts,
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


def _small() -> list[tuple[Path, str]]:
    found = list[tuple[Path, str]]()
    for name in _SMALL:
        alike = [case for case in verdicts() if name in str(case[0])]
        found += sorted(alike, key=lambda case: case[0].stat().st_size)[:1]
    return found


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


@needs_vendor_router
@pytest.mark.parametrize("case", _small(), ids=lambda case: f"{case[0].stem}-{case[1]}")
def test_one_of_each_kind(case: tuple[Path, str], tmp_path: Path) -> None:
    _hold(*case, tmp_path)


@needs_vendor_router
@pytest.mark.slow
@pytest.mark.parametrize("case", verdicts(), ids=lambda case: f"{case[0].stem[-60:]}-{case[1]}")
def test_corpus(case: tuple[Path, str], tmp_path: Path) -> None:
    _hold(*case, tmp_path)


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_changed_netlists(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    netlist, arch = random.choice([case for case in verdicts() if case[0].stat().st_size < 20_000])
    for pipes in list(pipe_graphs(netlist, arch, tmp_path))[:1]:
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
