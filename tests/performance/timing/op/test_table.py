"""Rows of a table of ops become calls, or say which column is wrong."""

import pytest

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.table import COLUMNS, read_row
from buda_emu.support.errors import HostError, UnsupportedError

ROW = {"op_type": "exp", "mblock_m": "2", "mblock_n": "4", "ublock_rt": "1", "ublock_ct": "8"}


def test_empty_cells_take_defaults():
    assert read_row(ROW | {"arch": "", "t": " "}) == OpCall(
        op_type="exp", mblock_m=2, mblock_n=4, ublock_rt=1, ublock_ct=8
    )


def test_all_columns():
    row = ROW | {
        "op_type": "matmul",
        "arch": "grayskull",
        "fidelity": "LoFi",
        "in0_df": "Bfp2",
        "in1_df": "Bfp8",
        "out_df": "Bfp8",
        "vector_mode": "RC",
        "reduce_dim": "",
        "t": "3",
        "m_k": "2.0",
        "u_kt": "4",
        "z": "",
        "nz_strips": "4",
        "nz_ublocks": "9",
        "nz_tiles": "47",
        "approx": "0",
        "l1_acc": "true",
        "sparse": "1",
        "other": "x",
    }
    assert set(COLUMNS) <= set(row)
    call = read_row(row)
    assert (call.arch, call.m_k, call.l1_acc, call.sparse, call.nz_tiles) == ("grayskull", 2, True, True, 47)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"mblock_m": ""}, "mblock_m: empty"),
        ({"t": "two"}, "t: 'two' is not an integer"),
        ({"t": "2.5"}, "t: '2.5' is not"),
        ({"t": "inf"}, "t: 'inf' is not"),
        ({"t": "nan"}, "t: 'nan' is not"),
        ({"approx": "yes"}, "approx: 'yes' is neither 0 nor 1"),
        ({"ublock_ct": "0"}, "ublock_ct: 0 is not between 1"),
        ({"op_type": "xp"}, "op_type: 'xp' is not an op type"),
    ],
)
def test_errors_name_the_column(cells, words):
    with pytest.raises(HostError, match=words):
        read_row(ROW | cells)


def test_fused_ops_are_refused():
    with pytest.raises(UnsupportedError, match="op_type: fused_op has no cost"):
        read_row(ROW | {"op_type": "fused_op"})
