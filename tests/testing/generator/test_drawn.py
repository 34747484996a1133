"""How often a series of generated netlists has what: whoever changes one draw sees which others move.

`python tests/testing/generator/test_drawn.py` writes the numbers anew, after a change that is meant.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from buda_emu.netlist.model import Netlist
from buda_emu.testing import generate
from buda_emu.testing.coverage.report import Coverage
from buda_emu.testing.generator.netlist import Generated
from buda_emu.testing.generator.steering import evenly

KEPT = Path(__file__).with_name("drawn.txt")
SEEDS = 80


def sizes(netlist: Netlist) -> Iterator[tuple[str, int]]:
    """How large it is."""
    ops = netlist.ops.values()
    yield "ops", len(ops)
    yield "graphs", len(netlist.graphs)
    yield "queues", len(netlist.queues)
    yield "entries", sum(queue.entries for queue in netlist.queues.values())
    yield "buffers", sum(queue.blocking.cells for queue in netlist.queues.values())
    yield "cores", sum(op.blocking.cells for op in ops)
    yield "tiles", sum(op.blocking.t * op.blocking.rows * op.blocking.cols for op in ops)
    yield "tiles of a block", sum(op.blocking.mblock[0] * op.blocking.mblock[1] for op in ops)


def told(series: str, made: Iterable[Generated]) -> Iterator[str]:
    """Lines of one series: its sizes, then by list the names and how many netlists have each."""
    found, total = Coverage(), Counter[str]()
    for item in made:
        found.add(item.netlist)
        total.update(dict(sizes(item.netlist)))
        total.update({"attributes refused": len(item.refused), "drawn anew": item.tries - 1})
    yield f"{series}: {', '.join(f'{name} {count}' for name, count in total.items())}"
    for subject, counts in found.counts.items():
        if counts:
            yield f"{series}, {subject}: {', '.join(f'{name} {counts[name]}' for name in sorted(counts))}"


OF_ALL: dict[str, Callable[[int], Generated]] = {
    **{arch: partial(generate, arch=arch) for arch in ("wormhole_b0", "grayskull", "blackhole")},
    "evenly": evenly,
}
OF_SOME: dict[str, Callable[[int], Generated]] = {
    "products": partial(generate, op_types=("matmul", "depthwise", "sqrt", "log")),
    "rows": partial(generate, op_types=("topk", "embedding", "tilizer", "reduce", "splice")),
}
SERIES = OF_ALL | OF_SOME


def today(series: str) -> list[str]:
    return list(told(series, map(SERIES[series], range(SEEDS))))


def kept(series: str) -> list[str]:
    return [line for line in KEPT.read_text(encoding="utf-8").splitlines() if line.startswith(series)]


@pytest.mark.parametrize("series", OF_ALL)
def test_of_all_op_types_what_is_drawn_is_what_was_drawn(series: str) -> None:
    assert today(series) == kept(series)


@pytest.mark.parametrize("series", OF_SOME)
def test_of_some_op_types_what_is_drawn_is_what_was_drawn(series: str) -> None:
    assert today(series) == kept(series)


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for series in SERIES for line in today(series)), encoding="utf-8")
