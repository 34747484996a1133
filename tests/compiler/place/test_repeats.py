"""Layers of a model are found, and a single input's epochs end at the same place of each."""

from collections.abc import Mapping

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.ir.text import Ir
from buda_emu.compiler.pipeline import PASSES, Context
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search import single_input
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.single_input import EpochBounds, Repetition, SingleInput, find_repetitions


def test_groups_of_equal_items_are_found_the_shortest_ones_that_reach_as_far():
    a, b = "abcdefgh", "klmnopqrst"
    assert find_repetitions("xy" + 4 * a + "z" + 2 * b + "q") == [Repetition(2, 8, 4), Repetition(35, 10, 2)]
    assert find_repetitions(a + b) == []
    assert find_repetitions("aaaaaaa") == []  # of shorter groups than a layer has
    assert find_repetitions(a + a[:-1]) == []  # not twice


def chain(layers: int) -> CandidateTable:
    """So many layers of four products with an op after each."""
    b = Builder(Graph())
    rng = np.random.default_rng(0)
    x = b.input("x", (32, 512), "float32")
    for _ in range(layers):
        for width in (1024, 256, 768, 512):
            product = b.matmul(x, rng.standard_normal((x.shape[1], width)).astype(np.float32))
            x = b.tanh(product) if width > 600 else b.exp(product)
    b.graph.outputs.append(Output("y", b.sigmoid(x).name, "float32"))
    forms = [Ir(FRONT, b.graph)]
    for step in PASSES:
        if step.name == "search":
            break
        forms = step.run(forms, Context())
    assert forms[0].tiles is not None
    return CandidateTable.of(forms[0].tiles, Context().target)


def test_epochs_end_at_the_same_place_of_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    table = chain(6)
    monkeypatch.setattr(single_input, "ALIKE", 9.0)
    judged: list[float] = []

    def cycles_of(decisions: Mapping[str, PlacementDecision]) -> float:
        judged.append(1 + max(decision.epoch for decision in decisions.values()))
        return judged[-1]

    made, *_ = SingleInput.of(table, 0.94).decisions_by_layers(cycles_of)
    assert min(judged) == 1 + max(decision.epoch for decision in made.values())
    epochs = [made[op.name].epoch for op in table.ops]
    ends = {n for n in range(1, len(epochs)) if epochs[n] != epochs[n - 1]}
    assert ends
    assert {n + 8 for n in ends if n + 8 < 41} <= ends  # the first op of all is not like others


def test_all_before_the_second_end_may_be_one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    table = chain(6)
    monkeypatch.setattr(single_input, "ALIKE", 9.0)
    found = SingleInput.of(table, 0.94).decisions_by_layers(lambda _: 0.0)

    def ends(decisions: Mapping[str, PlacementDecision]) -> list[int]:
        epochs = [decisions[op.name].epoch for op in table.ops]
        return [n for n in range(1, len(epochs)) if epochs[n] != epochs[n - 1]]

    cut = [ends(decisions) for decisions in found]
    assert any(own == other[1:] for own in cut for other in cut)


def test_epochs_end_where_they_have_to_and_nowhere_else() -> None:
    table = chain(6)
    single = SingleInput.of(table, 0.94)
    free = single.decisions()
    assert {item.epoch for item in free.values()} != {0, 1, 2}
    made = single.decisions(
        EpochBounds(frozenset({5, 9}), frozenset(range(1, 5)) | frozenset(range(10, len(table.ops))))
    )
    epochs = [made[op.name].epoch for op in table.ops]
    assert [n for n in range(1, len(epochs)) if epochs[n] != epochs[n - 1]][:2] == [5, 9]


def test_a_model_without_layers_or_with_small_ones_has_no_such_epochs():
    assert SingleInput.of(chain(1), 0.94).decisions_by_layers(lambda _: 0.0) == []
    assert SingleInput.of(chain(6), 0.94).decisions_by_layers(lambda _: 0.0) == []  # several find room in an epoch
