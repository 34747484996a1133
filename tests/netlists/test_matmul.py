import numpy as np
import pytest

import buda_emu as be
from example_netlists import DIRECTORY, assert_close, normal, run


def inputs(seed):
    stream = np.random.default_rng(seed)
    return {
        "activations": normal(stream, 2, 1, 128, 256),
        "weights": normal(stream, 1, 1, 256, 192, scale=0.1),
        "bias": normal(stream, 1, 1, 32, 192),
    }


def expected(data):
    x, w = (data[name].astype(np.float64) for name in ("activations", "weights"))
    return np.maximum(x @ w + data["bias"][:, :, :1], 0)  # row 0 of the bias tiles


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_is_the_product(precision):
    data = inputs(1)
    out = run("matmul", precision, data, ("run_fwd", {}))["out"]
    assert_close(out, expected(data), precision)


def test_runs_again_where_it_stopped():
    first, second = inputs(1), inputs(2)
    netlist = be.load(DIRECTORY / "matmul.yaml")
    with be.Emulator(netlist, precision="ideal", threads=1) as emulator:
        for data in (first, second):
            for queue, array in data.items():
                emulator.push(queue, array)
            emulator.run("run_fwd")
            assert_close(emulator.pop("out", count=2), expected(data), "ideal")
