"""Precision "device" from push to pop."""

from hashlib import sha256

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.formats import quantise
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.support.errors import HostError, StochasticRoundingWarning, UnsupportedError
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text


def tensor(seed, entries=1, rows=32, cols=32):
    return np.random.default_rng(seed).normal(0, 1, (entries, 1, rows, cols)).astype(np.float32)


def one_op(kind, df="Float16_b", operands=2, *, rows=1, cols=1, inputs=2, more="", queue_df=None):
    """Queues a, b (rows x rows or rows x cols tiles), one op n, queue o."""
    names = ("a", "b")[:operands]
    shape = {"mblock": (rows, cols)}
    return text(
        [*(queue(name, df=df, **shape) for name in names), queue("o", "n", df=queue_df or df, **shape)],
        [graph("g", op("n", kind, list(names), df=df, more=more, **shape), inputs=inputs)],
        [program("p", "var: {$c_zero: 0}", execute("g", *(fifo_settings(name) for name in names)))],
    )


def run(net, pushes, **settings):
    with be.Emulator(net, precision="device", **settings) as emulator:
        for name, array in pushes.items():
            emulator.push(name, array)
        emulator.run("p")
        return emulator.pop("o", len(next(iter(pushes.values()))), "raw")


@pytest.mark.tiny
def test_bits_that_never_change(load):
    """With compiled kernels and without: one product of tiles, through gelu."""
    more = ", attributes: {m_k: 1, u_kt: 1, sfpu_op: gelu}"
    found = run(load(one_op("matmul", inputs=1, more=more)), {"a": tensor(1), "b": tensor(2)}, threads=1)
    assert sha256(found.tobytes()).hexdigest()[:16] == "4f257ee11c4a052a"


def test_same_bits_for_any_threads_and_chunks(load):
    net = load(one_op("matmul", rows=2, cols=2, more=", attributes: {m_k: 2, u_kt: 1}"))
    pushes = {"a": tensor(1, 2, 64, 64), "b": tensor(2, 2, 64, 64)}
    expected = run(net, pushes, threads=1)
    assert np.array_equal(run(net, pushes, threads=2), expected)
    assert np.array_equal(run(net, pushes, threads=1, inputs_at_once=1), expected)
    exact = pushes["a"].astype(np.float64) @ pushes["b"]
    assert 0 < np.abs(expected - exact).max() < 0.5


def test_threads_share_larger_ops(load):
    net = load(one_op("matmul", "Bfp8_b", rows=8, cols=8, inputs=1, more=", attributes: {m_k: 4, u_kt: 2}"))
    pushes = {"a": tensor(1, 1, 256, 256), "b": tensor(2, 1, 256, 256)}
    assert np.array_equal(run(net, pushes, threads=2), run(net, pushes, threads=1))


@pytest.mark.parametrize("df", ["Float16", "Float16_b", "Bfp8_b"])
def test_a_copy_gives_what_the_push_was_rounded_to(load, df):
    x = tensor(3, 2)
    found = run(load(one_op("nop", df, 1)), {"a": x})
    assert np.array_equal(found, quantise(df, x.reshape(-1, 32, 32)).reshape(found.shape))


def test_every_step_rounds_where_the_chip_does(load):
    """1 + 2^-8 is not bf16; the sum of format is exact, that of the chip is not."""
    one, small = np.ones((1, 1, 32, 32), np.float32), np.full((1, 1, 32, 32), 2.0**-8, np.float32)
    net = load(one_op("add", inputs=1))
    assert (run(net, {"a": one, "b": small}) == 1 + 2.0**-7).all()  # ties go away from zero (2.3)
    assert (run(net, {"a": -one, "b": small}) == -1 + 2.0**-8).all()


def test_a_float32_op_without_a_wide_dst_is_computed_in_fp16(load):
    """DEVICE_NUMERICS 1.1."""
    net = load(one_op("nop", "Float32", 1, inputs=1).replace("acc_df: Float32", "acc_df: Float16"))
    assert (run(net, {"a": np.full((1, 1, 32, 32), 1e6, np.float32)}) == 131008).all()


def gradient(more="", inputs=2):
    shared = "gradient_op: true"
    return text(
        [queue("x", df="Float16_b"), queue("o", "n", kind="ram", entries=1, df="Float16_b")],
        [graph("g", op("n", "nop", ["x"], df="Float16_b", more=f", {shared}{more}"), inputs=inputs)],
        [
            program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x"), ram_settings("o"))),
            program(
                "zeroed",
                "var: {$c_zero: 0}",
                execute("g", fifo_settings("x"), ram_settings("o", prologue="true", zero="true")),
            ),
        ],
    )


def test_gradients_add_up_in_their_format(load):
    x = np.stack([np.full((1, 32, 32), value, np.float32) for value in (256, 1)])
    with be.Emulator(load(gradient()), precision="device") as emulator:
        emulator.push("o", np.full((1, 1, 32, 32), 256, np.float32))
        emulator.push("x", x)
        emulator.run("p")
        assert (emulator.peek("o") == 512).all()  # 513 is not bf16
        emulator.push("x", x[::-1])
        emulator.run("zeroed")
        assert (emulator.peek("o") == 258).all()  # 1 + 256, tie away from zero: 258


@pytest.mark.parametrize("at_once", [None, 1])
def test_every_input_is_added_to_the_sum_of_those_before_it(load, at_once):
    x = np.stack([np.full((1, 32, 32), value, np.float32) for value in (1, 2, 4, 8)])
    with be.Emulator(load(gradient(inputs=4)), precision="device", inputs_at_once=at_once) as emulator:
        emulator.push("x", x)
        emulator.run("zeroed")
        assert (emulator.peek("o") == 15).all()


def test_listeners_are_shown_values(load):
    class Watch(Listener):
        def __init__(self):
            self.read, self.made = [], []

        def queue_value(self, queue, tiles, inputs):
            self.read.append((queue, tiles.dtype, tiles.shape, inputs))

        def op_value(self, op, tiles, inputs):
            self.made.append((op.name, tiles.copy(), inputs))

    watch = Watch()
    found = run(load(one_op("add")), {"a": tensor(1, 2), "b": tensor(2, 2)}, listeners=(watch,))
    assert watch.read == [(name, np.float32, (2, 1, 1024), 2) for name in ("a", "b")]
    ((name, made, inputs),) = watch.made
    assert (name, inputs) == ("n", 2)
    assert np.array_equal(made.reshape(found.shape), found)


def test_stochastic_rounding_is_told(load):
    net = load(one_op("add", more=", attributes: {stoch_rnd_mode: all}"))
    with pytest.warns(StochasticRoundingWarning, match="op n "):
        run(net, {"a": tensor(1, 2), "b": tensor(2, 2)})


def test_dropout_does_not_depend_on_chunks(load):
    net = load(one_op("dropout", operands=1, rows=2, more=", attributes: {p: 0.3, seed: 5}"))
    x = np.ones((2, 1, 64, 32), np.float32)
    found = run(net, {"a": x})
    assert np.array_equal(found, run(net, {"a": x}, inputs_at_once=1))
    assert 0.2 < (found == 0).mean() < 0.4
    assert np.unique(found).tolist() == [0, 1.421875]  # 1/0.7 cut to bf16


def test_what_is_not_known_is_refused(load):
    with pytest.raises(HostError, match="device"):
        be.Emulator(load(one_op("add")), precision="exact")
    net = load(one_op("add", queue_df="Float32"))
    with pytest.raises(UnsupportedError, match="writes Float16_b into queue o of Float32"):
        run(net, {"a": tensor(1, 2), "b": tensor(2, 2)})


@pytest.mark.parametrize("df", ["Float32", "Float16_b", "Float16", "Bfp8_b", "Bfp8", "Lf8"])
def test_the_image_of_an_entry_is_what_is_held(load, df):
    """Codes go out through their values and lose nothing: what a packer writes is what the host encodes again."""
    net = load(one_op("add", df, inputs=1))
    with be.Emulator(net, precision="device", threads=1) as emulator:
        for name in "ab":
            emulator.push(name, tensor(ord(name)))
        emulator.run("p")
        for name in "abo":
            (image,) = emulator.memory_image(name)
            held = emulator._memory.channel(name).view.bits(0, 1)
            exponents = 0 if held.exponents is None else 64
            codes = image[16 + exponents :][: 1024 * held.datums.itemsize].view(held.datums.dtype)
            faces = held.datums.reshape(2, 16, 2, 16).swapaxes(1, 2)  # FORMATS 2: face by face
            np.testing.assert_array_equal(codes, faces.reshape(-1))
            if held.exponents is not None:
                rows = held.exponents.reshape(2, 16, 2).swapaxes(1, 2)
                np.testing.assert_array_equal(image[16 : 16 + 64], rows.reshape(-1))
