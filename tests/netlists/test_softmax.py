import numpy as np
import pytest

from example_netlists import assert_close, normal, run, softmax


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_is_the_softmax_of_rows(precision):
    x = normal(np.random.default_rng(4), 4, 2, 128, 128, scale=3.0)
    ones = np.ones((1, 1, 32, 32), np.float32)
    out = run("softmax", precision, {"x": x, "ones": ones}, ("run_fwd", {}))["out"]
    assert_close(out, softmax(x.astype(np.float64)), precision)
    np.testing.assert_allclose(out.sum(axis=-1), 1.0, rtol=2e-2)


def test_large_values_do_not_overflow():
    x = np.full((4, 2, 128, 128), 30000.0, np.float32)
    ones = np.ones((1, 1, 32, 32), np.float32)
    out = run("softmax", "ideal", {"x": x, "ones": ones}, ("run_fwd", {}))["out"]
    np.testing.assert_allclose(out, 1 / 128, rtol=1e-5)
