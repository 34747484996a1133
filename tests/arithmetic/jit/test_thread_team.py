"""Who works on which items, step by step: the functions as plain Python, on words of a list."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from buda_emu.arithmetic.jit import thread_team
from buda_emu.arithmetic.jit.job_slot import CLAIMED, GRAIN, INSIDE, ITEMS, NUMBER, OPEN, PARTS, RAISED, SHARED

HELPING = SHARED - 1  # any other negative number


def plain(function: Any) -> Callable[..., Any]:
    return getattr(function, "py_func", function)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of a slot; `read` and `add` are about them, whatever the address."""
    held = [0] * 32

    def add(_: int, word: int, value: int) -> int:
        held[word] += value
        return held[word] - value

    monkeypatch.setattr(thread_team, "read", lambda _, word: held[word])
    monkeypatch.setattr(thread_team, "add", add)
    monkeypatch.setattr(thread_team, "pause", lambda: None)
    return held


@pytest.mark.parametrize("turns", ["o" * 20, "h" * 20, "oh" * 12, "hho" * 8, "ooooohhhhhhhhhh"])
def test_owner_and_helper_take_each_item_once(words: list[int], turns: str) -> None:
    words[ITEMS], words[GRAIN], words[PARTS] = 10, 3, 4
    threads: dict[str, Iterator[int]] = {
        "o": plain(thread_team.claim_items)(0, SHARED),
        "h": plain(thread_team.claim_items)(0, HELPING),
    }
    found = [item for turn in turns for item in [next(threads[turn], None)] if item is not None]
    found += [item for thread in threads.values() for item in thread]
    assert sorted(found) == list(range(10))


def test_of_two_helpers_that_raise_the_later_one_is_told(words: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of both addresses would be none."""
    monkeypatch.setattr(thread_team, "work_on", lambda _: 7)
    words[NUMBER], words[INSIDE], words[PARTS], words[RAISED] = 1, OPEN, 4, 5
    assert plain(thread_team.serve)(0, 0, 3) == 1
    assert words[RAISED] == 7
    assert words[CLAIMED] >= words[PARTS]
    assert words[INSIDE] == OPEN
