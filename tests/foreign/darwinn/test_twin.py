"""The CPU twin: kernels equal their definitions, figures by hand, what is not computed is refused by name."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import Twin, tflite
from buda_emu.foreign.darwinn.example import EXAMPLES
from buda_emu.foreign.darwinn.example import model as example_model
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.tflite import BUILTIN_OPERATORS
from buda_emu.foreign.darwinn.twin import rounding
from buda_emu.foreign.darwinn.twin.operators import OPERATORS
from buda_emu.foreign.darwinn.twin.operators import products as convolution
from buda_emu.foreign.darwinn.twin.operators import products as kernels
from buda_emu.foreign.darwinn.twin.rounding import exp, logistic, recip, tanh
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from foreign.darwinn.random_operators import MAKERS
from foreign.darwinn.tflite_models import T, model


def feeds_of(twin, seed):
    r = np.random.default_rng(seed)
    return {n: r.integers(np.iinfo(d).min, np.iinfo(d).max + 1, s).astype(d) for n, d, s in twin.inputs}


@pytest.mark.parametrize("name", [name for name in MAKERS if name.endswith("CONV_2D")])
@pytest.mark.parametrize("seed", range(40))
def test_kernels_equal_their_definition(name, seed, monkeypatch):
    data = MAKERS[name](np.random.default_rng(seed))
    twin = Twin(data)
    fast = twin.run(feeds_of(twin, seed))
    reference = {"conv": convolution.conv_reference, "depthwise": convolution.depthwise_reference}

    def plain(call, what, x, kernel, where, scale):
        return convolution.finish_sums(reference[what](x, kernel, where), scale).astype(call.output().dtype)

    monkeypatch.setattr(convolution, "_compute_outputs", plain)
    assert np.array_equal(fast["y"], twin.run(feeds_of(twin, seed))["y"])


@pytest.mark.tiny
@settings(deadline=None)
@given(st.integers(-(1 << 31) + 1, (1 << 31) - 1), st.integers(1 << 30, (1 << 31) - 1), st.integers(-31, 0))
def test_the_kernels_rescaling_is_the_definition(total, q, e):
    want = int(rounding.apply_multiplier(total, rounding.Multiplier(q, e))) + 3
    got = run_rescaled(np.int64(total), np.int64(q), np.int64(e))
    assert got == max(min(want, 255), 0)


def run_rescaled(total, q, e):
    """The helper through the smallest convolution: one element, whose bias is the sum."""
    out = np.zeros((1, 1, 1, 1), np.int16)
    one = np.zeros((1, 1, 1, 1), np.int32)
    scale = kernels.Scale(np.array([total], np.int32), np.array([q]), np.array([e]), 3, 0, 255)
    kernels.convolve(one, one, kernels.Window(1, 1, 1, 1, 0, 0), scale, out)
    return int(out[0, 0, 0, 0])


@given(st.floats(1e-12, 1e9))
def test_a_multiplier_is_its_number(real):
    q, e = rounding.multiplier(real)
    if q and e < 30:
        assert abs(q * 2.0 ** (e - 31) / real - 1) <= 2.0**-30


@pytest.mark.parametrize(("value", "want"), [(0.5, 1), (-0.5, -1), (1.5, 2), (2.5, 3), (-2.5, -3), (0.49999, 0)])
def test_halves_go_away_from_zero(value, want):
    assert rounding.half_away(value) == want


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 31))
def test_a_shift_rounds_to_the_nearest(x, n):
    assert int(rounding.right(x, n)) == int(np.floor(abs(x) / 2**n + 0.5)) * (1 if x >= 0 else -1)


def test_the_one_product_that_overflows():
    assert int(rounding.high(-(1 << 31), -(1 << 31))) == (1 << 31) - 1
    assert int(rounding.high(-(1 << 15), -(1 << 15), 16)) == (1 << 15) - 1


@pytest.mark.parametrize(("bits", "error"), [(32, 2e-7), (16, 1e-3)])
def test_fixed_point_functions_are_near_the_real_ones(bits, error):
    i = 5 if bits == 32 else 3
    real = np.linspace(-(2.0**i) * 0.99, 0, 500)
    raw = (real * 2.0 ** (bits - 1 - i)).astype(np.int64)
    unit = 2.0 ** (bits - 1)
    exact = raw / 2.0 ** (bits - 1 - i)
    assert np.abs(exp(raw, i, bits) / unit - np.exp(exact)).max() < error
    assert np.abs(logistic(raw, i, bits) / unit - 1 / (1 + np.exp(-exact))).max() < error
    assert np.abs(logistic(-raw, i, bits) / unit - 1 / (1 + np.exp(exact))).max() < error
    assert np.abs(tanh(raw, i, bits) / unit - np.tanh(exact)).max() < 4 * error
    part = (np.linspace(0, 0.999, 300) * unit).astype(np.int64)
    assert np.abs(recip(part, bits) / unit - 1 / (1 + part / unit)).max() < error


def test_the_ends_of_fixed_point_functions():
    for bits in (16, 32):
        assert int(exp(0, 3, bits)) == (1 << (bits - 1)) - 1
        assert int(logistic(0, 3, bits)) == 1 << (bits - 2)
        assert int(tanh(0, 3, bits)) == 0
    assert int(exp(-(1 << 31), 10, 32)) == 0
    small = -np.arange(1, 1 << 10)
    assert all(exp(small, i, 16).max() < 1 << 15 for i in range(6)), "a result of 16 bits"


def test_a_convolution_by_hand():
    x = T("x", "uint8", (1, 2, 2, 1), [0.5], [10])
    w = T("w", "uint8", (1, 2, 2, 1), [0.25], [1], 0, np.array([2, 1, 1, 3], np.uint8))
    b = T("b", "int32", (1,), [0.125], [0], 0, np.array([8], np.int32))
    y = T("y", "uint8", (1, 1, 1, 1), [0.25], [5])
    twin = Twin(model("CONV_2D", [x, w, b], [y], tflite.ConvOptions(1, 1, 1)))
    # (14-10)*1 + (20-10)*2 + 8 = 32, times 0.125 / 0.25 is 16, plus 5
    found = twin.run({"x": np.array([[[[14], [11]], [[12], [20]]]], np.uint8)})
    assert found["y"].tolist() == [[[[21]]]]


def test_sums_beyond_32_bits_are_exact():
    size = 1 << 16
    x = T("x", "uint8", (1, 1, 1, size), [1.0], [0])
    w = T("w", "uint8", (1, 1, 1, size), [1.0], [0], 0, np.full(size, 255, np.uint8))
    y = T("y", "uint8", (1, 1, 1, 1), [float(1 << 25)], [0])
    twin = Twin(model("CONV_2D", [x, w, None], [y], tflite.ConvOptions(1, 1, 1)))
    assert twin.run({"x": np.full((1, 1, 1, size), 255, np.uint8)})["y"].tolist() == [[[[127]]]]


def test_state_is_kept_from_run_to_run():
    data = MAKERS["UNIDIRECTIONAL_SEQUENCE_LSTM"](np.random.default_rng(4))
    twin, other = Twin(data), Twin(data)
    feeds = feeds_of(twin, 1)
    first, second = twin.run(feeds), twin.run(feeds)
    assert not np.array_equal(first["c"], second["c"])
    assert np.array_equal(other.run(feeds)["y"], first["y"])
    again = Twin(data).run({**feeds, "h": first["h"], "c": first["c"]})
    assert np.array_equal(again["y"], second["y"])


def test_every_operator_is_declared_and_made_at_random():
    assert {item.name for item in OPERATORS.values()} == set(MAKERS)
    assert all(item.says and item.types for item in OPERATORS.values())


def without(**changes):
    """An ADD with something changed."""
    x = T("x", "uint8", (2,), [1.0], [0])
    z = T("z", "uint8", (2,), [1.0], [0])
    y = T("y", "uint8", (2,), [1.0], [0])
    for name, (field, value) in changes.items():
        setattr({"x": x, "y": y, "z": z}[name], field, value)
    return model("ADD", [x, z], [y], tflite.AddOptions())


def joined(axis):
    """Two tensors one after the other along some dimension."""
    x, z, y = (T(name, "uint8", (rows, 2), [1.0], [0]) for name, rows in (("x", 1), ("z", 1), ("y", 2)))
    return model("CONCATENATION", [x, z], [y], tflite.ConcatenationOptions(axis))


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (joined(2), UnsupportedError, "dimension 2 of 2"),
        (joined(-3), UnsupportedError, "dimension -3 of 2"),
        (without(x=("dtype", "float32")), UnsupportedError, r"ADD \(y\): type float32 of 'x'"),
        (without(x=("dtype", "int8")), UnsupportedError, "ADD"),
        (without(x=("scale", [])), UnsupportedError, "0 scales"),
        (without(x=("scale", [0.0])), UnsupportedError, "positive"),
        (without(x=("scale", [float("nan")])), UnsupportedError, "positive"),
        (without(y=("shape", (3,))), PackageError, "comes out as"),
        (without(x=("zero", [300])), PackageError, "zero point 300"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(data, error, says):
    twin = Twin(data)
    with pytest.raises(error, match=says):
        twin.run({n: np.zeros(s, d) for n, d, s in twin.inputs})


def bare_operator(code, custom=None):
    """A model of one operator without tensors."""
    codes = (tflite.OperatorCode(min(code, 127), custom, 1, code),)
    graph = tflite.SubGraph((), (), (), (tflite.Operator(inputs=(), outputs=()),))
    return write(tflite.Model(3, codes, (graph,), None, (tflite.Buffer(),)), b"TFL3")


@pytest.mark.parametrize("code", sorted(BUILTIN_OPERATORS.keys() - OPERATORS.keys() - {tflite.CUSTOM}))
def test_an_operator_that_is_not_computed_is_refused_by_name(code):
    with pytest.raises(UnsupportedError, match=f"^operator 0: {BUILTIN_OPERATORS[code]} is not computed$"):
        Twin(bare_operator(code)).run({})


def test_an_operator_newer_than_the_schema_is_refused_by_number():
    with pytest.raises(UnsupportedError, match="builtin operator of number 5000"):
        Twin(bare_operator(5000)).run({})


@pytest.mark.parametrize("code", sorted(OPERATORS))
def test_an_operator_without_tensors_is_refused_by_name(code):
    with pytest.raises((UnsupportedError, PackageError), match=BUILTIN_OPERATORS[code]):
        Twin(bare_operator(code)).run({})


def fully_connected(scales=1, options=None, **changed):
    """A FULLY_CONNECTED of two inputs and three channels with something changed."""
    x, y = T("x", "int8", (1, 2), [1.0], [0]), T("y", "int8", (1, 3), [1.0], [0])
    w = T("w", "int8", (3, 2), [1.0] * scales, [0] * scales, 0, np.zeros((3, 2), np.int8))
    for name, value in changed.items():
        setattr(w, name, value)
    return model("FULLY_CONNECTED", [x, w, None], [y], options or tflite.FullyConnectedOptions())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (fully_connected(2), "2 scales along dimension 0"),
        (fully_connected(3, axis=1), "3 scales along dimension 1"),
        (fully_connected(3, scale=[1.0, 0.0, 1.0]), "not a positive number"),
        (fully_connected(3, dtype="int4", data=bytes(3)), "type int4 of 'w'"),
        (fully_connected(options=tflite.FullyConnectedOptions(weights_format=1)), "weights format SHUFFLED4x16INT8"),
        (fully_connected(options=tflite.FullyConnectedOptions(act=4)), "activation 4"),
    ],
)
def test_variants_of_a_fully_connected_operator_are_refused_by_name(data, says):
    with pytest.raises(UnsupportedError, match=rf"FULLY_CONNECTED.*{says}"):
        Twin(data).run({"x": np.zeros((1, 2), np.int8)})


def test_shapes_that_do_not_broadcast_are_refused_by_name():
    tensors = [T(name, "uint8", shape, [1.0], [0]) for name, shape in (("x", (2,)), ("z", (3,)), ("y", (3,)))]
    twin = Twin(model("MUL", tensors[:2], tensors[2:], tflite.MulOptions()))
    with pytest.raises(UnsupportedError, match=r"MUL \(y\): broadcasting \(2,\) and \(3,\)"):
        twin.run({n: np.zeros(s, d) for n, d, s in twin.inputs})


def test_a_custom_operator_stops_a_run():
    twin = Twin(bare_operator(tflite.CUSTOM, "other"))
    assert twin.run({}) == {}
    with pytest.raises(UnsupportedError, match="other"):
        twin.compute({}, twin.graph.operations)


@pytest.mark.parametrize(
    "feeds",
    [{}, {"image": np.zeros((1, 16, 16, 3), np.int8)}, {"image": np.zeros(3, np.uint8)}, {"other": 1, "image": 1}],
)
def test_feeds_that_do_not_fit_are_refused(feeds):
    with pytest.raises(HostError):
        Twin(example_model(EXAMPLES[0])).run(feeds)


@pytest.mark.parametrize("data", [b"", b"12345678", b"\0\0\0\0TFL3" + bytes(50), example_model(EXAMPLES[0])[:600]])
def test_what_is_no_model_is_refused(data):
    with pytest.raises(PackageError):
        Twin(data)


@pytest.mark.parametrize(
    ("name", "bytes_changed"),
    [
        ("ADD", {368: 0}), ("UNIDIRECTIONAL_SEQUENCE_LSTM", {1488: 1}), ("QUANTIZE", {136: 2}), ("ADD", {271: 1}),
        ("CONV_2D", {272: 2, 593: 1}), ("AVERAGE_POOL_2D", {291: 1}),
    ],
)  # fmt: skip
def test_tensors_that_do_not_go_together_are_refused(name, bytes_changed):
    """Shapes that cannot be added, a variable's zero point beyond its type, more outputs than an operator has."""
    refused = 0
    for seed in range(21):
        raw = bytearray(MAKERS[name](np.random.default_rng(seed)))
        for place, value in bytes_changed.items():
            raw[place] = value
        refused += _is_refused(bytes(raw))
    assert refused


def _is_refused(raw):
    try:
        twin = Twin(raw)
        twin.run({n: np.zeros(s, d) for n, d, s in twin.inputs if prod(s) < 1 << 20})
    except (PackageError, UnsupportedError, HostError):
        return True
    return False


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_changed_model_is_computed_or_refused(data):
    name = data.draw(st.sampled_from(sorted(MAKERS)))
    raw = bytearray(MAKERS[name](np.random.default_rng(data.draw(st.integers(0, 20)))))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    _is_refused(bytes(raw))
