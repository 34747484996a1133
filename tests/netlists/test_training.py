import numpy as np
import pytest

from example_netlists import assert_close, gelu, normal, run

LEARNING_RATE = 1 / 64
STEP = (
    ("run_fwd", {"$p_loop_count": 2}),
    ("run_bwd", {"$p_loop_count": 2, "$p_zero_grad": 1}),
    ("run_opt", {}),
)


def inputs():
    stream = np.random.default_rng(6)
    return {
        "x": normal(stream, 2, 1, 64, 128),
        "grad_y": normal(stream, 2, 1, 64, 64),
        "lr": np.full((1, 1, 32, 32), LEARNING_RATE, np.float32),
        "w1": normal(stream, 1, 1, 128, 128, scale=0.1),
        "w2": normal(stream, 1, 1, 128, 64, scale=0.1),
    }


def slope(x):
    """The derivative as the device has it: tanh approximation of the distribution, exact density (OPS 5)."""
    k = np.sqrt(2 / np.pi)
    return 0.5 * (1 + np.tanh(k * (x + 0.044715 * x**3))) + x * np.exp(-0.5 * x**2) * 0.5 * k


def gradients(data):
    x, grad_y, w1, w2 = (data[name].astype(np.float64) for name in ("x", "grad_y", "w1", "w2"))
    h = x @ w1
    grad_h = grad_y @ w2.transpose(0, 1, 3, 2) * slope(h)
    grad_w1 = (x.transpose(0, 1, 3, 2) @ grad_h).sum(axis=0, keepdims=True)
    grad_w2 = (gelu(h).transpose(0, 1, 3, 2) @ grad_y).sum(axis=0, keepdims=True)
    return gelu(h) @ w2, grad_w1, grad_w2


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_one_step(precision):
    data = inputs()
    outputs = run("training", precision, data, *STEP)
    y, grad_w1, grad_w2 = gradients(data)
    assert_close(outputs["y"], y, precision)
    assert_close(outputs["grad_w1"], grad_w1, precision)
    assert_close(outputs["grad_w2"], grad_w2, precision)
    assert_close(outputs["w1"], data["w1"] - LEARNING_RATE * grad_w1, precision)
    assert_close(outputs["w2"], data["w2"] - LEARNING_RATE * grad_w2, precision)
    assert "e2e_h" not in outputs  # run_bwd has used up what run_fwd kept
    assert "e2e_a" not in outputs


def test_the_gradient_is_the_slope_of_the_loss():
    """grad_w1 against differences of the loss sum(y * grad_y); the device's gelu slope is near, not equal (OPS 5)."""
    data = inputs()
    _, grad_w1, _ = gradients(data)
    direction = normal(np.random.default_rng(7), 1, 1, 128, 128)
    loss = []
    for step in (-1e-3, 1e-3):
        y, _, _ = gradients({**data, "w1": data["w1"] + step * direction})
        loss.append((y * data["grad_y"]).sum())
    assert (loss[1] - loss[0]) / 2e-3 == pytest.approx((grad_w1 * direction).sum(), rel=1e-2)


def test_gradients_add_up_unless_they_are_zeroed():
    data = inputs()
    again = {"$p_loop_count": 1, "$p_zero_grad": 0}
    once = run("training", "ideal", data, *STEP[:2])
    in_two_runs = run(
        "training", "ideal", data, STEP[0], ("run_bwd", {"$p_loop_count": 1, "$p_zero_grad": 1}), ("run_bwd", again)
    )
    assert np.array_equal(once["grad_w1"], in_two_runs["grad_w1"])
