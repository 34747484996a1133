"""What the search is told of a whole placement: as the model has it, with alike epochs modelled once."""

import numpy as np
import pytest

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.search.evaluate import figures, judged
from buda_emu.compiler.search.report import limits

onnx = pytest.importorskip("onnx")


def stack(layers: int):
    """Products by constants that are too wide for many of them to share a chip, with a function behind each."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(1)
    nodes, held, before = [], [], "x"
    for n in range(layers):
        held.append(numpy_helper.from_array(rng.standard_normal((512, 512), np.float32) / 16, f"w{n}"))
        nodes.append(helper.make_node("MatMul", [before, f"w{n}"], [f"h{n}"], name=f"h{n}"))
        nodes.append(helper.make_node("Sigmoid", [f"h{n}"], [f"y{n}"], name=f"y{n}"))
        before = f"y{n}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [512, 512])
    y = helper.make_tensor_value_info(before, TensorProto.FLOAT, [512, 512])
    graph = helper.make_graph(nodes, "stack", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    "options", [{}, {"microbatch": 1}, {"effort": "low"}, {"effort": "low", "chips": 2, "objective": "latency"}]
)
def test_figures_are_those_of_the_whole_model(options):
    placement = compile_model(stack(4), arch="wormhole_b0", **options).placement
    whole, told = judged(placement), figures(placement, {})
    assert told.cycles == pytest.approx(whole.cycles)
    assert told.host == pytest.approx(whole.host)
    assert told.chips == pytest.approx(sum(whole.run.programs().values()) / (placement.inputs * placement.rounds))
    assert told.bound == pytest.approx(max(limits(whole).math, whole.host))


def test_layers_that_are_alike_are_modelled_once():
    kinds = []
    for layers in (12, 24):
        placement = compile_model(stack(layers), arch="wormhole_b0", effort="low").placement
        known = {}
        assert figures(placement, known).cycles == pytest.approx(judged(placement).cycles)
        kinds.append(len(known))
        assert placement.epochs >= layers // 4
    assert kinds[0] == kinds[1]
