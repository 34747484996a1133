"""What `buda-emu numerics` prints of its results."""

from dataclasses import replace

from buda_emu.emulator.op_errors.numerics_result import NewValue, Numerics, OpError, OpNumerics, Repair
from buda_emu.report.terminal.numerics import numerics_lines

WITHOUT = {"inputs": 2e-3, "fidelity": None, "dest": 4e-2, "spills": None, "sfpu": None, "packing": 0.0}


def op(index, name, local, repair=None, note="", cause="packing"):
    found = OpError(local, 0.999, 0.25) if local is not None else None
    without = WITHOUT if found else {}
    return OpNumerics(
        index, name, "nop", "g", ("Bfp8_b",), "Bfp8_b", OpError(0.05, 0.99, 1.0), found, without, cause, repair, note
    )


def numerics_text(*ops, top=None):
    return "\n".join(numerics_lines(Numerics("a.yaml", "blackhole", ("p",), {}, 0, ops), top)).splitlines()


def test_a_row_and_a_repair():
    repair = Repair((NewValue("out_df", "Bfp8_b", "Float16_b"),), 2e-4)
    lines = numerics_text(op(0, "x", 3.1e-3, repair))
    assert lines[0] == "a.yaml (blackhole): 1 op"
    assert lines[2].split("  ")[-1] == "main cause"
    assert " ".join(lines[3].split()) == (
        "0 x nop Bfp8_b 5.0e-02 0.990000 3.1e-03 0.25 2.0e-03 - 4.0e-02 - - 0 packing"
    )
    assert lines[5:] == ["op x: out_df Bfp8_b -> Float16_b takes the error from 3.1e-03 to 2.0e-04"]


def test_two_changes_together():
    repair = Repair((NewValue("acc_df", "Float16_b", "Float32"), NewValue("out_df", "Bfp8_b", "Float16_b")), 2e-4)
    assert numerics_text(op(0, "x", 3.1e-3, repair))[-1] == (
        "op x: acc_df Float16_b -> Float32 and out_df Bfp8_b -> Float16_b take the error from 3.1e-03 to 2.0e-04"
    )


def test_what_cannot_be_repaired_and_what_need_not_be():
    lines = numerics_text(op(0, "bad", 1e-2), op(1, "good", 1e-3), op(2, "odd", None, note="why", cause=""))
    assert lines[-2:] == ["op bad: no change halves the error of 1.0e-02", "op odd: not taken apart: why"]
    assert lines[5].split()[-10:] == ["0.990000", *["-"] * 9]


def test_top_lists_the_worst_first():
    lines = numerics_text(op(0, "a", 1e-3), op(1, "b", 5e-3), op(2, "c", 2e-3), top=2)
    assert lines[0].endswith("3 ops, the worst 2 of them by their own error")
    assert [line.split()[1] for line in lines[3:5]] == ["b", "c"]


def test_values_that_are_not_finite_are_reported():
    found = OpNumerics(0, "x", "nop", "g", (), "Float32", OpError(0.0, 1.0, 0.0, 3), OpError(0.0, 1.0, 0.0, 3))
    assert numerics_text(found)[-1] == "op x: 3 values left out: infinite or NaN in one precision, not in the other"


def test_sentences_on_errors():
    """Sentences on values out of range, on errors that grow, and on a PCC of values that hardly differ."""
    total = OpError(0.3, 0.5, 1.0, spread=0.02)
    found = OpNumerics(
        0, "x", "nop", "g", (), "Float16", total, OpError(0.1, 0.9, 1.0), operands=0.05, largest=131008.0, beyond=1
    )
    assert numerics_text(found)[-4:-1] == [
        "op x: 1 value above 131008, the largest that Float16 holds",
        "op x: the error of its operands, 5.0e-02, becomes 3.0e-01: its terms cancel, or its function is steep",
        "op x: its PCC says little: the values differ by 2.0e-02 of their size, and the error is 3.0e-01",
    ]


def test_a_column_for_vector_modes_only_where_there_are_some():
    plain = op(0, "x", 1e-3)
    assert "-vector" not in numerics_text(plain)[2]
    assert "-vector" in numerics_text(replace(plain, without={**WITHOUT, "vector": 1e-4}), plain)[2]


def test_an_error_that_no_change_takes_away_is_inherent():
    """Only where the vector unit makes it, where nothing halves it, and where it is worth a sentence."""
    repair = Repair((NewValue("out_df", "Bfp8_b", "Float16_b"),), 2e-4)
    ops = [op(0, "curve", 1e-2, cause="sfpu"), op(1, "rest", 1e-2, cause="vector"), op(2, "packed", 1e-2)]
    ops += [op(3, "both", 1e-2, cause="sfpu+packing"), op(4, "small", 1e-3, cause="sfpu")]
    ops += [op(5, "mended", 1e-2, repair, cause="sfpu")]
    unit = "the vector unit's approximation of its function"
    mode = "the vector mode, which leaves the operand in the rest of a tile"
    assert numerics_text(*ops)[-5:] == [
        f"op curve: no change halves the error of 1.0e-02: it is inherent in {unit} (nop)",
        f"op rest: no change halves the error of 1.0e-02: it is inherent in {mode} (nop)",
        "op packed: no change halves the error of 1.0e-02",
        "op both: no change halves the error of 1.0e-02",
        "op mended: out_df Bfp8_b -> Float16_b takes the error from 1.0e-02 to 2.0e-04",
    ]
