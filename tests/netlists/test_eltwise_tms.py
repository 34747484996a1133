import numpy as np
import pytest

from example_netlists import assert_close, normal, run


@pytest.mark.tiny
@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_moves_and_computes(precision):
    stream = np.random.default_rng(3)
    data = {
        "image": normal(stream, 1, 1, 64, 256),
        "row": normal(stream, 1, 1, 32, 256),
        "gain": normal(stream, 1, 1, 32, 32),
        "floor": normal(stream, 1, 2, 128, 64) - 1,
    }
    out = run("eltwise_tms", precision, data, ("run_fwd", {}))["out"]

    wide = {name: array[0].astype(np.float64) for name, array in data.items()}
    total = wide["image"] + np.tile(wide["row"], (1, 2, 1))
    strips = total.reshape(1, 64, 4, 64).transpose(0, 2, 1, 3).reshape(4, 64, 64)  # hslice: 4
    scaled = strips * np.tile(wide["gain"], (4, 2, 2))
    turned = scaled.transpose(0, 2, 1).reshape(2, 128, 64)  # transpose, then vstack: 2
    clamped = np.maximum(turned, wide["floor"])
    expected = np.where(clamped > 0, clamped, 0.25 * clamped)
    assert_close(out, expected[None], precision)
