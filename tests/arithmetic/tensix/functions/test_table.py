"""Every function of the table: the kernels give the bits of the definition, on every core, in every Dst mode."""

from itertools import product

import numpy as np
import pytest

from buda_emu.arithmetic.formats.bits import single
from buda_emu.arithmetic.tensix.functions.table import FUNCTIONS, bf16_cut, bind, fp16_constant, reference, run
from buda_emu.support.errors import InternalError, UnsupportedError
from device_vectors import mismatches
from lane_words import KINDS, datums

VALUES = {
    "approximate": (False, True),
    "exponent": (0, 3),
    "slope": (bf16_cut(0.1),),
    "threshold": (fp16_constant(0.0), fp16_constant(1.5)),
    "scale": (bf16_cut(1.25),),
    "below": (13107,),
    "zero_point": (single(3.0),),
    "minus_zero_point": (single(-3.0),),
}
CORES = ("grayskull", "wormhole_b0", "blackhole")


def bounds(name, core):
    """The function with every choice of parameters."""
    names = FUNCTIONS[name].parameters
    return [bind(name, core, **dict(zip(names, chosen, strict=True))) for chosen in product(*map(VALUES.get, names))]


def inputs(bound, mode, kind, tiles):
    return [datums(own, kind, tiles, seed) for seed, own in enumerate(bound.modes(mode)[0])]


def compare(name, core, mode, kind, tiles, vector="rc"):
    for bound in bounds(name, core):
        images = inputs(bound, mode, kind, tiles)
        out = np.empty_like(images[0])
        run(bound, mode, out, *images, vector=vector)
        assert mismatches(out, reference(bound, mode, *images, vector=vector)) == 0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernel_is_the_definition(name, kind, core):
    compare(name, core, "fp32", kind, 2)


@pytest.mark.parametrize("mode", ["bf16", "fp16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tables_are_the_definition(name, mode):
    compare(name, "wormhole_b0", mode, "any", 4)


@pytest.mark.parametrize("vector", ["r", "c"])
@pytest.mark.parametrize("mode", ["bf16", "fp32"])
@pytest.mark.parametrize("name", ["tanh", "maximum", "power"])
def test_the_rest_of_the_tile_keeps_the_first_input(name, mode, vector):
    compare(name, "wormhole_b0", mode, "normal", 2, vector)


@pytest.mark.parametrize("mode", ["bf16", "fp32"])
def test_results_are_never_written_to_a_copy(mode):
    image = datums(mode, "normal", 2)
    with pytest.raises(InternalError, match="C-contiguous"):
        run(bind("sqrt", approximate=False), mode, np.empty((2, 32, 64), np.uint32)[:, :, ::2], image)


def test_a_range_of_tiles():
    bound = bind("sqrt", approximate=False)
    for mode in ("bf16", "fp32"):
        image = datums(mode, "normal", 4)
        out = np.zeros_like(image)
        run(bound, mode, out, image, tiles=(1, 3))
        assert not out[0].any()
        assert not out[3].any()
        assert mismatches(out[1:3], reference(bound, mode, image)[1:3]) == 0


@pytest.mark.tiny
@pytest.mark.parametrize("name", ["exp", "tanh", "maximum", "requantization"])
def test_small(name):
    compare(name, "wormhole_b0", "fp32", "normal", 1, "r")
    compare(name, "wormhole_b0", "bf16", "normal", 1)


@pytest.mark.tiny
@pytest.mark.parametrize(("approximate", "rows"), [(False, 4), (True, 16)])
def test_approximate_exp_does_whole_faces(approximate, rows):
    image = np.zeros((1, 32, 32), np.uint32)
    out = np.empty_like(image)
    bound = bind("exp", approximate=approximate)
    run(bound, "bf16", out, image, vector="r")
    assert mismatches(out, reference(bound, "bf16", image, vector="r")) == 0
    assert (out[0].any(axis=1)).tolist() == [True] * rows + [False] * (32 - rows)


@pytest.mark.tiny
def test_functions_are_bound_by_name_with_their_parameters():
    with pytest.raises(UnsupportedError, match="softmax"):
        bind("softmax")
    with pytest.raises(InternalError, match=r"power takes \('exponent',\)"):
        bind("power", approximate=True)


@pytest.mark.tiny
def test_values():
    """A few numbers anybody can check."""
    x = np.array([-2.0, -0.5, 0.0, 1.0, 3.0], np.float32)
    image = np.resize(x.view(np.uint32), (1, 32, 32))

    def lanes(name, **parameters):
        return reference(bind(name, **parameters), "fp32", image).reshape(-1)[:5].view(np.float32).tolist()

    assert lanes("power", exponent=3) == [-8.0, -0.125, 0.0, 1.0, 27.0]
    assert lanes("lrelu", slope=bf16_cut(0.25)) == [-0.5, -0.125, 0.0, 1.0, 3.0]
    assert lanes("relu_min", threshold=fp16_constant(1.0)) == [0.0, 0.0, 0.0, 1.0, 3.0]
    assert lanes("relu_max", threshold=fp16_constant(2.0)) == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert lanes("abs", approximate=False) == [2.0, 0.5, 0.0, 1.0, 3.0]
    assert lanes("sigmoid", approximate=False)[2] == pytest.approx(0.5, abs=1e-3)
