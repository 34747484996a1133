import numpy as np
import pytest

from buda_emu.arithmetic.tensix.functions.elementary import cast_to_fp16, from_sign_magnitude, to_sign_magnitude
from buda_emu.arithmetic.tensix.functions.programs import record
from buda_emu.arithmetic.tensix.functions.table import bind, reference
from buda_emu.arithmetic.tensix.functions.vector_unit import NumpyUnit
from buda_emu.arithmetic.tensix.lanes import greater, lane_positions, load, store, to_float, to_integer, touched_mask
from buda_emu.support.errors import UnsupportedError
from device_vectors import mismatches, needs_vectors, vectors
from lane_words import KINDS, datums

LIMITS = {"i8": 127, "u8": 255, "i16": 32767, "u16": 65535}
MODES = ("bf16", "fp16", "fp32", "int32")


IDENTITY = record(lambda u, x: u.bit_or(x, 0))


def by_kernel(program, words, load_mode="int32", store_mode="int32"):
    """Any number of words through the kernel, in whole tiles."""
    image = np.resize(words.reshape(-1), (-(-words.size // 1024), 32, 32))
    out = np.empty_like(image)
    program.run(image, out, touched_mask("rc"), load_mode, store_mode)
    return out.reshape(-1)[: words.size].reshape(words.shape)


@needs_vectors
@pytest.mark.parametrize("name", LIMITS)
def test_vectors_of_rounding_to_integers(name):
    v, limit = vectors("sfpu"), LIMITS[name]
    kept = np.uint32(0x7FFFFFFF if name.startswith("u") else 0xFFFFFFFF)  # unsigned ones drop the sign
    words, expected = v[f"rnd_{name}_in"], v[f"rnd_{name}_out"]
    assert mismatches(to_integer(words, limit) & kept, expected) == 0
    assert mismatches(by_kernel(record(lambda u, x: u.to_integer(x, limit)), words) & kept, expected) == 0


@needs_vectors
def test_vectors_of_integers_as_floats():
    v = vectors("sfpu")
    assert mismatches(to_float(v["cast_in"]), v["cast_out"]) == 0
    assert mismatches(by_kernel(record(lambda u, x: u.to_float(x)), v["cast_in"]), v["cast_out"]) == 0


@needs_vectors
def test_vectors_of_order():
    v = vectors("sfpu")
    assert mismatches(greater(v["x"], np.uint32(0xC2B10000)), v["swapmax_out"]) == 0
    assert mismatches(by_kernel(record(lambda u, x: u.greater(x, 0xC2B10000)), v["x"]), v["swapmax_out"]) == 0


@needs_vectors
@pytest.mark.parametrize("mode", ["bf16", "fp16", "fp32"])
def test_vectors_of_stores(mode):
    v = vectors("sfpu")
    assert mismatches(store(v["st_in"], mode), v[f"st_{mode}"]) == 0
    assert mismatches(by_kernel(IDENTITY, v["st_in"], store_mode=mode), v[f"st_{mode}"]) == 0


@needs_vectors
@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "int32sm", "int32_2c"])
def test_vectors_of_loads(name):
    v = vectors("sfpu")
    dst, mode = v[f"ld_{name}_dst"], "int32" if name.startswith("int32") else name
    rows, columns = lane_positions(0)
    for lanes in (load(dst, mode), by_kernel(IDENTITY, dst, load_mode=mode)):
        words = from_sign_magnitude(NumpyUnit(), lanes) if name == "int32_2c" else lanes
        assert mismatches(np.stack([words[16 * k + rows, columns] for k in range(4)]), v[f"ld_{name}_lanes"]) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("load_mode", MODES)
@pytest.mark.parametrize("store_mode", MODES)
def test_kernel_moves_are_the_definition(kind, load_mode, store_mode):
    image = datums(load_mode, kind, 8)
    assert mismatches(by_kernel(IDENTITY, image, load_mode, store_mode), store(load(image, load_mode), store_mode)) == 0


@pytest.mark.tiny
def test_the_greater_of_two_is_that_of_floats_and_minus_zero_lies_below_zero():
    values = np.array([-np.inf, -3.5, -1.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, 2.0, 3.5, np.inf], np.float32)
    a, b = (grid.ravel().view(np.uint32) for grid in np.meshgrid(values, values))
    order = np.arange(values.size)  # they are written down in order
    first, second = (grid.ravel() for grid in np.meshgrid(order, order))
    assert greater(a, b).tolist() == values.view(np.uint32)[np.maximum(first, second)].tolist()
    unit = NumpyUnit()
    assert unit.greater(a, b).tolist() == greater(a, b).tolist()


CONVERSIONS = {
    **{str(limit): lambda u, x, limit=limit: u.to_integer(x, limit) for limit in LIMITS.values()},
    "float": lambda u, x: u.to_float(x),
    "greater": lambda u, x: u.greater(x, 0xC2B10000),
    "fp16": cast_to_fp16,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_kernel_conversions_are_the_definition(kind, name):
    image = datums("int32", kind, 8)
    assert mismatches(by_kernel(record(CONVERSIONS[name]), image), CONVERSIONS[name](NumpyUnit(), image)) == 0


@pytest.mark.tiny
def test_a_cast_to_fp16_rounds_before_it_is_stored():
    x = np.array([0x3F801000, 0x3F800FFF, 0x7FC00000, 0x00400000, 0xBFFFF000], np.uint32).reshape(1, 1, 5)
    image = np.resize(x, (1, 32, 32))
    out = reference(bind("cast_to_fp16"), "fp32", image)
    assert out.reshape(-1)[:5].tolist() == [0x3C01, 0x3C00, 0x7FFF, 0, 0xC000]


@pytest.mark.tiny
def test_integers_in_sign_and_magnitude():
    words = np.array([0, 5, 0x80000005, 0x80000000, 0x7FFFFFFF], np.uint32)
    assert from_sign_magnitude(NumpyUnit(), words).view(np.int32).tolist() == [0, 5, -5, 0, 2147483647]
    back = to_sign_magnitude(NumpyUnit(), np.array([0, -5, -(2**31)], np.int32).view(np.uint32))
    assert back.tolist() == [0, 0x80000005, 0x80000000]


@pytest.mark.tiny
def test_what_vector_modes_reach():
    assert touched_mask("rc").all()
    assert touched_mask("r")[:4].all()
    assert not touched_mask("r")[4:].any()
    assert touched_mask("c")[:, :16].all()
    assert not touched_mask("c")[:, 16:].any()
    with pytest.raises(UnsupportedError, match="vector mode 'x'"):
        touched_mask("x")


@pytest.mark.tiny
def test_eight_passes_reach_every_datum_of_a_face_once():
    seen = np.zeros((16, 16), int)
    for step in range(8):
        seen[lane_positions(step)] += 1
    assert (seen == 1).all()
