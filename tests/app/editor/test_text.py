"""A text that is being typed is judged as `check` judges it, however it came about."""

import random
import time

import pytest

from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import JOINED, TreeReader
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Execute
from buda_emu.netlist.reader import read_document
from shared_files import ROOT

PATHS = [ROOT / f"netlists/{name}.yaml" for name in ("attention", "training", "two_chips", "softmax")]


def _said(found):
    return sorted((item.rule, item.line, item.column, item.end_column, item.severity, item.message) for item in found)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_findings_are_those_of_a_check(path):
    chosen = random.Random(path.stem)
    whole = path.read_text()
    reader, last, text, compared = TreeReader(), None, whole, 0
    for _ in range(60):
        last = OpenText(text, "net.yaml", reader, last.netlist if last else None)
        expected = check_text(text, "net.yaml").diagnostics
        if last.tree.problem is None:
            assert _said(last.findings) == _said(expected)
            compared += 1
        else:
            assert [item.rule for item in expected] == ["V000"]
            assert [item.rule for item in last.findings] == ["V000"]
        text = whole if chosen.random() < 0.2 else _typed(text, chosen)
    assert compared > 15


def _typed(text, chosen):
    """A letter, a line or a word more or less."""
    at = chosen.randrange(len(text))
    lines = text.splitlines(keepends=True)
    number = chosen.randrange(len(lines))
    match chosen.randrange(5):
        case 0:
            return text[:at] + chosen.choice("a1 ,{}[:#") + text[at:]
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            return "".join([*lines[:number], *lines[number + 1 :]])
        case 3:
            return "".join([*lines[:number], lines[number], *lines[number:]])
        case _:
            return text.replace(": 2,", ": 3,", 1)


@pytest.mark.parametrize(
    "joined",
    ["a: &x 1", "*x : 1", "a: |", "a: >-2  # said", "a: [!t 1]", "---", "...", "a:\t1", "{%x: 1}"],
)
def test_what_joins_pieces_is_read_at_once(joined):
    assert any(form.search(f"first: 1\n{joined}\nlast: 2") for form in JOINED)


@pytest.mark.parametrize("apart", ["a: x&y", "a: 2*3 * 4", "a: b|c", "a: |b", "a: 1---2", "a: ....", "a!b: 50%"])
def test_what_does_not_join_them_is_not(apart):
    assert not any(form.search(f"first: 1\n{apart}\nlast: 2") for form in JOINED)


def test_another_version_of_a_long_text_is_read_quickly():
    whole = (ROOT / "netlists/attention.yaml").read_text()
    blocks, reader = [part for part in whole.split("\n\n") if part.startswith("  ")], TreeReader()
    long = "all:\n" + "\n".join(block.replace("x", f"x{number}") for number in range(60) for block in blocks)

    def took(read):
        start = time.process_time()
        read()
        return time.process_time() - start

    first = min(took(lambda: TreeReader().read(long)) for _ in range(2))
    reader.read(long)
    assert min(took(lambda: reader.read(f"{long}#")) for _ in range(6)) < first / 8


def test_what_did_not_change_is_not_read_again():
    whole = (ROOT / "netlists/attention.yaml").read_text()
    reader, first = TreeReader(), ROOT / "netlists/attention.yaml"
    documents = []
    for text in (whole, whole.replace("entries: 2", "entries: 3", 1), whole):
        root = reader.read(text).root
        reader.cache.next()
        documents.append(read_document(root, str(first), None, reader.cache))
    one, other, again = documents
    assert sum(one.queues[name] is not queue for name, queue in other.queues.items()) == 1
    assert sum(other.queues[name] is not queue for name, queue in again.queues.items()) == 1
    (program,) = one.programs
    steps = [
        (before, after)
        for before, after in zip(*(each.programs[program].instructions for each in (one, other)), strict=True)
        if isinstance(before, Execute)
    ]
    assert steps
    assert all(before is after for before, after in steps)


def test_a_queue_on_several_chips_that_did_not_change():
    copies = "{input: HOST, type: queue, entries: 2, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], "
    copies += "df: Float16, target_device: [0, 1], loc: dram, dram: [[0, 0x20000000]]}"
    reader, seen = TreeReader(), []
    for entries in (2, 3):
        text = f"devices: {{arch: wormhole_b0}}\nqueues:\n  a: {copies}\n  b: {copies.replace('2', str(entries), 1)}\n"
        text += "graphs:\n  g: {target_device: 0, input_count: 1}\nprograms:\n  - p: []\n"
        seen.append(OpenText(text, "net.yaml", reader).netlist)
    assert [[*netlist.queues] for netlist in seen] == [["a.0", "a.1", "b.0", "b.1"]] * 2


def test_a_check_in_steps_that_a_later_version_ends():
    whole = (ROOT / "netlists/attention.yaml").read_text()
    first = OpenText(whole, "net.yaml", TreeReader())
    rounds = 0
    while first.check(0):
        rounds += 1
        assert first.known_netlist is None
    assert rounds > 20
    assert _said(first.findings) == _said(check_text(whole, "net.yaml").diagnostics)
    second = OpenText(f"{whole}\n#", "net.yaml", TreeReader(), first.netlist)
    assert second.check(0)
    assert second.known_netlist is first.netlist
    assert second.netlist is not first.netlist
