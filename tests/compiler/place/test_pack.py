"""Cores of an epoch that no op has yet."""

from types import SimpleNamespace
from typing import Any

from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.pack import widen_ops
from buda_emu.compiler.target import Target


def choice(rows: int, columns: int, cycles: float) -> Choice:
    return Choice(Blocks((rows, columns), 1, (1, 1), (1, 1)), frozenset(), cycles, cycles)


def test_cores_that_are_free_go_where_each_gains_most():
    """In turn, as long as there is room: never the whole chip to an op beside another."""
    best = [
        [choice(1, 1, 100), choice(2, 2, 40), choice(4, 4, 30), choice(10, 8, 1)],
        [choice(1, 1, 50), choice(1, 2, 45), choice(1, 3, 46)],
    ]
    line: Any = SimpleNamespace(
        ops=[SimpleNamespace(name="a"), SimpleNamespace(name="b")],
        index={"a": 0, "b": 1},
        best=best,
        target=Target.from_names("wormhole_b0", "Float16_b", "HiFi3"),
    )
    decisions = {"a": PlacementDecision(best[0][0], 3, 0, (0, 0)), "b": PlacementDecision(best[1][0], 3, 0, (0, 1))}
    found = widen_ops(line, decisions)
    assert {name: (decision.choice.blocks.grid, decision.epoch) for name, decision in found.items()} == {
        "a": ((4, 4), 3),
        "b": ((1, 2), 3),
    }
