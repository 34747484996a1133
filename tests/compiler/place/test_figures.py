"""What the search is told of a whole placement: as the model has it, with alike epochs modelled once."""

import pytest

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.search.evaluate import evaluate, evaluate_figures
from buda_emu.compiler.search.report import limits

onnx = pytest.importorskip("onnx")


def stack(layers: int):
    """Products by constants that are too wide for many of them to share a chip, with a function behind each."""
    from onnx_graphs import products_in_a_row

    return products_in_a_row(layers, 512, 512)


@pytest.mark.parametrize(
    "options", [{}, {"microbatch": 1}, {"effort": "low"}, {"effort": "low", "chips": 2, "objective": "latency"}]
)
def test_figures_are_those_of_the_whole_model(options):
    placement = compile_model(stack(4), arch="wormhole_b0", **options).placement
    whole, told = evaluate(placement), evaluate_figures(placement, {})
    assert told.cycles == pytest.approx(whole.cycles)
    assert told.host == pytest.approx(whole.host)
    assert told.chips == pytest.approx(sum(whole.run.programs().values()) / (placement.inputs * placement.rounds))
    assert told.bound == pytest.approx(max(limits(whole).math, whole.host))


def test_layers_that_are_alike_are_modelled_once():
    kinds = []
    for layers in (12, 24):
        placement = compile_model(stack(layers), arch="wormhole_b0", effort="low").placement
        known = {}
        assert evaluate_figures(placement, known).cycles == pytest.approx(evaluate(placement).cycles)
        kinds.append(len(known))
        assert placement.epochs >= layers // 4
    assert kinds[0] == kinds[1]
