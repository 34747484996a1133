"""The layout of netlists: what changes, what never does."""

import re

import pytest

from buda_emu.netlist.formatter import Layout, format_text, read_spans
from buda_emu.netlist.load import check_text
from buda_emu.netlist.printer import netlist_text
from buda_emu.netlist.yaml_reader import UnreadableError, decode
from shared_files import CORPUS, ROOT, corpus_files

VERDICTS = CORPUS / "verdicts.tsv"
_ROWS = [line.split("\t") for line in VERDICTS.read_text().splitlines()[1:]] if VERDICTS.is_file() else []
ACCEPTED = {row[0] for row in _ROWS if row[1] == "accept"}
VALID = [one for one in corpus_files("netlists/**/*.yaml") if not ACCEPTED or one.id.split("/", 1)[1] in ACCEPTED]
OWN = sorted(ROOT.glob("netlists/**/*.yaml"))


def test_indentation_spaces_and_blank_lines():
    before = """
devices:
      arch: [ grayskull,wormhole_b0 ]   # both
queues :


    in:    {type: queue , input: HOST,
        # own line
      t: 1,}
programs:
- p:
  - var: {$a:   1}
  -   execute: {graph_name: g, queue_settings: {
               in: {zero: false}}}



"""
    assert (
        format_text(before)
        == """devices:
  arch: [grayskull, wormhole_b0] # both

queues:

  in: {type: queue, input: HOST,
    # own line
    t: 1}

programs:
  - p:
      - var: {$a: 1}
      - execute: {graph_name: g, queue_settings: {
          in: {zero: false}}}
"""
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: {b: , c: }", "a: {b: , c: }\n"),
        ("a: [1\n  , 2]", "a: [1,\n  2]\n"),
        ("a: [1 # one\n  , 2]", "a: [1 # one\n  , 2]\n"),
        ("a: [\n1,\n2,\n]", "a: [\n  1,\n  2,\n]\n"),
        ("a: 'x: {y'   # c", "a: 'x: {y' # c\n"),
        ("a:\n   {b: 1}", "a: {b: 1}\n"),
        ("a: # why\n   {b: 1}", "a: # why\n  {b: 1}\n"),
        ("a: &x {b: 1}\nc: {d: *x , *x : 2}", "a: &x {b: 1}\n\nc: {d: *x, *x : 2}\n"),
        ("a: &x\n     b: 1\nc: *x", "a: &x\n  b: 1\n\nc: *x\n"),
        ("a: |\n     two\n       lines\n", "a: |\n  two\n    lines\n"),
        ("a: |+\n   kept\n\n", "a: |+\n  kept\n\n"),
        ("a: plain\n      folded", "a: plain\n  folded\n"),
        ("a:\n- - b\n  - c\n- d: 1\n  e: 2", "a:\n  - - b\n    - c\n  - d: 1\n    e: 2\n"),
        ("---\na: 1\n...\n# end", "---\na: 1\n# end\n"),
        ("{a: {b: 1},\n      c: 2}", "{a: {b: 1},\n  c: 2}\n"),
        ("a: 1\r\nb:   2\r\n", "a: 1\r\n\r\nb: 2\r\n"),
        ("a:\n  b: 1\n  # of a\n# of c\nc: 1", "a:\n  b: 1\n  # of a\n\n# of c\nc: 1\n"),
        ("? a\n: 1", "a: 1\n"),
        ("a: [b\u2028c]", "a: [b\u2028c]\n"),
        ("{a:: 1, b:: , c: [d:: 2]}", "{a:: 1, b:: , c: [d:: 2]}\n"),
        ("a: !t  x", "a: !t  x\n"),
        ("a: {'b':1, \"c\":[ ] }", "a: {'b': 1, \"c\": []}\n"),
    ],
)
def test_each_rule(before, after):
    assert format_text(before) == after
    assert format_text(after) == after


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "did not find expected node content"),
        ("", "the document is empty"),
        ("a: 1\n---\nb: 2", "a second YAML document"),
        ("? [a, b]\n: 1", "a key needs to be a name"),
        ("a: &x [*x]", "contains itself"),
        ("[" * 200, "nested deeper"),
        ("a:\n\t- b", "a tab"),
    ],
)
def test_what_is_no_netlist_is_said_as_check_says_it(text, said):
    with pytest.raises(UnreadableError, match=re.escape(said)):
        format_text(text)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_own_netlists_stay_what_they_are(path):
    _hold(path)
    assert format_text(path.read_text()) == path.read_text()


@pytest.mark.parametrize("path", VALID[::12])
def test_some_public_netlists_stay_what_they_are(path):
    _hold(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", VALID)
def test_public_netlists_stay_what_they_are(path):
    _hold(path)


def _hold(path):
    """The formatted text loads as an equal netlist with the same comments, and is not changed again."""
    before = decode(path.read_bytes())
    after = format_text(before)
    assert format_text(after) == after
    assert [line.split("#", 1)[1].rstrip() for line in after.splitlines() if "#" in line] == [
        line.split("#", 1)[1].rstrip() for line in re.split("\r\n|\n|\r", before) if "#" in line
    ]
    one, other = check_text(before, str(path)).netlist, check_text(after, str(path)).netlist
    assert one is not None
    assert other is not None
    assert (one.queues, one.graphs, one.fused_ops, one.programs, one.archs, one.program_order) == (
        other.queues,
        other.graphs,
        other.fused_ops,
        other.programs,
        other.archs,
        other.program_order,
    )


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_what_the_printer_writes_has_this_layout(path):
    netlist = check_text(path.read_text(), str(path)).netlist
    printed = netlist_text(netlist)
    assert [line for line in format_text(printed).splitlines() if line] == printed.splitlines()


def test_the_text_before_a_place_is_not_searched_for_each_place():
    class Counted(str):
        searched = 0

        def rfind(self, sub, start, end):
            Counted.searched += end - start - max(super().rfind(sub, start, end), 0)
            return super().rfind(sub, start, end)

    rows = "".join(f"  q{number}: {{input: HOST, t: {number}, df: Float16}}  # one\n" for number in range(300))
    text = f"queues:\n{rows}"
    assert Layout(Counted(text)).write(read_spans(text)) == text.replace("  #", " #")
    assert Counted.searched < 5 * len(text)


def test_a_comment_after_a_break_of_another_kind_stands_where_it_stood():
    text = "a:\n  b: 1\x85  # of b\rc: 2\n"
    assert format_text(text) == "a:\n  b: 1\n  # of b\n\nc: 2\n"
