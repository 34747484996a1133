from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.netlist import yaml_reader
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_bytes, read_tree, split_lines


def plain(node: Node) -> object:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return [(plain(key), plain(value)) for key, value in node.pairs]


def refusal(text: str) -> UnreadableError:
    with pytest.raises(UnreadableError) as caught:
        read_tree(text)
    return caught.value


def test_positions_count_from_one_and_end_behind_the_last_character() -> None:
    root = read_tree("a: 1\nlonger:\n  - [x, 'two words']\n")
    assert (root.line, root.column) == (1, 1)
    key, value = root.pairs[1]
    assert isinstance(key, Scalar)
    assert (key.line, key.column, key.end_column) == (2, 1, 7)
    assert isinstance(value, Sequence)
    inner = value.items[0]
    assert isinstance(inner, Sequence)
    assert (inner.line, inner.column, inner.end_column) == (3, 5, 21)
    words = inner.items[1]
    assert isinstance(words, Scalar)
    assert (words.text, words.plain, words.column, words.end_column) == ("two words", False, 9, 20)


def test_columns_count_characters() -> None:
    _, value = read_tree("ключ: значение").pairs[0]
    assert (value.column, value.end_column) == (7, 15)


def test_duplicate_keys_stay_in_order() -> None:
    assert plain(read_tree("a: 1\nb: 2\na: 3")) == [("a", "1"), ("b", "2"), ("a", "3")]


def test_nothing_is_null_and_quoted_text_is_not() -> None:
    values = [value for _, value in read_tree("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: none").pairs]
    assert [isinstance(value, Scalar) and value.is_null for value in values] == [True, True, True, False, False, False]


def test_an_alias_is_the_node_of_its_anchor() -> None:
    root = read_tree("a: &x [1]\nb: *x")
    assert root.find("a") is root.find("b")


def test_an_anchor_may_be_defined_again() -> None:
    assert plain(read_tree("a: &x 1\nb: *x\nc: &x 2\nd: *x")) == [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")]


def test_merge_keys_and_tags_have_no_meaning() -> None:
    assert plain(read_tree("<<: {a: 1}\nb: !!str 2")) == [("<<", [("a", "1")]), ("b", "2")]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~", "null\n...\n"])
def test_an_empty_document_is_refused(text: str) -> None:
    assert refusal(text).message == "the document is empty"


@pytest.mark.parametrize("text", ["- 1\n- 2", "word", "'a: 1'"])
def test_a_netlist_is_a_map(text: str) -> None:
    assert "map of sections" in refusal(text).message


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: [1, 2\nb: 3", 2, 2),
        ("a: 1\n  b: 2", 2, 4),
        ("a: 'x\n", 2, 1),
        ("a:\n\t- 1", 2, 1),
        ("{a: 1}}", 1, 7),
        ("a: 1\n0", 2, 2),
    ],
)
def test_invalid_yaml_says_where(text: str, line: int, column: int) -> None:
    error = refusal(text)
    assert error.message.startswith("invalid YAML: ")
    assert (error.line, error.column) == (line, column)


def test_control_characters_are_refused_with_their_place() -> None:
    error = refusal("a: 1\nbc: \x00")
    assert (error.line, error.column) == (2, 5)
    assert "U+0000" in error.message


def test_lone_surrogates_are_refused() -> None:
    assert "not Unicode" in refusal("a: \ud800").message


def test_a_second_document_is_refused_where_it_starts() -> None:
    error = refusal("a: 1\n---\nb: 2")
    assert (error.line, error.column) == (3, 1)
    assert "second YAML document" in error.message


def test_an_empty_second_document_is_ignored() -> None:
    assert plain(read_tree("---\na: 1\n---\n...\n")) == [("a", "1")]


def test_deep_nesting_is_refused() -> None:
    for levels in (101, 5000, 50_000):  # the parser has a limit of its own, which may come first
        assert (
            refusal("a: " + "[" * levels + "]" * levels).message == "this is not a netlist: nested deeper "
            "than 100 levels"
        )
    read_tree("a: " + "[" * 90 + "]" * 90)


def test_an_alias_bomb_is_refused_before_it_is_followed() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "once aliases are followed" in refusal("\n".join(lines)).message


def test_an_alias_of_something_that_contains_it_is_refused() -> None:
    assert refusal("a: &x [*x]").message == "alias *x contains itself"


def test_an_unknown_alias_is_refused() -> None:
    assert "*nope" in refusal("a: *nope").message


def test_a_large_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_BYTES", 100)
    assert "larger than" in refusal("a: " + "x" * 200).message
    monkeypatch.setattr(yaml_reader, "MAX_NODES", 10)
    assert "more than 10 nodes" in refusal("a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]").message


def test_without_libyaml_the_tree_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: {b: [1, 'x', ~]}\nd: &e >-\n  folded\nf: *e\ng: ' '\n"
    fast = read_tree(text)
    monkeypatch.delattr(yaml, "CSafeLoader")
    slow = read_tree(text)

    def marks(node: Node) -> object:
        place = (node.line, node.column, node.end_column)
        if isinstance(node, Scalar):
            return (*place, node.text, node.plain)
        children = node.items if isinstance(node, Sequence) else [part for pair in node.pairs for part in pair]
        return (*place, [marks(child) for child in children])

    assert marks(fast) == marks(slow)


@given(st.text(max_size=60))
def test_any_text_is_a_map_or_a_refusal(text: str) -> None:
    place = (1, 1)
    try:
        assert isinstance(read_tree(text), Mapping)
    except UnreadableError as error:
        place = (error.line, error.column)
    assert min(place) >= 1


@given(st.binary(max_size=60))
def test_any_bytes_are_a_map_or_a_refusal(data: bytes) -> None:
    message = "read"
    try:
        read_tree(decode(data))
    except UnreadableError as error:
        message = error.message
    assert message


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    with pytest.raises(UnreadableError, match="0xff") as caught:
        decode(b"a: 1\nb: \xc3\xa4\xff")
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_a_byte_order_mark_is_dropped() -> None:
    assert decode("a: 1".encode("utf-8-sig")) == "a: 1"
    with pytest.raises(UnreadableError, match="UTF-16"):
        decode("a: 1".encode("utf-16"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "directory"), (tmp_path / "none.yaml", "no such file"), ("a\0b", "not the name")):
        with pytest.raises(UnreadableError, match=message):
            read_bytes(path)


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_BYTES", 10)
    (tmp_path / "net.yaml").write_text("a: 123456789")
    with pytest.raises(UnreadableError, match="larger"):
        read_bytes(tmp_path / "net.yaml")


def test_lines_are_split_as_yaml_does() -> None:
    assert split_lines("a\nb\r\nc\rd\x85e\u2028f\x0cg") == ["a", "b", "c", "d", "e", "f\x0cg"]


@pytest.mark.parametrize("text", ["a:\n\t- b\n", "a:\n  b: 1\n\tc: 2\n"])
def test_a_tab_is_called_a_tab(text: str) -> None:
    assert refusal(text).message == "invalid YAML: a tab where only spaces are allowed"


def test_nodes_that_are_too_many_for_their_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "FREE_NODES", 10)
    assert "more than 50 nodes" in refusal("a: [" + "b," * 98 + "]").message
    read_tree("a: [" + "word, " * 98 + "]")
