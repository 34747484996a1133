"""Every list of a netlist grown ten times costs about ten times the work, every number nothing: counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.yaml_reader import read_bytes  # noqa: F401 - imported before anything is counted
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

SMALL, LARGE = 40, 400
MOST = 1.01 * (LARGE - 1) / (SMALL - 1)  # times the work: lines are counted, so that little is enough to be seen

ONE = [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))]
NOP = [graph("g", op("n", "nop", ["a"]))]
IO = [queue("a"), queue("o", "n")]


def queues(n: int) -> str:
    return text([*IO, *(queue(f"q{i}") for i in range(n))], NOP, ONE)


def ops(n: int) -> str:
    chain = [op(f"n{i}", "nop", [f"n{i - 1}" if i else "a"], loc=(i % 8, i // 8 % 8)) for i in range(n)]
    return text([queue("a"), queue("o", f"n{n - 1}")], [graph("g", *chain)], ONE)


def readers(n: int) -> str:
    """One queue that many ops read."""
    many = [op(f"n{i}", "nop", ["a"], loc=(i % 8, i // 8 % 8)) for i in range(n)]
    return text([queue("a"), *(queue(f"o{i}", f"n{i}") for i in range(n))], [graph("g", *many)], ONE)


def graphs(n: int, device: Callable[[int], int] = lambda _: 0) -> str:
    """Each executed once, one after the other."""
    return text(
        [
            line
            for i in range(n)
            for line in (queue(f"a{i}", device=device(i)), queue(f"o{i}", f"n{i}", device=device(i)))
        ],
        [graph(f"g{i}", op(f"n{i}", "nop", [f"a{i}"]), device=device(i)) for i in range(n)],
        [program("p", "var: {$c_zero: 0}", *(execute(f"g{i}", fifo_settings(f"a{i}")) for i in range(n)))],
    )


def chips(n: int) -> str:
    """Graphs on chips of their own, which become one temporal graph."""
    return graphs(n, lambda i: i)


def two_chips(n: int) -> str:
    return graphs(n, lambda i: i % 2)


def programs(n: int) -> str:
    body = ("var: {$c_zero: 0}", execute("g", fifo_settings("a")))
    return text(IO, NOP, [program(f"p{i}", *body) for i in range(n)])


def executes(n: int) -> str:
    return text(IO, NOP, [program("p", "var: {$c_zero: 0}", *[execute("g", fifo_settings("a"))] * n)])


def variables(n: int) -> str:
    declared = [f"staticvar: {{$v{i}: {i}}}" for i in range(n)]
    changed = [f"varinst: [$v{i}, inc, 1]" for i in range(n)]
    return text(IO, NOP, [program("p", "var: {$c_zero: 0}", *declared, *changed, execute("g", fifo_settings("a")))])


def loops(n: int) -> str:
    return text(
        IO,
        NOP,
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                *["loop: 2", "varinst: [$c_zero, set, 0]", "endloop"] * n,
                execute("g", fifo_settings("a")),
            )
        ],
    )


def settings(n: int) -> str:
    names = [f"a{i}" for i in range(n)]
    many = [op(f"n{i}", "nop", [name], loc=(i % 8, i // 8 % 8)) for i, name in enumerate(names)]
    return text(
        [*map(queue, names), *(queue(f"o{i}", f"n{i}") for i in range(n))],
        [graph("g", *many)],
        [program("p", "var: {$c_zero: 0}", execute("g", *map(fifo_settings, names)))],
    )


def dynamic(n: int) -> str:
    names = [f"d{i}" for i in range(n)]
    return text(
        [*IO, *(queue(name) for name in names)],
        NOP,
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                f"allocate_queue: [{', '.join(names)}]",
                execute("g", fifo_settings("a")),
                f"deallocate_queue: [{', '.join(names)}]",
            )
        ],
    )


def rams(n: int) -> str:
    """All at one place: views of each other."""
    line = queue("r", kind="ram")
    return text([*IO, *(line.replace("  r:", f"  r{i}:") for i in range(n))], NOP, ONE)


def tms(n: int) -> str:
    chain = ", ".join(["transpose"] * n)
    return text(IO, [graph("g", op("n", "nop", ["a"], more=f", input_0_tms: [{chain}]"))], ONE)


def ram_settings_of_all(n: int) -> str:
    names = [f"r{i}" for i in range(n)]
    body = execute("g", fifo_settings("a"), *map(ram_settings, names))
    return text([*IO, *(queue(name, kind="ram") for name in names)], NOP, [program("p", "var: {$c_zero: 0}", body)])


def work(source: str) -> int:
    """Python lines that a check executes."""
    data = source.encode()
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> "Callable[..., object]":
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        check_bytes(data, "net.yaml")
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "grown",
    [queues, ops, readers, graphs, chips, two_chips, programs, executes, variables, loops, settings, dynamic, rams, tms,
     ram_settings_of_all],
)  # fmt: skip
def test_lists(grown: Callable[[int], str]) -> None:
    work(grown(2))  # what is looked up once
    small, large = work(grown(SMALL)), work(grown(LARGE))
    base = work(grown(1))
    assert (large - base) / (small - base) < MOST


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("entries: 4", "entries: 2000000000"),
        ("$c_zero: 0", "$c_zero: 2000000000"),
        ("input_count: 1", "input_count: 999999999"),
        ("mblock: [1, 1]", "mblock: [30000, 30000]"),
        (" t: 1", " t: 1000000"),
        ("grid_size: [1, 1]", "grid_size: [9999, 9999]"),
        ("buf_size_mb: 2", "buf_size_mb: 2000000000"),
        ("target_device: 0", "target_device: 1000000000"),
    ],
)
def test_numbers(old: str, new: str) -> None:
    source = text(IO, NOP, ONE)
    assert old in source
    work(source)
    assert work(source.replace(old, new)) < 3 * work(source)
