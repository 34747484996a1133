"""What is offered makes a legal netlist, in places drawn at random."""

import random

import pytest

from buda_emu.app.editor.completion import complete
from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.load import check_text
from buda_emu.netlist.nodes import Mapping, Scalar
from buda_emu.netlist.yaml_reader import decode
from shared_files import ROOT, corpus_files

SMALL = 9000
OWN = sorted(ROOT.glob("netlists/*.yaml"))
PUBLIC = [one.values[0] for one in corpus_files("netlists/**/*.yaml") if one.values[0] is not None]


def _scalars(node):
    if isinstance(node, Scalar):
        if node.plain and node.text:
            yield node
    elif isinstance(node, Mapping):
        for pair in node.pairs:
            for part in pair:
                yield from _scalars(part)
    else:
        for item in node.items:
            yield from _scalars(item)


def _errors(text):
    return [item for item in check_text(text).diagnostics if item.severity == "error"]


def _texts(paths):
    for path in paths:
        text = decode(path.read_bytes()).replace("\r\n", "\n")
        if len(text) < SMALL and not _errors(text):
            yield text


def _hold(texts, places, seed):
    """Take a word away and write each offered one: none is refused; and most often the word was among them."""
    chosen = random.Random(seed)
    offered = found = 0
    for _ in range(places):
        text = chosen.choice(texts)
        whole = OpenText(text, "net.yaml", TreeReader())
        node = chosen.choice(list(_scalars(whole.tree.root)))
        lines = text.split("\n")
        row = lines[node.line - 1]
        before, after = row[: node.column - 1], row[node.column - 1 + len(node.text) :]
        lines[node.line - 1] = before + after
        typed = OpenText("\n".join(lines), "net.yaml", TreeReader(), whole.netlist)
        offers = complete(typed, node.line, node.column, seconds=60)
        for offer in offers:
            if offer.kind == "key" and not offer.tried:
                continue  # it has no value yet
            assert offer.tried
            lines[node.line - 1] = before + offer.text + after
            assert not _errors("\n".join(lines)), (node.line, node.text, offer)
        offered += bool(offers)
        found += node.text in {offer.text for offer in offers}
    return offered, found


ATTENTION = (ROOT / "netlists/attention.yaml").read_text()


def offered(text, old, new):
    """What is offered at the bar in `new`, which stands in place of the first `old`."""
    assert old in text
    before, _, after = text.replace(old, new, 1).partition("|")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return [offer.text for offer in complete(OpenText(before + after, "net.yaml", TreeReader()), line, column, 60)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("graphs:\n", "graphs:\n  |\n", []),  # a name of one's own
        ("    input_count: 2", "    |", ["input_count"]),  # all but what stands there
        ("bias: true}}", "bias: |}}", ["true", "false"]),
        ("[hslice: 4]", "[|: 4]", ["broadcast", "hslice", "hstack", "vslice", "vstack"]),
        ("[broadcast: {r: 2}]", "[broadcast: {|: 2}]", ["r", "c", "z"]),
    ],
)
def test_all_that_may_stand_in_a_place(old, new, expected):
    assert offered(ATTENTION, old, new) == expected


def test_attributes_are_those_of_the_op_or_all_of_an_op_that_nobody_knows():
    product = set(offered(ATTENTION, "bias: true}}", "|: true}}"))
    assert {"bias", "accumulate", "relu_en"} <= product
    assert not product & {"dim", "slope", "m_k"}
    unknown = ATTENTION.replace("dots: {type: matmul", "dots: {type: matmull")
    every = set(offered(unknown, "{m_k: 1, u_kt: 1}", "{m_k: 1, u_kt: 1, |}"))
    assert {"bias", "accumulate", "relu_en", "dim", "slope"} <= every


def test_what_is_offered_is_legal():
    offered, found = _hold(list(_texts(OWN[:1] + OWN[2:4])) or list(_texts(OWN)), 12, 1)
    assert offered
    assert found


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC, reason="no corpus")
def test_what_is_offered_is_legal_in_public_netlists():
    offered, found = _hold(list(_texts(PUBLIC)), 1000, 2)
    assert offered > 400
    assert found > 0.8 * offered
