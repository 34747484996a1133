"""`buda-emu opcycles`: a table in, the same table with two more columns out."""

import csv

import pytest

from buda_emu.app.cli.main import main
from buda_emu.performance.timing import OpCall, op_cost

HEADER = "op_type,mblock_m,mblock_n,ublock_rt,ublock_ct,in0_df,note"


@pytest.fixture
def table(tmp_path):
    def write(*lines, header=HEADER):
        path = tmp_path / "ops.csv"
        path.write_text("\n".join((header, *lines)) + "\n")
        return str(path)

    return write


def test_adds_two_columns(table, capsys):
    path = table('exp,2,4,1,8,Bfp8_b,"one, two"', "", "topk,2,2,1,1,Bfp8_b,")
    assert main(["opcycles", path]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 2
    expected = op_cost(OpCall(op_type="exp", mblock_m=2, mblock_n=4, ublock_ct=8, in0_df="Bfp8_b"))
    assert rows[0]["note"] == "one, two"
    assert float(rows[0]["predicted_cycles"]) == pytest.approx(expected.cycles, abs=0.005)
    assert rows[0]["provenance"] == "measured"
    assert rows[1]["provenance"] == "estimated from wormhole_b0 maximum Bfp8_b"


def test_writes_a_file(table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert main(["opcycles", table("nop,1,1,1,1,Float16_b,"), "-o", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text().splitlines()[0] == f"{HEADER},predicted_cycles,provenance"


def test_vendor_model(table, capsys):
    assert main(["opcycles", table("nop,2,2,2,4,Float16_b,"), "--model", "vendor"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "nop,2,2,2,4,Float16_b,,3012.00,vendor formula"


@pytest.mark.parametrize(
    ("lines", "header", "words", "code"),
    [
        (["nop,1,1,1,1,Float16_b,", "nop,1,0,1,1,Float16_b,"], HEADER, "row 3: mblock_n: 0 is not between 1", 2),
        (["nop,1,x,1,1,Float16_b,"], HEADER, "row 2: mblock_n: 'x' is not an integer", 2),
        (["nop,1,1,1,1"], HEADER, "row 2: 5 cells under a header of 7", 2),
        (["fused_op,1,1,1,1,Float16_b,"], HEADER, "row 2: op_type: fused_op has no cost", 3),
        (["nop,1"], "op_type,mblock_m", "row 1: the header lacks mblock_n, ublock_rt, ublock_ct", 2),
        (["nop,1,1,1,1,Float16_b,"], HEADER + ",predicted_cycles", "has predicted_cycles already", 2),
        (["nop,1,1,1,1,Float16_b,"], HEADER + ",note", "has note twice", 2),
    ],
)
def test_bad_input_is_placed(table, capsys, lines, header, words, code):
    assert main(["opcycles", table(*lines, header=header)]) == code
    assert words in capsys.readouterr().err


def test_no_table(tmp_path, capsys):
    assert main(["opcycles", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err
    (tmp_path / "empty.csv").write_text("")
    assert main(["opcycles", str(tmp_path / "empty.csv")]) == 2
    assert "the header lacks op_type" in capsys.readouterr().err
    (tmp_path / "binary.csv").write_bytes(b"\xff\x00\x9f")
    assert main(["opcycles", str(tmp_path / "binary.csv")]) == 2
    assert "not a CSV table" in capsys.readouterr().err
