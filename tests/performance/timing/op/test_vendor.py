"""The vendor's formulas give the worked values of PERF 2."""

import pytest

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import op_cost
from buda_emu.performance.timing.op.vendor import vendor_cycles
from buda_emu.support.errors import HostError

WORKED = [
    ({"op_type": "nop"}, 3012),
    ({"op_type": "add", "out_df": "Bfp8_b"}, 2524),
    ({"op_type": "add", "out_df": "Float16_b"}, 4111),
    ({"op_type": "add", "out_df": "Float32"}, 7286),
    ({"op_type": "maximum"}, 10722),
    ({"op_type": "gelu", "vector_mode": "r", "t": 2, "mblock_m": 1, "mblock_n": 4, "ublock_rt": 1, "ublock_ct": 2},
     2744),
    ({"op_type": "exp", "approximate": True, "vector_mode": "c", "ublock_rt": 2, "ublock_ct": 2}, 6871),
    *(({"op_type": "matmul", "m_k": 4, "u_kt": 2, "out_df": df, "fidelity": fidelity}, cycles)
      for df, fidelity, cycles in (
        ("Bfp8_b", "LoFi", 10103), ("Bfp8_b", "HiFi2", 13729), ("Bfp8_b", "HiFi3", 17355), ("Bfp8_b", "HiFi4", 20980),
        ("Float16_b", "LoFi", 11109), ("Float16_b", "HiFi2", 15081), ("Float16_b", "HiFi3", 19053),
        ("Float16_b", "HiFi4", 23025), ("Int32", "HiFi4", 35292),
    )),
    ({"op_type": "matmul", "m_k": 4, "u_kt": 2, "out_df": "Bfp8_b", "fidelity": "LoFi", "l1_acc": True}, 8761),
    ({"op_type": "reduce", "reduce_dim": "z", "z": 4}, 37808),
    ({"op_type": "matmul", "arch": "grayskull", "m_k": 4, "u_kt": 2, "fidelity": "HiFi3"}, 32507),
]  # fmt: skip


@pytest.mark.parametrize(("given", "cycles"), WORKED)
def test_worked_values(given, cycles):
    size = {"mblock_m": 2, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 4} | given
    assert vendor_cycles(OpCall(**size)) == cycles


def test_the_published_sweep_row():
    call = OpCall(
        op_type="matmul",
        mblock_m=2,
        mblock_n=2,
        ublock_rt=2,
        ublock_ct=2,
        m_k=4,
        u_kt=2,
        out_df="Bfp8_b",
        in0_df="Bfp8_b",
        fidelity="LoFi",
    )
    assert vendor_cycles(call) == 6721


def test_unknown_types_cost_a_nop():
    size = {"mblock_m": 3, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 2}
    assert vendor_cycles(OpCall(op_type="topk", **size)) == vendor_cycles(OpCall(op_type="nop", **size))


def test_blackhole_has_the_numbers_of_wormhole_b0():
    size = {"op_type": "gelu", "mblock_m": 3, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 2}
    assert vendor_cycles(OpCall(arch="blackhole", **size)) == vendor_cycles(OpCall(**size))


def test_integers_only_on_wormhole_b0():
    with pytest.raises(HostError, match="no integers for blackhole"):
        vendor_cycles(OpCall(op_type="add", arch="blackhole", in0_df="Int8"))


def test_sparse_of_both_versions():
    size = {
        "op_type": "matmul",
        "sparse": True,
        "t": 2,
        "mblock_m": 4,
        "mblock_n": 1,
        "ublock_rt": 2,
        "ublock_ct": 2,
        "m_k": 2,
        "u_kt": 4,
        "nz_tiles": 47,
        "nz_ublocks": 9,
        "nz_strips": 3,
    }
    second = OpCall(in0_df="Bfp2", in1_df="Bfp8", out_df="Bfp8", fidelity="LoFi", **size)
    # decode 3*4*80 + 9*80 + 3*100, math 47*2*26, reload 9*4*50, pack 2*4*4*50
    assert vendor_cycles(second) == 960 + 720 + 300 + 2444 + 1800 + 1600
    first = OpCall(in0_df="Bfp2", in1_df="Bfp8", out_df="Bfp8", fidelity="HiFi2", **size)
    # N 47, S = 2*2*4 = 16, Z = 47 // 8 = 5, reload of a block 20 + 20*4
    assert (
        vendor_cycles(first) == 47 * 2 * 18 * 2 + (16 * 20 + 5 * 100) + 8 * 100 + 25 * 11 + 25 * 64 + 47 * 36 + 21 * 8
    )


def test_model_is_reached_by_name():
    call = OpCall(op_type="nop", mblock_m=2, mblock_n=2, ublock_rt=2, ublock_ct=4)
    cost = op_cost(call, model="vendor")
    assert (cost.cycles, cost.provenance, cost.model) == (3012.0, "vendor formula", "vendor")
    with pytest.raises(HostError, match="not one of fitted, vendor"):
        op_cost(call, model="guess")
