"""Differences between texts: each is a correct edit, and none takes long."""

import random
import time
from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.support.line_changes import hunk_lines, line_changes

LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=25)
"""Lines that nearly all repeat."""
MANY = [f"line {number}" for number in range(40)]


def apply(changes, old, new):
    """Return the old lines with the changes made, and check that lines between changes stay."""
    result = []
    place = 0
    for change in changes:
        assert place <= change.old_start <= change.old_end
        assert (change.old_start, change.new_start) != (change.old_end, change.new_end)
        result += old[place : change.old_start]
        result += new[change.new_start : change.new_end]
        place = change.old_end
    return result + old[place:]


@given(LINES, LINES, st.sampled_from([None, 0, 100, 2000]))
def test_changes_make_the_new_text_of_the_old_one(old, new, steps):
    assert apply(line_changes(old, new, steps=steps), old, new) == new


@given(st.permutations(MANY), st.permutations(MANY), st.lists(st.integers(0, 39), max_size=9))
def test_changes_are_right_where_lines_moved(old, new, repeated):
    for number in repeated:
        new[number] = "line 0"
    assert apply(line_changes(old, new, steps=0), old, new) == new


SOME = st.sets(st.sampled_from(range(40))).map(lambda numbers: [MANY[number] for number in sorted(numbers)])


@given(SOME, SOME, st.integers(0, 3))
def test_lines_that_do_not_repeat_differ_as_difflib_says(old, new, context):
    expected = list(unified_diff(old, new, lineterm="", n=context))[2:]
    assert list(hunk_lines(old, new, context)) == expected


@pytest.mark.parametrize(("edited", "most_lines"), [("spaces", 10_000), ("lost", 150), ("moved", 1500)])
def test_a_long_text_of_few_different_lines_takes_no_long_time(edited, most_lines):
    generator = random.Random(5)
    old = [f"  - v{generator.randrange(150)}" for _ in range(20_000)]
    new = list(old)
    if edited == "spaces":
        new[1::2] = [line.replace("- ", "-  ") for line in new[1::2]]
    elif edited == "lost":
        for place in generator.sample(range(19_000), 100):
            del new[place]
    else:
        new[3000:3500] = []
        new[9000:9000] = old[3000:3500]
    start = time.process_time()
    changes = line_changes(old, new)
    assert time.process_time() - start < 3  # difflib: hours
    assert apply(changes, old, new) == new
    assert sum(change.old_end - change.old_start for change in changes) <= most_lines


@pytest.mark.parametrize("different", [1, 2, 50])
def test_no_texts_take_long(different):
    generator = random.Random(different)
    old = [str(generator.randrange(different)) for _ in range(20_000)]
    new = ["x", *(str(generator.randrange(different)) for _ in range(17_000)), "y"]
    start = time.process_time()
    changes = line_changes(old, new)
    assert time.process_time() - start < 3
    assert apply(changes, old, new) == new
