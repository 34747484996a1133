import numpy as np
import pytest

from example_netlists import assert_close, normal, run, softmax

HEADS, HEAD_SIZE = 4, 32


def inputs():
    stream = np.random.default_rng(5)
    mask = np.where(np.arange(64) < 48, 0.0, -10000.0).astype(np.float32)  # the last 16 positions are padding
    return {
        "x": normal(stream, 4, 1, 64, 128),
        **{f"w{part}": normal(stream, 1, 1, 128, 128, scale=0.1) for part in "qkvo"},
        **{f"b{part}": normal(stream, 1, 1, 32, 128, scale=0.1) for part in "qkvo"},
        "scale": np.full((1, 1, 32, 32), HEAD_SIZE**-0.5, np.float32),
        "mask": np.broadcast_to(mask, (1, 1, 64, 64)).copy(),
        "ones": np.ones((1, 1, 32, 32), np.float32),
    }


def expected(data):
    wide = {name: array.astype(np.float64) for name, array in data.items()}

    def projected(x, part):
        return x @ wide[f"w{part}"] + wide[f"b{part}"][:, :, :1]

    def heads(x):
        return x.reshape(4, 64, HEADS, HEAD_SIZE).transpose(0, 2, 1, 3)

    q, k, v = (heads(projected(wide["x"], part)) for part in "qkv")
    probs = softmax(q @ k.transpose(0, 1, 3, 2) * HEAD_SIZE**-0.5 + wide["mask"])
    context = (probs @ v).transpose(0, 2, 1, 3).reshape(4, 1, 64, 128)
    return wide["x"] + projected(context, "o")


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_is_attention(precision):
    data = inputs()
    out = run("attention", precision, data, ("run_fwd", {"$p_loop_count": 2}))["out"]
    assert_close(out, expected(data), precision)


def test_one_microbatch_at_a_time_is_the_same():
    data = inputs()
    at_once = run("attention", "format", data, ("run_fwd", {"$p_loop_count": 2}))
    one_by_one = run("attention", "format", data, ("run_fwd", {"$p_loop_count": 1}), ("run_fwd", {"$p_loop_count": 1}))
    assert np.array_equal(at_once["out"], one_by_one["out"])
