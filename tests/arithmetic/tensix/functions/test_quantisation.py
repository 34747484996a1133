import numpy as np
import pytest

from buda_emu.arithmetic.formats.bits import single
from buda_emu.arithmetic.tensix.functions.table import (
    bind,
    dequantization,
    integer_add,
    integer_maximum,
    quantization,
    reference,
    requantization,
    run,
)
from buda_emu.arithmetic.tensix.functions.vector_unit import NumpyUnit
from device_vectors import mismatches, needs_vectors, vectors

THREE = single(3.0)


@needs_vectors
def test_vectors():
    v = vectors("sfpu")
    unit, zero_point = NumpyUnit(), int(v["rq_zp"][0])
    assert mismatches(quantization(unit, v["q_a"], v["rq_b"], zero_point), v["q_out"]) == 0
    assert mismatches(requantization(unit, v["rq_a"], v["rq_b"], zero_point), v["rq_out"]) == 0
    assert mismatches(dequantization(unit, v["rq_a"], v["rq_b"], zero_point ^ 0x80000000), v["dq_out"]) == 0


@needs_vectors
@pytest.mark.parametrize("name", ["quantization", "requantization", "dequantization"])
def test_vectors_by_kernel(name):
    v = vectors("sfpu")
    zero_point = {"zero_point": THREE} if name != "dequantization" else {"minus_zero_point": THREE ^ 0x80000000}
    key, expected = {"quantization": ("q_a", "q_out"), "requantization": ("rq_a", "rq_out")}.get(
        name, ("rq_a", "dq_out")
    )
    a, b = (np.resize(words, (1, 32, 32)) for words in (v[key], v["rq_b"]))
    out = np.empty_like(a)
    run(bind(name, **zero_point), "fp32", out, a, b)
    stored = v[expected]
    if name == "dequantization":  # Dst has no denormals
        stored = np.where(stored & np.uint32(0x7F800000) == 0, stored & np.uint32(0x80000000), stored)
    assert mismatches(out.reshape(-1)[: stored.size], stored) == 0


@pytest.mark.tiny
def test_integers():
    def signed(*values):
        return np.array([abs(v) | (0x80000000 if v < 0 else 0) for v in values], np.uint32)

    unit = NumpyUnit()
    a, b = signed(5, -3, 2**31 - 1, -7), signed(-7, -9, 1, 7)
    assert integer_add(unit, a, b).tolist() == [*signed(-2, -12), 0x80000000, 0]  # the third wraps to minus zero
    assert integer_maximum(unit, a, b).tolist() == signed(5, -3, 2**31 - 1, 7).tolist()


@pytest.mark.tiny
def test_quantization_rounds_ties_away_and_clamps():
    a = np.resize(np.array([0.5, -0.5, 1.5, 300, -300, 0.49], np.float32).view(np.uint32), (1, 32, 32))
    one = np.full_like(a, single(1.0))
    out = reference(bind("quantization", zero_point=0), "fp32", a, one).reshape(-1)[:6]
    assert out.tolist() == [1, 0x80000001, 2, 127, 0x8000007F, 0]
