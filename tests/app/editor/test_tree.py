"""A text that is read piece by piece has the tree of one that is read at once, each node in its place."""

import pytest

from buda_emu.app.editor import tree
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.nodes import Mapping, Scalar
from buda_emu.netlist.yaml_reader import UnreadableError, read_tree


def told(node):
    """A node with its place, and those below it."""
    place = node.line, node.column, node.end_column
    if isinstance(node, Scalar):
        return node.text, node.plain, place
    if isinstance(node, Mapping):
        return {"map": [(told(key), told(value)) for key, value in node.pairs]}, place
    return [told(item) for item in node.items], place


WHOLE = (
    "a: 1\nb: 2\n",
    "a: 1\n\n# said\n\nb: {c: [1, 2],\n    d: 'x'}\n\n\nc: 3\n\n",
    "a:\n  b:\n    c: 1\n    d: 2\n  e: 3\nf: 4\n",
    "a:\n  b:\n\n    c: 1\n  # e\n  e:\n    - 1\n    - 2\n",
    "a:\n- 1\n- b: 2\n  c: 3\nd:\n- 4\n",
    "a:\n  - p:\n    - q: 1\n    - r: 2\n  - s:\n      - t: 3\n",
    "a:\n  - p:\n      q: 1\n      r: 2\n  - s: {t: 3}\n",
    "a:\n  -   p:\n      - q: 1\n  -   r:\n        t: 3\n",
    "a:\n  - - p: 1\n    - q: 2\n  - - r: 3\n",
    "a: [1,\n  2,\n]\nb: {\n  c: 3\n}\n",
    '"a b":\n  c: 1\n',
    "p:\n  - q:\n    - var: [$a, $b]\n    - loop: $a\n    -   execute: {a: g, b: {\n          q: {c: d}}}\n    - end\n",
)


@pytest.mark.parametrize("text", WHOLE)
def test_the_tree_of_a_whole_text(text):
    expected = told(read_tree(text))
    reader = TreeReader()
    found = reader.read(text)
    assert found.problem is None
    assert told(found.root) == expected
    assert told(reader.read(f"# one line more\n{text}").root) == told(read_tree(f"# one line more\n{text}"))


@pytest.mark.parametrize("text", [text for text in WHOLE if "\n- " not in text])  # lists further in than their keys
def test_it_is_read_piece_by_piece(text, monkeypatch):
    monkeypatch.setattr(tree, "_read_whole_text", lambda _text: pytest.fail("it was read at once"))
    assert TreeReader().read(text).problem is None


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: [1, 2\n",
        "a: 1\nb: ]\nc: 3\n",
        "a: 1\nb: {c: [}\nd: 4\n",
        "a: 1\n  b: 2\n",
        "a:\n  b: 1\n c: 2\n",
        "a:\n  b: 'x\n  c: 1\nd: 2\n",
        "a:\n  - b: [\n    - c: 1\n",
        "a:\n  b: [1,\nc: 2\n",
        "a: 1\n}\n",
    ],
)
def test_what_is_wrong_with_a_text_is_what_is_wrong_with_the_whole(text):
    with pytest.raises(UnreadableError) as error:
        read_tree(text)
    found = TreeReader().read(text).problem
    assert found is not None
    assert (found.line, found.column, str(found)) == (error.value.line, error.value.column, str(error.value))


@pytest.mark.parametrize(
    "text", ["a: 1\nb: ]\nc: 3\n", "a:\n  b: {c: [}\nd: 4\n", "a:\n  - b: 1\n  - c: ]\n  - d: 2\n"]
)
def test_what_is_wrong_with_a_piece_is_known_without_the_whole(text, monkeypatch):
    monkeypatch.setattr(tree, "_read_whole_text", lambda _text: pytest.fail("it was read at once"))
    assert TreeReader().read(text).problem is not None


def test_of_a_program_only_the_instruction_that_changed_is_read_again(monkeypatch):
    read, known = [], tree.read_any
    monkeypatch.setattr(tree, "read_any", lambda text: read.append(text) or known(text))
    text = "p:\n  - q:\n    - var: [a]\n    - loop: 1\n    - end\n  - r:\n      s: 2\n      t: 3\n"
    reader = TreeReader()
    reader.read(text)
    for old, new, again in (("loop: 1", "loop: 2", "    - loop: 2"), ("t: 3", "t: 4", "      t: 4")):
        read.clear()
        text = text.replace(old, new)
        reader.read(text)
        assert read == [again]


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "word\n", "[1, 2]\n"])
def test_a_text_that_is_no_map_has_an_empty_one(text):
    found = TreeReader().read(text)
    assert told(found.root) == ({"map": []}, (1, 1, 2))
    assert found.problem is not None
