"""What net2pipe refuses is refused by a rule of its own, and what is nearly the same is not; its program agrees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from buda_emu.netlist.load import check_text as loaded
from buda_emu.performance.routing.checking import check_text
from performance.routing.texts import ONE, Size, netlist, op, queue, with_fused
from vendor_router import needs_vendor_router, pipe_graphs


@dataclass(frozen=True)
class Case:
    """A netlist that breaks `rule`, one that nearly does, and what the finding says."""

    rule: str
    wrong: str
    right: str
    says: str
    arch: str = "wormhole_b0"


def _read(
    source: tuple[int, Size, Size], reader: tuple[int, Size, Size], tms: str, grid: Size = (1, 1), **more: str
) -> str:
    """A nop `first` of one core, and a nop `second` that reads it through TMs: (t, mblock, ublock) of each."""
    (t, mblock, ublock), (own_t, own_mblock, own_ublock) = source, reader
    return netlist(
        [queue("a", t=t, mblock=mblock, ublock=ublock), queue("o", "second", grid, own_t, own_mblock, own_ublock)],
        [
            op("first", "nop", ["a"], t=t, mblock=mblock, ublock=ublock),
            op(
                "second",
                "nop",
                ["first"],
                grid,
                own_t,
                own_mblock,
                own_ublock,
                at=(0, 1),
                more=f", input_0_tms: [{tms}]{more.get('pad', '')}",
            ),
        ],
    )


def _broadcast(attributes: str, tms: str, mblock: Size, t: int, source: Size = (1, 1)) -> str:
    return netlist(
        [
            queue("a", t=t, mblock=mblock),
            queue("b", t=t, mblock=source),
            queue("o", "sum", t=t, mblock=mblock),
        ],
        [
            op("copy", "nop", ["b"], t=t, mblock=source),
            op(
                "sum",
                "add",
                ["a", "copy"],
                t=t,
                mblock=mblock,
                at=(0, 1),
                attributes=attributes,
                more=f", input_1_tms: [{tms}]",
            ),
        ],
    )


def _embedding(mblock: Size, ublock: Size) -> str:
    return netlist(
        [
            queue("a", mblock=mblock, ublock=ublock, entries=1, more=", layout: flat"),
            queue("i", df="RawUInt32"),
            queue("o", "look", (1, 2), mblock=(1, 4)),
        ],
        [
            op(
                "look",
                "embedding",
                ["a", "i"],
                (1, 2),
                mblock=(1, 4),
                in_df="Float16, RawUInt32",
                attributes="num_indices: 32",
            ),
        ],
    )


def _readers(count: int, *, through: bool) -> str:
    """`count` nops on one core each read another's result, or `through` two more nops that share them."""
    first = op("first", "nop", ["a"], mblock=(8, 8), buffers=1)
    queues, ops = [queue("a", mblock=(8, 8))], [first]
    sources = ["first"] * count
    if through:
        ops += [op(f"share{half}", "nop", ["first"], mblock=(8, 8), buffers=1, at=(9, half)) for half in (0, 1)]
        sources = [f"share{number % 2}" for number in range(count)]
    for number, source in enumerate(sources):
        name = f"n{number:02}"
        at = (1 + number // 8, number % 8)
        ops.append(op(name, "nop", [source], mblock=(8, 8), buffers=1, at=at))
        queues.append(queue(f"q{name}", name, mblock=(8, 8)))
    return netlist(queues, ops)


def _fed(count: int) -> str:
    return netlist([queue("a"), *(queue(f"o{number}", "copy") for number in range(count))], [op("copy", "nop", ["a"])])


def _fused(steps: Sequence[str], inputs: Sequence[str], queues: Sequence[str], grid: Size, intermediates: int) -> str:
    """A fused op on queues that feeds one."""
    text = netlist(
        [*queues, queue("o", "join", grid)], [op("join", "fused_op", inputs, grid, attributes="fused_op_id: 0")]
    )
    return with_fused(text, steps, len(inputs), intermediates)


def _sum_of(count: int) -> str:
    """One core reads `count` queues."""
    steps = ["s1: {type: add, inputs: [input0, input1], output: intermed0"]
    for number in range(2, count):
        result = "output" if number == count - 1 else f"intermed{number - 1}"
        last = f"intermed{number - 2}"
        steps.append(f"s{number}: {{type: add, inputs: [{last}, input{number}], pop: [{last}], output: {result}")
    names = [f"a{number}" for number in range(count)]
    return _fused(steps, names, [queue(name) for name in names], ONE, count - 2)


def _products(grid: Size) -> str:
    """The sum of two products on several cores."""
    down, across = (grid[0], 1), (1, grid[1])
    queues = [queue(f"{name}{number}", grid=size) for number in (0, 1) for name, size in (("a", down), ("b", across))]
    steps = [
        f"m{number}: {{type: matmul, inputs: [input{2 * number}, input{2 * number + 1}], "
        f"attributes: {{m_k: 1, u_kt: 1}}, output: intermed{number}"
        for number in (0, 1)
    ]
    steps.append("s: {type: add, inputs: [intermed0, intermed1], pop: [intermed0, intermed1], output: output")
    return _fused(steps, ["a0", "b0", "a1", "b1"], queues, grid, 2)


def _apart(
    source: int, target: int = 0, others: Mapping[int, Sequence[str]] | None = None, arch: str = "wormhole_b0"
) -> str:
    """A nop of chip 0 that reads a queue of one chip and feeds one of another."""
    queues = [queue("a", chip=source), queue("o", "copy", chip=target)]
    return netlist(queues, [op("copy", "nop", ["a"])], arch, others=others)


def _gathered(chip: int) -> str:
    """A nop of chip 0 that gathers the two buffers of a queue."""
    queues = [queue("a", grid=(1, 2), chip=chip), queue("o", "copy", mblock=(1, 2))]
    return netlist(queues, [op("copy", "nop", ["a"], mblock=(1, 2))], others={1: []})


def _multicast(chip: int) -> str:
    """A product of chip 0 of which both cores get the right operand."""
    queues = [queue("a", grid=(2, 1)), queue("b", chip=chip), queue("o", "product", (2, 1))]
    made = op("product", "matmul", ["a", "b"], (2, 1), attributes="m_k: 1, u_kt: 1")
    return netlist(queues, [made], others={1: []})


def _ring(target: int) -> str:
    """Four chips of grayskull that pass a tensor on, the first of which feeds a queue of `target` too."""
    chips = {chip: [op(f"copy{chip}", "nop", ["copy" if chip == 1 else f"copy{chip - 1}"])] for chip in (1, 2, 3)}
    queues = [queue("a"), queue("b", "copy", chip=target), queue("o", "copy3", chip=3)]
    return netlist(queues, [op("copy", "nop", ["a"])], "grayskull", others=chips)


def _graphs(executed: Sequence[str]) -> str:
    """Three graphs of one nop each, one after the other."""
    names = ("main", "middle", "third")
    text = netlist(
        [queue("a"), *(queue(f"o_{name}", f"copy_{name}") for name in names)], [op("copy_main", "nop", ["a"])]
    )
    more = "".join(
        f"  {name}:\n    target_device: 0\n    input_count: 1\n{op(f'copy_{name}', 'nop', ['a'])}\n"
        for name in names[1:]
    )
    begin, end = text.replace("programs:", more + "programs:").split("      - execute: ")
    return begin + "".join(
        "      - execute: " + end.replace("graph_name: main", f"graph_name: {one}") for one in executed
    )


def _named(name: str) -> str:
    return _graphs(["main"]).replace("\n  main:", f"\n  {name}:").replace("graph_name: main", f"graph_name: {name}")


def _twice(prologue: str) -> str:
    """A graph that keeps its queue in L1, executed again."""
    text = netlist([queue("a"), queue("o", "copy")], [op("copy", "nop", ["a"])], kept=("a",))
    again = "      - execute: " + text.split("      - execute: ")[1]
    return text + again.replace("prologue: true", f"prologue: {prologue}")


def _unread(readers: Sequence[str]) -> str:
    return netlist(
        [queue("a"), queue("o", "copy"), *(queue(name, "other") for name in readers)],
        [op("copy", "nop", ["a"]), op("other", "nop", ["a"], at=(0, 1))],
    )


def _stacked_queue(through: bool) -> str:
    blocks: Size = (1, 1)
    copy = op("copy", "nop", ["a"], t=4)
    if not through:
        return netlist([queue("a", t=4), queue("o", "copy", (4, 1), more=", input_tms: [vstack: 4]")], [copy])
    second = op("second", "nop", ["copy"], (4, 1), mblock=blocks, at=(1, 0), more=", input_0_tms: [vstack: 4]")
    return netlist([queue("a", t=4), queue("o", "second", (4, 1))], [copy, second])


def _tilized(operands: int) -> str:
    """A tilizer of so many queues."""
    names = [f"a{number}" for number in range(operands)]
    flat = [queue(name, mblock=(1, 2), entries=1, more=", layout: flat") for name in names]
    return netlist([*flat, queue("o", "tiles", mblock=(1, 2))], [op("tiles", "tilizer", names, mblock=(1, 2))])


def _reduced(operands: int) -> str:
    """A reduce of so many operands."""
    reads = op("sum", "reduce", ["a"] * operands, attributes="dim: r, type: max, m_k: 1, u_kt: 1")
    return netlist([queue("a"), queue("o", "sum")], [reads])


CASES = (
    Case(
        "V320",
        _read((2, ONE, ONE), (4, ONE, ONE), "broadcast: {z: 2}"),
        _read((1, ONE, ONE), (4, ONE, ONE), "broadcast: {z: 4}"),
        "broadcast: {z: 2} of a tensor with t 2",
    ),
    Case(
        "V321",
        _read((4, (2, 1), ONE), (1, (1, 8), ONE), "vstack: 4, transpose"),
        _read((4, (2, 1), ONE), (1, (1, 8), ONE), "transpose, hstack: 4"),
        "transpose follows vstack",
    ),
    Case(
        "V322",
        _read((3, (1, 2), ONE), (2, (3, 1), ONE), "hslice: 2, vstack: 3"),
        _read((3, (1, 2), ONE), (1, (6, 1), ONE), "hslice: 2, vstack: 6"),
        "stacks 3 pieces of rows, 2 slices come from one t",
    ),
    Case(
        "V323",
        _read((4, (2, 1), ONE), (1, (9, 1), ONE), "vstack: 4", pad=", input_0_pad: {rt: 1, ct: 0, pad_value: 0.0}"),
        _read((4, (2, 1), ONE), (1, (10, 1), ONE), "vstack: 4", pad=", input_0_pad: {rt: 2, ct: 0, pad_value: 0.0}"),
        "1 padding tile rows are not a whole number of pieces of 2",
    ),
    Case(
        "V324",
        _read((4, (3, 1), ONE), (1, (4, 1), ONE), "vstack: 4", (3, 1)),
        _read((4, (3, 1), ONE), (1, (6, 1), ONE), "vstack: 4", (2, 1)),
        "4 stacked pieces over 3 rows of cores",
    ),
    Case(
        "V325",
        _read((3, (1, 2), ONE), (1, (1, 2), (1, 3)), "hstack: 3"),
        _read((3, (1, 2), ONE), (1, (1, 3), (1, 2)), "hstack: 3"),
        "pieces have 2 tile columns, an ublock that is read has 3",
    ),
    Case(
        "V326",
        _read((2, (2, 2), ONE), (1, ONE, (2, 4)), "hstack: 2"),
        _read((2, (1, 2), ONE), (1, ONE, (1, 4)), "hstack: 2"),
        "pieces of 2x2 tiles lie within ublocks of 2x4",
    ),
    Case(
        "V327",
        _read((4, ONE, ONE), (1, (2, 2), ONE), "vstack: 2, hstack: 2"),
        _read((4, ONE, ONE), (1, (2, 2), ONE), "hstack: 2, vstack: 2"),
        "pieces are stacked downward first",
    ),
    Case(
        "V328",
        _broadcast("kernel_broadcast: {input_1: 1}", "broadcast: {r: 2}", (2, 1), 4),
        _broadcast("kernel_broadcast_per_t: {input_1: 1}", "broadcast: {r: 2}", (2, 1), 4),
        "kernel_broadcast of a producer with t 4",
    ),
    Case(
        "V329",
        _broadcast("kernel_broadcast: {input_1: 2}", "broadcast: {c: 4}", (2, 4), 1, (2, 1)),
        _broadcast("kernel_broadcast: {input_1: 2}", "broadcast: {r: 4}", (8, 1), 1, (2, 1)),
        "kernel_broadcast keeps 2 tiles, but the operand does not repeat them",
    ),
    Case("V330", _embedding((1, 1), (1, 8)), _embedding((1, 8), (1, 1)), "share 1 columns of mblocks"),
    Case("V332", _stacked_queue(False), _stacked_queue(True), "would get stacked pieces in turn"),
    Case("V336", _unread(()), _unread(("p",)), "nothing reads its result"),
    Case("V337", _ring(2), _ring(3), "b is on chip 2, chip 0 reaches its neighbours in the ring only", "grayskull"),
    Case(
        "V337", _apart(0, 2, None, "grayskull"), _apart(0, 1, None, "grayskull"), "chips 0, 2 form no ring", "grayskull"
    ),
    Case("V338", _apart(0, 1, {1: []}), _apart(1, 0, {1: []}), "o is on chip 1, to which nothing writes"),
    Case("V338", _gathered(1), _gathered(0), "a is on chip 1, from which pipes neither gather nor multicast"),
    Case("V338", _multicast(1), _multicast(0), "b is on chip 1, from which pipes neither gather nor multicast"),
    Case("V339", _apart(1), _apart(1, 0, {1: []}), "a is on chip 1, which runs no graph in this epoch"),
    Case("V345", _apart(0, 0, {1: []}, "grayskull"), _ring(1), "an epoch without ops", "grayskull"),
    Case("V346", _named("g"), _named("g0"), "g is a name of one character"),
    Case("V347", _graphs(["main", "third"]), _graphs(["main", "middle"]), "the earlier graph middle is never executed"),
    Case("V348", _twice("false"), _twice("true"), "main is executed with different prologue or epilogue of a"),
    Case("V340", _readers(30, through=False), _readers(30, through=True), "core [0, 0] needs 30 streams"),
    Case("V342", _sum_of(9), _sum_of(8), "core [0, 0] needs 9 pipes that read from DRAM, it has 8"),
    Case("V084", _products((2, 2)), _products((2, 1)), "4 operands are multicast"),
    Case("V361", _reduced(2), _reduced(1), "input 1, a, is read by nothing of the op"),
    Case("V361", _tilized(2), _tilized(1), "input 1, a1, is read by nothing of the op"),
    Case("V343", _fed(9), _fed(8), "core [0, 0] needs 9 pipes that write to DRAM, it has 8"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_the_only_one(case: Case) -> None:
    assert loaded(case.wrong, arch=case.arch, strict=True).ok
    result = check_text(case.wrong, arch=case.arch)
    errors = [one for one in result.diagnostics if one.severity == "error"]
    assert not result.ok
    assert {one.rule for one in errors} == {case.rule}
    assert case.says in errors[0].message
    assert errors[0].line
    assert errors[0].source_line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_near_miss_is_none(case: Case) -> None:
    result = check_text(case.right, arch=case.arch)
    assert result.ok, [one.message for one in result.diagnostics]


@needs_vendor_router
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_net2pipe_says_so_too(case: Case, tmp_path: Path) -> None:
    for text, accepted in ((case.wrong, False), (case.right, True)):
        path = tmp_path / "netlist.yaml"
        path.write_text(text)
        found = list(pipe_graphs(path, case.arch, tmp_path / str(accepted)))
        assert bool(found) == accepted, text
