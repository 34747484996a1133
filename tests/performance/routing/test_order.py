"""Nodes in order: each before what follows it, however long the chain, and in a circle, too."""

import pytest

from buda_emu.performance.routing.streams.rational import Walk, in_order, run_walk
from buda_emu.performance.routing.streams.route import route
from small_pipes import Pipes


def test_each_comes_before_what_follows_it() -> None:
    followers = {"a": "bc", "b": "d", "c": "d", "d": "", "e": "b"}
    assert in_order("ae", followers.__getitem__) == ["e", "a", "c", "b", "d"]


def test_what_was_seen_before_is_left_out() -> None:
    seen = {"b"}
    assert in_order("a", {"a": "bc", "b": "d", "c": "", "d": ""}.__getitem__, seen) == ["a", "c"]
    assert seen == {"a", "b", "c"}


def test_a_circle_holds_each_once() -> None:
    assert in_order("a", {"a": "b", "b": "c", "c": "b"}.__getitem__) == ["a", "b", "c"]


def _chain(relays: int) -> Pipes:
    """As many relays between a packer and an operand, twenty on each core."""
    pipes = Pipes()
    before = pipes.packer(0, 0)
    for number in range(relays):
        row, column = divmod(number // 20, 8)
        after = pipes.relay(row + 1, column)
        pipes.pipe([before], [after], (row + 1, column))
        before = after
    pipes.pipe([before], [pipes.unpacker(9, 7)], (9, 7))
    return pipes


@pytest.mark.parametrize("relays", [3, 600, 1200])
def test_a_long_chain_of_relays_is_routed(relays: int) -> None:
    done = route(_chain(relays).graph, "wormhole_b0")
    assert done.refusals == ()
    assert sum(stream.kind == "relay" for core in done.cores for stream in core.streams) == relays


def test_phases_of_a_very_long_chain_are_counted() -> None:
    done = route(_chain(1200).graph, "wormhole_b0", phases=True)
    assert done.refusals == ()
    relays = {stream.phases for core in done.cores for stream in core.streams if stream.kind == "relay"}
    (short,) = {
        s.phases
        for c in route(_chain(3).graph, "wormhole_b0", phases=True).cores
        for s in c.streams
        if s.kind == "relay"
    }
    assert relays == {short}


def test_a_walk_is_given_what_its_own_calls_return() -> None:
    def depth(number: int) -> Walk[int]:
        return 1 + (yield depth(number - 1)) if number else 0

    assert run_walk(depth(100_000)) == 100_000
