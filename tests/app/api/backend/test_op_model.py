"""Cycles of ops by the vendor's model: the worked values of PERF 2."""

import pytest

from buda_emu.app import backend_api as api


class Fidelity:
    """An enum of another module."""

    name = "HiFi2"


def desc(kind, df="Float16_b", *, m=(2, 2), u=(2, 4), t=1, arch="wormhole_b0", version=3, **fields):
    found = api.OpModelDesc()
    values = {
        "type": kind,
        "arch": arch,
        "data_format": api.get_format_from_string(df),
        "math_fidelity": "HiFi3",
        "t": t,
        "mblock_m": m[0],
        "mblock_n": m[1],
        "ublock_rt": u[0],
        "ublock_ct": u[1],
        "version": version,
        **fields,
    }
    for name, value in values.items():
        setattr(found, name, value)
    return found


MATMUL = {"mblock_k": 4, "ublock_kt": 2}
WORKED = [
    (desc("nop"), 3012),
    (desc("add", "Bfp8_b"), 2524),
    (desc("add"), 4111),
    (desc("add", "Float32"), 7286),
    (desc("maximum"), 10722),
    (desc("gelu", m=(1, 4), u=(1, 2), t=2, vector_mode="r"), 2744),
    (desc("exp", u=(2, 2), vector_mode="c", approx_mode=True), 6871),
    (desc("matmul", "Bfp8_b", math_fidelity="LoFi", **MATMUL), 10103),
    (desc("matmul", "Bfp8_b", math_fidelity=Fidelity(), **MATMUL), 13729),
    (desc("matmul", math_fidelity="HiFi4", **MATMUL), 23025),
    (desc("matmul", "Bfp8_b", math_fidelity="LoFi", l1_accumulate=True, **MATMUL), 8761),
    (desc("matmul", "Int32", math_fidelity="HiFi4", **MATMUL), 35292),
    (desc("reduce", op_attr="z", reduce_z=4), 37808),
    (desc("matmul", arch="grayskull", version=2, **MATMUL), 32507),
]


@pytest.mark.parametrize(("op", "cycles"), WORKED, ids=lambda value: getattr(value, "type", value))
def test_worked_values(op, cycles):
    assert api.get_op_model_execution_cycles(op) == cycles


def test_defaults():
    assert api.OpModelDesc().version == 1
    sizes = ("t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct", "mblock_k", "ublock_kt")
    assert [getattr(api.OpModelDesc(), name) for name in sizes] == [0] * 7
    assert (api.OpModelDesc().sparse_indices, api.OpModelDesc().sparse_nz_ublocks) == (0, -1)


@pytest.mark.parametrize("kind", ["datacopy", "fused_op", "ethernet_datacopy", "topk", "embedding", "tilizer"])
def test_types_without_a_set_take_that_of_nop(kind):
    assert api.get_op_model_execution_cycles(desc(kind)) == 3012


def test_sparse():
    op = desc("matmul", sparse_indices=8, sparse_nz_ublocks=4, sparse_nz_strips=2, **MATMUL)
    assert api.get_op_model_execution_cycles(op) > 0
    assert api.get_op_model_param(op, "v2_nz_strip_decode") == 100


def test_sparse_without_counts_takes_the_first_formula():
    """PERF 2, sparse V1 in full, for N = 8, t = 1, m = n = 2, ublock 2 x 4, k = 4, phases 3."""
    n_indices, m, n, rt, ct, k, phases = 8, 2, 2, 2, 4, 4, 3
    filled = n_indices // (rt * ct)
    ublocks = max(k * m, filled)
    load = 20 + 20 * ct * rt
    math = n_indices * n * ct * 18 * phases
    reload = (ublocks * 20 + filled * load) * n + m * load
    pack = 25 * (ublocks - filled) * n + 25 * 2 * n * m * ct * rt
    decode = n_indices * 12 * (2 + n) + ublocks * 8 + filled * 8
    op = desc("matmul", sparse_indices=n_indices, **MATMUL)
    assert api.get_op_model_execution_cycles(op) == math + reload + pack + decode
    op.sparse_nz_ublocks = op.sparse_nz_strips = 0
    with pytest.raises(RuntimeError, match="at least 1"):
        api.get_op_model_execution_cycles(op)


def test_older_versions_lack_sets():
    """PERF 2: maximum since version 2, integers and quantization since version 3; nop's set, or base, stands in."""
    nop = api.get_op_model_execution_cycles(desc("nop"))
    assert api.get_op_model_execution_cycles(desc("maximum", version=1)) == nop
    assert api.get_op_model_execution_cycles(desc("maximum", version=2)) == 10722
    # nu = 4, nt = 32; nop: 305 and 56, times d = 2 for 16-bit formats
    assert api.get_op_model_execution_cycles(desc("quantization", version=2)) == 4 * 305 + 32 * 56 * 2
    assert api.get_op_model_execution_cycles(desc("quantization", "Bfp8", version=1)) == 4 * 305 + 32 * 56
    assert api.get_op_model_execution_cycles(desc("nop", "Int8", version=2)) == nop
    assert api.get_op_model_execution_cycles(desc("nop", "Int8")) != nop
    assert api.get_op_model_execution_cycles(desc("maximum", arch="blackhole", version=1)) == 10722


@pytest.mark.parametrize(
    "op",
    [
        desc("nop", version=0),
        desc("nop", version=4),
        desc("nop", arch="tpu"),
        desc("nothing"),
        desc("nop", m=(0, 1)),
        desc("nop", "Invalid"),
        desc("nop", math_fidelity="Invalid"),
        desc("nop", "Int8", arch="blackhole", version=1),
        desc("matmul"),
    ],
    ids=range(9),
)
def test_what_the_model_refuses(op):
    with pytest.raises(RuntimeError, match="get_op_model_execution_cycles"):
        api.get_op_model_execution_cycles(op)
    with pytest.raises(RuntimeError, match="get_op_model_param"):
        api.get_op_model_param(op, "tile_weight")


def test_parameters():
    assert api.get_op_model_param(desc("nop"), "ublock_weight") == 305
    assert api.get_op_model_param(desc("matmul", **MATMUL), "math_tiles_weight") == 15
    with pytest.warns(api.BackendWarning, match="nop has no weight, so it is 0; it has ublock_weight, tile_weight"):
        assert api.get_op_model_param(desc("nop"), "weight") == 0
