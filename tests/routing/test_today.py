"""Pipes and streams of many netlists as they are, so that a change of one is noticed without the vendor's programs,
with which the other tests compare the same netlists.

`PYTHONPATH=tests:tests/helpers python tests/routing/test_today.py` writes the lines anew, after a change that is meant.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

import buda_emu as be
from buda_emu.errors import UnsupportedError
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.routing.epochs import RoutedEpoch, route_netlist
from buda_emu.routing.streams.document import as_yaml
from buda_emu.spec.cluster import Cluster, cluster_of, row_of_chips
from buda_emu.testing import generate
from example_netlists import DIRECTORY
from routing.between_chips.random_chips import chips, copied, padded, to_itself
from routing.between_chips.random_copies import copies, stacked_copies
from routing.near_limits import KINDS, near_limits

KEPT = Path(__file__).with_name("today.txt")
WORMHOLE, GRAYSKULL = "wormhole_b0", "grayskull"
Case = tuple[str, Netlist | None, Cluster | None]


def loaded(text: str, arch: str) -> Netlist | None:
    return check_text(text, arch=arch).netlist


def cases() -> Iterator[Case]:
    """A name, a netlist (None where it is refused before it is routed) and the links between its chips."""
    for path in sorted(DIRECTORY.rglob("*.yaml")):
        yield path.stem, be.load(path), None
    for arch in (WORMHOLE, GRAYSKULL):
        for seed in range(20):
            yield f"generated {seed} for {arch}", generate(seed, arch=arch).netlist, None
        for seed in range(2 * len(KINDS)):
            yield f"near limits {seed} for {arch}", loaded(near_limits(seed, arch), arch), None
    for make in (chips, copied, to_itself, padded):
        for seed in range(8):
            text, links = make(seed)
            name = f"{make.__name__.replace('_', ' ')} {seed}"
            yield name, loaded(text, WORMHOLE), cluster_of(yaml.safe_load(links), name)
    for seed in range(8):
        yield f"copies {seed}", loaded(copies(seed), WORMHOLE), None
        yield f"stacked copies {seed}", loaded(stacked_copies(seed), WORMHOLE), None
        text = stacked_copies(seed, linked=True)
        yield f"linked copies {seed}", loaded(text, WORMHOLE), row_of_chips((0, 1))


def lines(name: str, netlist: Netlist | None, cluster: Cluster | None) -> Iterator[str]:
    if netlist is None:
        yield f"{name}: refused"
        return
    try:
        for epoch in route_netlist(netlist, phases=True, cluster=cluster):
            yield f"{name}, epoch {epoch.number}: {'; '.join(told(epoch, netlist.arch_name))}"
    except UnsupportedError as error:
        yield f"{name}: {error}"


def told(epoch: RoutedEpoch, arch: str) -> Iterator[str]:
    """Counts, to be read, and digests of all that is said."""
    if epoch.pipes is not None:
        yield f"{len(epoch.pipes.buffers)} buffers, {len(epoch.pipes.pipes)} pipes ({digest(repr(epoch.pipes))})"
    streams = [stream for core in epoch.routed.cores for stream in core.streams]
    kinds = Counter(stream.kind for stream in streams)
    yield f"{', '.join(f'{kind} {count}' for kind, count in sorted(kinds.items()))}" or "no streams"
    yield f"{sum(stream.phases or 0 for stream in streams)} phases"
    yield f"L1 {sum(core.l1_bytes for core in epoch.routed.cores)} ({digest(as_yaml(epoch.routed, '', arch))})"
    yield from (f"{refusal.what}: {refusal.message}" for refusal in epoch.routed.refusals)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def today() -> list[str]:
    return [line for case in cases() for line in lines(*case)]


def test_pipes_and_streams_are_those_of_today() -> None:
    assert today() == KEPT.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    KEPT.write_text("\n".join(today()) + "\n", encoding="utf-8")
