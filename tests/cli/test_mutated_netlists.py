"""Sound netlists with one or two nodes dropped, doubled, retyped or renumbered: only documented exit codes come out."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buda_emu.cli.main import main
from buda_emu.netlist import nodes
from buda_emu.netlist.yaml_reader import read_tree
from shared_files import CORPUS, ROOT

PUBLIC = (
    "verif/op_tests/netlists/netlist_splice_kernel_broadcast.yaml",
    "verif/op_tests/netlists/netlist_int8_dequant.yaml",
    "verif/op_tests/netlists/netlist_matmul_ident_op_nz_counts.yaml",
    "verif/op_tests/netlists/netlist_topk_k4.yaml",
    "verif/netlist_tests/netlists/basic_ram/netlist_dual_view_ram.yaml",
)
FILES = [*sorted((ROOT / "netlists").glob("*.yaml")), *(CORPUS / "netlists" / name for name in PUBLIC)]
FILES = [path for path in FILES if path.exists()]

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "33",
    "1000",
    "1000000",
    "2147483647",
    "-2147483648",
    "4294967296",
    ".nan",
    ".inf",
)
WORDS = (
    "",
    "null",
    "~",
    "true",
    "r",
    "c",
    "queue",
    "ram",
    "HOST",
    "Bfp4",
    "Float32",
    "Int8",
    "RawUInt32",
    "matmul",
    "$v",
    "[",
)
STEP_SECONDS = 60


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Fails what takes longer."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def all_places(node: nodes.Node) -> Iterator[tuple[list, int]]:
    """(list, index) of every child: a pair of a map, an item of a list."""
    if isinstance(node, nodes.Mapping):
        for index, (_, value) in enumerate(node.pairs):
            yield node.pairs, index
            yield from all_places(value)
    elif isinstance(node, nodes.Sequence):
        for index, item in enumerate(node.items):
            yield node.items, index
            yield from all_places(item)


def scalar(text: str) -> nodes.Scalar:
    return nodes.Scalar(text, True, 1, 1, 1)


def flow(node: nodes.Node) -> str:
    """The tree as flow YAML, doubled keys included."""
    if isinstance(node, nodes.Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(value)}" for key, value in node.pairs) + "}"
    if isinstance(node, nodes.Sequence):
        return "[" + ", ".join(map(flow, node.items)) + "]"
    if not node.plain or any(sign in node.text for sign in "{}[],#&*!|>%@`\"'") or ": " in node.text:
        return "'" + node.text.replace("'", "''") + "'"
    return node.text


def replaced(pair_or_item, value: nodes.Node):
    return (pair_or_item[0], value) if isinstance(pair_or_item, tuple) else value


def mutate(draw, tree: nodes.Mapping) -> None:
    """One change somewhere in the tree."""
    places = list(all_places(tree))
    holder, index = places[draw(st.integers(0, len(places) - 1))]
    old = holder[index]
    value = old[1] if isinstance(old, tuple) else old
    kind = draw(st.sampled_from(("drop", "double", "number", "word", "list", "map", "swap")))
    if kind == "drop":
        del holder[index]
    elif kind == "double":
        holder.insert(index, old)
    elif kind == "number":
        holder[index] = replaced(old, scalar(draw(st.sampled_from(NUMBERS))))
    elif kind == "word":
        holder[index] = replaced(old, scalar(draw(st.sampled_from(WORDS))))
    elif kind == "list":
        holder[index] = replaced(old, nodes.Sequence([value], 1, 1, 1))
    elif kind == "map":
        holder[index] = replaced(old, nodes.Mapping([(scalar("key"), value)], 1, 1, 1))
    else:
        other = draw(st.integers(0, len(holder) - 1))
        holder[index], holder[other] = holder[other], holder[index]


@st.composite
def mutated_netlists(draw) -> str:
    tree = read_tree(draw(st.sampled_from(FILES)).read_text())
    for _ in range(draw(st.integers(1, 2))):
        mutate(draw, tree)
    return flow(tree)


def test_writing_a_tree_again_changes_nothing(tmp_path, capsys):
    for path in FILES:
        again = tmp_path / path.name
        again.write_text(flow(read_tree(path.read_text())))
        assert main(["check", str(again)]) == 0, capsys.readouterr().out
    capsys.readouterr()


def run_and_judge(text, directory, capsys):
    """Check and run one netlist; only documented codes may come out, and `run` refuses what `check` refuses."""
    path = directory / "net.yaml"
    path.write_text(text)
    with limit(STEP_SECONDS):
        checked = main(["check", str(path)])
        ran = main(["run", str(path), "--threads", "1", "--quiet"])
    shown = capsys.readouterr().err
    assert checked in (0, 2), shown
    assert ran in ((0, 2, 3, 4) if checked == 0 else (2,)), shown


common = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], database=None
)


@settings(common, max_examples=100)
@given(text=mutated_netlists())
def test_only_documented_exit_codes(text, tmp_path, capsys):
    run_and_judge(text, tmp_path, capsys)


@pytest.mark.slow
@settings(common, max_examples=3000)
@given(text=mutated_netlists())
def test_only_documented_exit_codes_at_length(text, tmp_path, capsys):
    run_and_judge(text, tmp_path, capsys)
