"""Pipes and streams of many netlists as they are, so that a change of one is noticed without the vendor's programs,
with which the other tests compare the same netlists.

`PYTHONPATH=tests:tests/helpers python tests/performance/routing/test_today.py` writes the lines anew, after a change
that is meant.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml

from buda_emu.netlist import load
from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.epochs import RoutedEpoch, route_netlist
from buda_emu.performance.routing.streams.model import as_yaml
from buda_emu.spec.boards import Cluster, cluster_of, row_of_chips
from buda_emu.support.errors import UnsupportedError
from buda_emu.testing import generate
from buda_emu.testing.generator.netlist import GENERATED as OP_TYPES
from example_netlists import DIRECTORY
from performance.routing.between_chips.random_chips import chips, copied, padded, to_itself
from performance.routing.between_chips.random_copies import copies, stacked_copies
from performance.routing.near_limits import KINDS, near_limits
from performance.routing.one_or_two import one_or_two

KEPT = Path(__file__).with_name("today.txt")
WORMHOLE, GRAYSKULL = "wormhole_b0", "grayskull"
Case = tuple[str, str, str, Cluster | None]
"""A name, a netlist's text and architecture, and the links between its chips."""


def examples() -> Iterator[Case]:
    for path in sorted(DIRECTORY.rglob("*.yaml")):
        yield str(path.relative_to(DIRECTORY)), path.read_text(), WORMHOLE, None


def generated(arch: str, op_types: Sequence[str] = OP_TYPES, wanted: Collection[str] = ()) -> Iterator[Case]:
    for seed in range(20):
        yield str(seed), generate(seed, arch=arch, op_types=op_types, wanted=wanted).text, arch, None


def near(arch: str) -> Iterator[Case]:
    for seed in range(4 * len(KINDS)):
        yield str(seed), near_limits(seed, arch), arch, None


def few(arch: str) -> Iterator[Case]:
    for seed in range(120):
        yield str(seed), one_or_two(seed, arch), arch, None


def linked(make: Callable[[int], tuple[str, str]], *more: int) -> Iterator[Case]:
    """`more`: seeds that are drawn beside the first."""
    for seed in (*range(24), *more):
        text, links = make(seed)
        yield str(seed), text, WORMHOLE, cluster_of(yaml.safe_load(links), "cluster.yaml")


def copied_on() -> Iterator[Case]:
    for seed in range(8):
        yield f"{seed}", copies(seed), WORMHOLE, None
        yield f"{seed}, stacked", stacked_copies(seed), WORMHOLE, None
        yield f"{seed}, linked", stacked_copies(seed, linked=True), WORMHOLE, row_of_chips((0, 1))


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "generated for wormhole_b0": partial(generated, WORMHOLE),
    "generated for grayskull": partial(generated, GRAYSKULL),
    "fused": partial(generated, WORMHOLE, ("fused_op",), ("matmul",)),
    "of rows": partial(generated, WORMHOLE, ("embedding", "tilizer", "topk", "splice", "depthwise")),
    "near the limits of wormhole_b0": partial(near, WORMHOLE),
    "examples": examples,
    "near the limits of grayskull": partial(near, GRAYSKULL),
    "one or two on wormhole_b0": partial(few, WORMHOLE),
    "one or two on grayskull": partial(few, GRAYSKULL),
    "chips": lambda: linked(chips, 26),  # which gathers what comes from another chip's queue
    "copied": partial(linked, copied),
    "to itself": partial(linked, to_itself),
    "padded": partial(linked, padded),
    "copies": copied_on,
}


def lines(name: str, text: str, arch: str, cluster: Cluster | None) -> Iterator[str]:
    netlist = load.check_text(text, arch=arch).netlist
    if netlist is not None:
        try:
            for epoch in route_netlist(netlist, phases=True, cluster=cluster):
                yield f"{name}, epoch {epoch.number}: {'; '.join(told(epoch, netlist.arch_name))}"
        except UnsupportedError as error:
            yield f"{name}: {error}"
    findings = check_text(text, arch=arch, cluster=cluster).diagnostics
    counts = Counter(item.rule for item in findings)
    if counts:
        said = digest("".join(f"{item.rule} {item.line} {item.message}" for item in findings))
        yield f"{name}, findings: {', '.join(f'{rule} {count}' for rule, count in sorted(counts.items()))} ({said})"


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


def today(group: str) -> list[str]:
    return [f"{group} {line}" for case in GROUPS[group]() for line in lines(*case)]


@pytest.mark.parametrize("group", GROUPS)
def test_netlists_are_routed_as_today(group: str) -> None:
    kept = KEPT.read_text(encoding="utf-8").splitlines()
    assert today(group) == [line for line in kept if line.startswith(f"{group} ")]


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for group in GROUPS for line in today(group)), encoding="utf-8")
