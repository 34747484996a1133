"""Load, print, load gives an equal netlist (docs/reference/netlist.md)."""

from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from buda_emu.netlist import nodes
from buda_emu.netlist.load import check, check_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.printer import netlist_text
from netlist.netlist_texts import NETLIST

PARALLEL = NETLIST.replace("target_device: 0", "target_device: [0, 1]")


def again(netlist: Netlist) -> Netlist:
    """What is read from the printed text."""
    result = check_text(netlist_text(netlist), netlist.path, netlist.arch_name)
    assert result.netlist is not None, result.diagnostics
    return result.netlist


def plain(node: nodes.Node) -> object:
    """A tree without its positions."""
    if isinstance(node, nodes.Scalar):
        return None if node.is_null else node.text
    if isinstance(node, nodes.Sequence):
        return [plain(item) for item in node.items]
    return [(plain(key), plain(value)) for key, value in node.pairs]


def assert_same(one: Netlist, two: Netlist) -> None:
    """Equal in all that a netlist says; findings have places of their own."""
    assert replace(one, sections={}, diagnostics=()) == replace(two, sections={}, diagnostics=())
    assert {name: plain(node) for name, node in one.sections.items()} == {
        name: plain(node) for name, node in two.sections.items()
    }


def read(text: str) -> Netlist:
    result = check_text(text)
    assert result.netlist is not None, result.diagnostics
    return result.netlist


@pytest.mark.parametrize("text", [NETLIST, PARALLEL], ids=["one chip", "two chips"])
def test_a_printed_netlist_reads_as_an_equal_one(text: str) -> None:
    netlist = read(text)
    assert_same(netlist, again(netlist))


def test_copies_are_written_once_with_their_chips() -> None:
    text = netlist_text(read(PARALLEL))
    assert text.count("target_device: [0, 1]") == 3  # two queues, one graph
    assert "src.0" not in text
    assert text.count("execute:") == 1


def test_sections_that_no_field_stands_for_are_kept() -> None:
    own = """own:
  note: "a: b # c"
  list: [1, {two: ~}, []]
  nothing:
"""
    netlist = read(NETLIST + own)
    assert_same(netlist, again(netlist))


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_valid_netlist_of_the_corpus_is_read_again_as_it_was(corpus: Path, root: Path, share: int) -> None:
    """One of four always, all with --slow."""
    files = sorted([*(corpus / "netlists").rglob("*.yaml"), *(root / "netlists").glob("*.yaml")])[::share]
    valid = 0
    for path in files:
        netlist = check(path).netlist
        if netlist is not None:
            assert_same(netlist, again(netlist))
            valid += 1
    assert valid >= 331 // share - 4


def test_valid_mutants_are_read_again_as_they_were(corpus: Path) -> None:
    """Repeated keys, odd words and values that no compiler writes."""
    for path in sorted((corpus / "mutants").glob("*.yaml")):
        netlist = check(path).netlist
        if netlist is None:
            continue
        if any(isnan(op.attributes.relu_threshold) for op in netlist.ops.values()):  # NaN equals nothing
            assert netlist_text(again(netlist)) == netlist_text(netlist)
        else:
            assert_same(netlist, again(netlist))
