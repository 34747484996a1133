"""Bytes: digests, rings, 16 bits, halos; what goes wrong is a mismatch, what is not emulated is said by name."""

import copy
import random
import tracemalloc

import numpy as np
import pytest

from buda_emu import HostError, UnsupportedError
from buda_emu.arithmetic.kernels.products.matmul import integer_product
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini import execution_network
from buda_emu.foreign.gemini.boxes import Box
from buda_emu.foreign.gemini.execution import L2, Fault, weight_image
from buda_emu.foreign.gemini.execution_network import hash_values, seeded_input, seeded_weights
from buda_emu.foreign.gemini.model import Tensor
from buda_emu.support.errors import ScheduleError
from gemini_schedules import EXPECTED, NAMES, drop, edited, network, put, schedule


def run(name, *edits, frontend=None, **options):
    content = edited(schedule(name), *edits)
    return gemini.execute(gemini.load(content), frontend or network(name), **{"seed": 1, **options})


@pytest.mark.parametrize("name", NAMES)
def test_bits_of_the_untiled_run(name):
    done = run(name)
    assert done.mismatches == ()
    assert done.ok
    assert done.digests == EXPECTED[name]["digests"]
    assert done.seeded


def test_another_seed_is_another_output():
    assert run("ring_wrap", seed=2).digests != run("ring_wrap").digests
    assert run("ring_wrap", seed=2).ok


def wraps(name):
    """Entries of snapshots that pass the end of their region."""
    return sum(
        tensor.address + tensor.size > next(high for low, high in work.regions if low <= tensor.address < high)
        for work in gemini.load(schedule(name)).workloads()
        for tensor in work.buffer
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_rings_of_the_schedules_wrap(name):
    assert wraps(name) == EXPECTED[name]["wrapped"]


def test_given_weights_are_used():
    given = {
        name: seeded_weights(name, tuple(network("ring_wrap")[name]["input_shape"][1]), 1)
        for name in ("c1", "c2", "fc")
    }
    done = run("ring_wrap", weights=given)
    assert (done.digests, done.seeded) == (EXPECTED["ring_wrap"]["digests"], ())
    with pytest.raises(HostError, match="weights of 'c1'"):
        run("ring_wrap", weights={"c1": (np.zeros(3, np.int8), np.zeros(1), np.zeros(1))})


FAULTS = [
    ("a halo that is taken from the wrong core", "two_cores", [
        put("1/0/buffer/2/source/0/lower", [0, 0, 4, 0]), put("1/0/buffer/2/source/0/upper", [0, 2, 4, 7]),
        put("1/0/buffer/2/source/1/lower", [0, 0, 0, 0]), put("1/0/buffer/2/source/1/upper", [0, 2, 3, 7])],
     "core 1 workload 1 (c1): 391 of 512 elements differ"),
    ("another ring", "ring_wrap", [put("0/5/ring_buffer_info", [[0, 7680]])], "core 0 workload 5 (fc)"),
    ("padding at the wrong side", "ring_wrap", [put("0/1/tile_info/tile_num_1/tile_padding_tblr", [1, 0, 1, 1])],
     "(c1)"),
    ("a tile of the wrong shape", "ring_wrap", [put("0/1/tile_info/tile_num_1/tile_padding_tblr", [0, 0, 1, 1])],
     "has shape [1, 8, 5, 12], it needs [1, 8, 6, 12]"),
    ("a tile that begins elsewhere", "two_cores", [
        put("0/1/tile_info/tile_num_3/ifmap_lower", [0, 0, 5, 0]),
        put("0/1/tile_info/tile_num_3/ifmap_upper", [0, 2, 7, 7])], "is read, which is"),
    ("a result where an operand is read later", "ring_wrap", [
        put("0/2/buffer/2/address", 4032), put("0/3/buffer/1/address", 4032)], "differ from the un-tiled run"),
    ("a result without room", "two_cores", [drop("0/2/buffer/4")], "core 0 workload 4 (a): 256 of 256 elements differ"),
    ("an operand where nothing was written", "ring_wrap", [put("0/3/buffer/1/address", 7424)], "were never written"),
    ("a weight that is not there", "two_cores", [drop("0/3/buffer/1")], "weight 4 is not there"),
    ("an operand without tensor", "two_cores", [drop("0/3/buffer/0/cur_wl_ifmap")], "no tensor holds the operand"),
    ("a tensor in no region", "ring_wrap", [put("0/2/ring_buffer_info", [])], "is in no ring region"),
    ("a stop", "fp16_dram", [put("0/6/buffer/2/start_send", False)], "stopped"),
]  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case[0])
def test_what_goes_wrong_is_a_mismatch(case):
    _, name, edits, says = case
    done = run(name, *edits)
    assert not done.ok
    assert any(says in str(item) for item in done.mismatches), [str(item) for item in done.mismatches]


def test_a_stop_names_what_is_waited_for():
    swapped = [
        put(f"0/{place}/tensor_order", order)
        for place, order in (("0/buffer/0", 2), ("1/buffer/0", 2), ("1/buffer/2", 0), ("2/buffer/0", 0))
    ]
    (first, *_) = run("third_tile", *swapped).mismatches
    assert "stopped: it waits for load of transfer 4 to core 0, after weight of transfer 2 to core 0" in str(first)


UNSUPPORTED = [
    ("q", put("c1/operation", "conv3d"), "layer 'c1': operation 'conv3d'"),
    ("q", put("c1/input_dtype", ["float16", "int8"]), "conv2d of float16 and int8"),
    ("q", put("q/output_dtype", ["int4"]), "data type 'int4'"),
    ("q", put("c1/activation_type", "gelu"), "activation 'gelu'"),
    ("q", put("c1/groups", 2), "groups 2"),
    ("q", put("c1/dilation", [2, 2]), r"dilation \[2, 2\]"),
    ("q", put("c1/input_shape/1", [8, 1, 3, 3]), "a grouped convolution"),
    ("q", put("c1/quant_info/input_zero_point1", 0.5), "input_zero_point1 0.5"),
    ("q", put("c1/quant_info/round_type", "floor"), "round_type 'floor'"),
    ("q", put("q/module_list/post_cal/carry_sel", "floor"), "carry_sel 'floor'"),
    ("q", put("q/module_list/post_cal/sumsub_mode", "sub"), "sumsub_mode 'sub'"),
    ("q", put("q/module_list/lut_group", {}), "module 'lut_group' of quantize"),
    ("q", put("a1/module_list/fp32_sum_sub_group0/sumsub_group_mode", "sub"), "sumsub_group_mode 'sub'"),
    ("q", put("p1/module_list/compare_group/cmp_max_en", "min"), "cmp_max_en 'min'"),
    ("q", put("q/device", "cpu"), "'quantize' of the host"),
    ("q", put("q/input_dtype", ["int8"]), "a network input of 'int8'"),
]


@pytest.mark.parametrize("case", UNSUPPORTED, ids=lambda case: case[2])
def test_what_is_not_emulated_is_said_by_name(case):
    _, edit, says = case
    with pytest.raises(UnsupportedError, match=says):
        run("ring_wrap", frontend=edited(network("ring_wrap"), edit))


def test_a_mean_of_a_vector_is_not_emulated():
    with pytest.raises(UnsupportedError, match="mul_group_k_mux 'vector'"):
        run(
            "batch2_avg",
            frontend=edited(network("batch2_avg"), put("av/module_list/fp32_mul_group/mul_group_k_mux", "vector")),
        )


def test_dialect_b_is_not_executed():
    with pytest.raises(UnsupportedError, match="without addresses"):
        gemini.execute(gemini.load(schedule("b")), network("ring_wrap"))


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (drop("c1/operation"), "'operation' is a text"),
        (put("c1/kernel_size", [3]), "'kernel_size'"),
        (put("c1/stride", [0, 1]), "'stride'"),
        (put("c1/input_shape", [[1, 2]]), r"\[N, C, H, W\]"),
        (put("c1/output_shape", [[1, 9, 12, 12]]), "do not fit its kernel and output_shape"),
        (put("q/output_shape", [[1, 3, 12, 11]]), "computes"),
        (drop("c1/quant_info"), "no 'quant_info'"),
        (put("c1/quant_info/output_scale", "x"), "'output_scale' is a number"),
        (put("c1/previous_layer", ["p1"]), "circle"),
        (put("a1/previous_layer", ["c1"]), "of 1 operand"),
        (put("c2/input_shape/0", [1, 8, 12, 11]), "reads"),
        (drop("c1"), "conv|operand|reads|operands"),
    ],
)
def test_a_network_that_cannot_be_computed(edit, says):
    with pytest.raises(ScheduleError, match=says):
        run("ring_wrap", frontend=edited(network("ring_wrap"), edit))


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 200))])
def test_a_network_larger_than_memory_is_refused_before_anything_is_computed(seed, monkeypatch):
    """Whatever extent a file gives an absurd number: of a shape, a padding, a window."""
    monkeypatch.setattr(execution_network, "default_memory_limit", lambda: 64 << 20)
    draw = random.Random(seed)
    frontend = copy.deepcopy(network("ring_wrap"))
    layer = draw.choice([one for one in frontend.values() if "padding" in one])
    key = draw.choice(["output_shape", "padding"])
    extents = layer[key][0] if key == "output_shape" else layer[key]
    extents[draw.randrange(2, 4)] = draw.choice([1 << 20, 1 << 24, (1 << 31) - 1])
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedError, match=r"the network needs .* when it is computed at once"):
            run("ring_wrap", frontend=frontend)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_seeded_values_by_hand():
    # facts GEMINI 6: fmix32 of crc32(name) xor seed plus i times 0x9E3779B9
    from zlib import crc32

    def fmix(h):
        h ^= h >> 16
        h = h * 0x85EBCA6B & 0xFFFFFFFF
        h ^= h >> 13
        h = h * 0xC2B2AE35 & 0xFFFFFFFF
        return h ^ h >> 16

    want = [fmix((crc32(b"c/weight") ^ 7) + i * 0x9E3779B9 & 0xFFFFFFFF) for i in range(5)]
    assert hash_values("c/weight", 7, 5).tolist() == want
    values, scale, bias = seeded_weights("c", (1, 5, 1, 1), 7)
    assert values.reshape(-1).tolist() == [(h >> 24) % 255 - 127 for h in want]
    assert (scale.dtype, bias.dtype) == (np.float32, np.float32)
    unit = (fmix((crc32(b"input1") ^ 0) & 0xFFFFFFFF) >> 8) / 2**24
    assert seeded_input("input1", (1, 1, 1, 1), 0)[0, 0, 0, 0] == np.float16(unit * 4 - 2)


@pytest.mark.tiny
def test_integer_product_is_exact():
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(-300, 300, shape).astype(np.int16) for shape in ((7, 45), (5, 45)))
    sums = np.empty((7, 5), np.int32)
    integer_product(rows, columns, sums)
    assert (sums == rows.astype(np.int64) @ columns.astype(np.int64).T).all()


def tensor(address, upper, bitwidth=8):
    return Tensor("", "ifmap", Box((0, 0, 0, 0), upper), (), (), None, 1, address, 0, 64 // bitwidth, bitwidth)


@pytest.mark.parametrize("bitwidth", [8, 16])
def test_layout_and_ring_byte_by_byte(bitwidth):
    # NHWC, channels padded to the alignment, past the end of the region at its beginning (facts GEMINI 2.4, 2.6)
    dtype = np.int8 if bitwidth == 8 else np.float16
    where = tensor(192, (1, 2, 1, 2), bitwidth)
    memory, regions = L2(256), [(0, 64), (64, 256)]
    values = np.arange(2 * 3 * 2 * 3).astype(dtype).reshape(2, 3, 2, 3)
    memory.write_map(regions, where, where.box, values)
    channels, word = 64 // bitwidth, bitwidth // 8
    raw = memory._bytes
    for n, c, h, w in np.ndindex(2, 3, 2, 3):
        byte = (((n * 2 + h) * 3 + w) * channels + c) * word
        place = [64 + (192 - 64 + byte + k) % 192 for k in range(word)]
        assert raw[place].view(dtype)[0] == values[n, c, h, w]
    assert (memory.read_map(regions, where, Box((1, 1, 0, 1), (1, 2, 1, 2))) == values[1:, 1:, :, 1:]).all()


def test_unwritten_bytes_are_a_fault():
    memory, where = L2(64), tensor(0, (0, 0, 1, 1))
    memory.write_map([(0, 64)], where, Box((0, 0, 0, 0), (0, 0, 0, 1)), np.zeros((1, 1, 1, 2), np.int8))
    with pytest.raises(Fault, match="2 bytes of it were never written"):
        memory.read_map([(0, 64)], where, where.box)


def test_the_bytes_of_a_weight():
    values = np.arange(2 * 3 * 1 * 2).astype(np.int8).reshape(2, 3, 1, 2)
    scale, bias = np.float32([1.5, 2.5]), np.float32([-1, 3])
    image = weight_image((values, scale, bias), Box((0, 1, 0, 0), (0, 1, 2, 1)))
    assert image.tolist()[:16] == [6, 8, 10, 0, 0, 0, 0, 0, 7, 9, 11, 0, 0, 0, 0, 0]
    assert image[16:24].view(np.float32).tolist() == [2.5, 3]
    assert image.size == 48
    assert not image[24:].any()
