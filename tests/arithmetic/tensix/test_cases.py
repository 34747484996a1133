"""What a second comparison with the simulator found: the cases of DEVICE_NUMERICS 10, by definition and kernel."""

import json
import re

import numpy as np
import pytest

import buda_emu as be
from arithmetic.tensix.conversions.test_pack import by_kernel, l1_bytes
from buda_emu.arithmetic.formats.bits import to_bits
from buda_emu.arithmetic.tensix.conversions import pack as l1_acc
from buda_emu.arithmetic.tensix.conversions.pack import Packed, pack
from buda_emu.arithmetic.tensix.functions.table import bind, fp16_constant, reference, run
from buda_emu.spec.formats import FORMATS
from device_vectors import CORES, FOLDER, mismatches, needs_vectors, vectors

CASES = FOLDER / "cases"


def functions():
    """Names of the functions that were compared."""
    if not CASES.is_dir():
        return ["absent"]
    return [name.removesuffix("_meta") for name in vectors("cases/sfpu") if name.endswith("_meta")]


def in_tiles(words):
    """Dst datums as whole tiles; the rest is zeros."""
    image = np.zeros(-(-words.size // 1024) * 1024, np.uint32)
    image[: words.size] = words
    return image.reshape(-1, 32, 32)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
@pytest.mark.parametrize("case", functions())
def test_functions(case, suffix):
    v = vectors("cases/sfpu")
    if f"{case}_{suffix}" not in v:
        pytest.skip(f"no case of {CORES[suffix]}")
    setting, expected = json.loads(str(v[f"{case}_meta"])), v[f"{case}_{suffix}"]
    parameters = setting["parameters"]
    if setting["function"].startswith("relu"):
        parameters = {"threshold": fp16_constant(parameters["threshold"])}
    bound = bind(setting["function"], CORES[suffix], **parameters)
    images = [in_tiles(v[name]) for name in setting["inputs"]]
    out = np.empty_like(images[0])
    run(bound, setting["mode"], out, *images)
    compared = np.ones(expected.size, np.bool_)
    if setting["function"] == "maximum":
        # The larger first operand is not stored anew: a denormal stays. No op has one in Dst, copies make them zeros.
        compared = lane_exponents(v[setting["inputs"][0]], setting["mode"]) != 0
    for found in (reference(bound, setting["mode"], *images), out):
        assert mismatches(found.reshape(-1)[: expected.size][compared], expected[compared]) == 0


def lane_exponents(datums, mode):
    return {"bf16": datums >> 7 & 255, "fp16": datums >> 10 & 31, "fp32": datums >> 23 & 255}[mode]


NAMES = {spec.id: spec.name for spec in FORMATS.values()}
PACKED = re.compile(r"(?:relu(\d)_)?(bf16|fp32)_src(\d+)_out(\d+)(?:_r10)?(?:_thr(\w+))?_bytes_(wh|bh)")


def packs():
    """Names of the packer's cases."""
    return [name for name in vectors("cases/pack") if PACKED.fullmatch(name)] if CASES.is_dir() else ["absent"]


@needs_vectors
@pytest.mark.parametrize("name", packs())
def test_packs(name):
    v = vectors("cases/pack")
    relu_mode, mode, held, out, threshold, suffix = PACKED.fullmatch(name).groups()
    out_df, held_as = NAMES[int(out)], NAMES[int(held)]
    if "_r10_" in name:
        out_df, held_as = "Fp8_e4m3", "Float16_b"  # the registers say Lf8 and Float16
    setting = mode, held_as, out_df, int(relu_mode or 0), int(threshold or "0", 16), CORES[suffix]
    faces = v[name[: name.index("_bytes")] + "_dst"].reshape(-1, 16, 16)
    expected = v[name].reshape(len(faces), -1)
    assert np.array_equal(l1_bytes(pack(faces, *setting), out_df), expected)
    tiles = np.zeros((len(faces), 32, 32), np.uint32)
    tiles[:, :16, :16] = faces
    found = by_kernel(tiles, *setting)
    exponents = None if found.exponents is None else found.exponents[:, :16, :1]
    assert np.array_equal(l1_bytes(Packed(found.datums[:, :16, :16], exponents), out_df), expected)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
@pytest.mark.parametrize(("name", "df"), [("f32", "Float32"), ("bf16", "Float16_b"), ("fp16", "Float16")])
def test_sums_in_l1(name, df, suffix):
    v = vectors("cases/pack")
    expected = v[f"l1acc_{name}_out_{suffix}"]
    mode = {"f32": "fp32"}.get(name, name)
    new = pack(v[f"l1acc_{name}_dst"], mode, df, df, core=CORES[suffix]).datums
    old = v[f"l1acc_{name}_init"].astype(new.dtype)
    assert np.array_equal(l1_acc.accumulate(df, old, new).reshape(expected.shape), expected)


@needs_vectors
@pytest.mark.parametrize("threads", [1, 2])
def test_a_float32_goes_into_blocks_with_one_rounding(threads):
    net = be.load(CASES / "nop_float32_to_bfp8b_16bit_dest.yaml")
    pushed = np.load(CASES / "nop_inputs" / "x.npy")
    with be.Emulator(net, "device", threads=threads) as emu:
        emu.push("x", pushed)
        emu.run("p")
        found = emu.outputs("raw")["out"]
    expected = np.load(CASES / "nop_expected.npy")
    assert np.array_equal(to_bits(found).reshape(expected.shape), to_bits(expected))
