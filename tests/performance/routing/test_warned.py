"""What net2pipe warns of is a warning with `--strict`, with the number that net2pipe counts."""

import re
from pathlib import Path

import pytest

from buda_emu.performance.routing.checking import check_text
from performance.routing.near_limits import near_limits
from performance.routing.texts import netlist, op, queue
from vendor_router import ARCHS, needs_vendor_router, pipe_warnings

Found = set[tuple[str, str, int]]  # rule, op, number


def _read(count: int) -> str:
    """`count` nops that read one result."""
    queues, ops = [queue("a")], [op("first", "nop", ["a"])]
    for number in range(count):
        name = f"n{number:02}"
        ops.append(op(name, "nop", ["first"], at=(1 + number // 8, number % 8)))
        queues.append(queue(f"q{name}", name))
    return netlist(queues, ops)


def _turned(rows: int, columns: int, *, from_op: bool) -> str:
    """A nop that transposes a result, or a queue, of one core."""
    before, after = (rows, columns), (columns, rows)
    first = [op("first", "nop", ["a"], mblock=before, buffers=1)] if from_op else []
    turned = op(
        "second",
        "nop",
        ["first" if from_op else "a"],
        mblock=after,
        buffers=1,
        at=(0, 1),
        more=", input_0_tms: [transpose]",
    )
    text = netlist([queue("a", mblock=before), queue("o", "second", mblock=after)], [*first, turned])
    return text.replace("Float16", "Bfp2")


def _warned(text: str, arch: str = "wormhole_b0") -> Found:
    found: Found = set()
    for one in check_text(text, arch=arch).diagnostics:
        if one.rule in ("V357", "V358", "V360"):
            assert one.severity == "warning"
            said = re.match(r"op (\w+): a? ?.*? (?:to|takes|at) (\d+) ", one.message)
            assert said is not None
            found.add((one.rule, said[1], int(said[2])))
    return found


CASES = [
    (_read(16), set[tuple[str, str, int]]()),
    (_read(17), {("V357", "first", 17)}),
    (_turned(30, 59, from_op=True), set[tuple[str, str, int]]()),
    (_turned(30, 61, from_op=True), {("V358", "first", 1830)}),
    (_turned(40, 50, from_op=False), set[tuple[str, str, int]]()),
    (_turned(40, 51, from_op=False), {("V360", "second", 2040)}),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_what_is_warned_of(text: str, expected: Found) -> None:
    assert _warned(text) == expected


@needs_vendor_router
@pytest.mark.parametrize(("text", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_net2pipe_warns_of_the_same(text: str, expected: Found, tmp_path: Path) -> None:
    assert pipe_warnings(text, "wormhole_b0", tmp_path) == expected


@needs_vendor_router
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 200))])
def test_net2pipe_warns_of_the_same_near_limits(seed: int, arch: str, tmp_path: Path) -> None:
    text = near_limits(seed, arch)
    expected = pipe_warnings(text, arch, tmp_path)
    if expected is not None:
        assert _warned(text, arch) == expected
