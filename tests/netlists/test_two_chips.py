import numpy as np
import pytest

import buda_emu as be
from example_netlists import DIRECTORY, assert_close, gelu, normal, run


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_both_layers(precision):
    stream = np.random.default_rng(8)
    data = {
        "x": normal(stream, 4, 1, 64, 128),
        "w1": normal(stream, 1, 1, 128, 256, scale=0.1),
        "b1": normal(stream, 1, 1, 32, 256, scale=0.1),
        "w2": normal(stream, 1, 1, 256, 128, scale=0.1),
        "b2": normal(stream, 1, 1, 32, 128, scale=0.1),
    }
    out = run("two_chips", precision, data, ("run_fwd", {"$p_loop_count": 2}))["out"]
    wide = {name: array.astype(np.float64) for name, array in data.items()}
    hidden = gelu(wide["x"] @ wide["w1"] + wide["b1"][:, :, :1])
    assert_close(out, hidden @ wide["w2"] + wide["b2"][:, :, :1], precision)


def test_the_two_graphs_are_one_temporal_graph():
    netlist = be.load(DIRECTORY / "two_chips.yaml")
    assert [temporal.graphs for temporal in netlist.temporal_graphs] == [("first_chip", "second_chip")]
