"""Where the cursor is in a text that need not be whole."""

import pytest

from buda_emu.app.editor.place import place_at


def at(text):
    """The place of the bar."""
    before, _, after = text.partition("|")
    lines = (before + after).split("\n")
    return place_at(lines, before.count("\n") + 1, len(before) - before.rfind("\n"))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("queues:\n  |", ("queues",)),
        ("# a comment\nqueues:\n  |", ("queues",)),
        ("queues:\n  a: {type: |", ("queues", "a", "type")),
        ("queues:\n  a: {type: queue, |", ("queues", "a")),
        ("queues:\n  a: {grid_size: [1,\n    |", ("queues", "a", "grid_size")),
        ("queues:\n  a: {grid_size: [1, 1],\n    |", ("queues", "a")),
        ("queues:\n  a: {type: queue}\n  |", ("queues",)),
        ("queues:\n  a: {type: queue\n  b: {|", ("queues", "b")),  # a bracket was left open
        ("queues:\n  a:\n    type: |", ("queues", "a", "type")),
        ("graphs:\n  g:\n    n: {attributes: {m_k: |}}", ("graphs", "g", "n", "attributes", "m_k")),
        ("programs:\n  - p:\n    - execute: {graph_name: |", ("programs", "p", "execute", "graph_name")),
        ("|", ()),
        ("queues:\n|", ()),
    ],
)
def test_keys_down_to_the_cursor(text, keys):
    assert at(text).keys == keys


def test_keys_and_values_before_and_after_the_cursor_of_each_open_map():
    """On this line and the next ones; not those of maps that are closed."""
    place = at("graphs:\n  g:\n    n: {type: nop, attributes: {m_k: 1, | u_kt: {z: 2}, l1_acc: true}, t: 1,\n  x: 3}\n")
    assert [level.keys for level in place.levels] == [["type", "attributes", "t", "x"], ["m_k", "u_kt", "l1_acc"]]
    assert place.levels[0].values == {"type": "nop", "t": "1", "x": "3"}
    assert place.levels[1].values == {"m_k": "1", "l1_acc": "true"}


def test_the_word_and_whether_it_has_a_value():
    place = at("queues:\n  a: {ty|pe: queue}")
    assert (place.word, place.column, place.has_value) == ("ty", 7, True)
    place = at("queues:\n  a: {type: que|ue}")
    assert (place.word, place.column, place.has_value) == ("que", 13, False)


def test_keys_of_the_block_around():
    assert sorted(at("queues:\n  a: {}\n  |\n  b: {}\n\n  # c: {}\n    d: {}\ngraphs:\n  e: {}").block) == ["a", "b"]


def test_items_of_a_list_before_the_cursor():
    assert at("queues:\n  a: {grid_size: [1, x, |").levels[-1].items == ["1", "x"]
