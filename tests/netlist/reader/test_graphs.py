import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Op, Pad, Tm
from netlist.netlist_texts import NETLIST, PROGRAMS, edited, found, rules


def op(old: str, new: str, arch: str | None = None) -> Op:
    """The op after an edit of its text."""
    result = check_text(edited(old, new), arch=arch)
    assert result.netlist is not None, result.diagnostics
    return result.netlist.ops["copy"]


def test_every_field_is_read() -> None:
    more = (
        "untilize_output: no, gradient_op: off, grid_transpose: y, overlay_size: 64, tile_dim: [32, 32], "
        "input_buf_min_size_tiles: [4], input_dram_io_buf_size_tiles: [8], forked_dram_inputs: [{src: copy}], type: nop"
    )
    copy = op("type: nop", more)
    assert (copy.name, copy.written_name, copy.graph) == ("copy", "copy", "fwd")
    assert (copy.type, copy.target_device) == ("nop", 0)
    assert (copy.grid_loc, copy.inputs, copy.in_df) == ((0, 0), ("src",), ("Float16_b",))
    assert (copy.out_df, copy.intermed_df, copy.acc_df) == ("Float16_b", "Float16_b", "Float16_b")
    assert (copy.math_fidelity, copy.buf_size_mb, copy.overlay_size) == ("HiFi3", 2, 64)
    assert (copy.untilize_output, copy.gradient_op, copy.grid_transpose) == (False, False, True)
    assert (copy.input_buf_min_size_tiles, copy.input_dram_io_buf_size_tiles) == ((4,), (8,))
    assert copy.forked_dram_inputs == (("src", "copy"),)
    assert (copy.input_tms, copy.input_pad, copy.input_unpad) == (((),), (Pad(),), (Pad(),))
    assert copy.blocking.shape == (1, 2, 2)


def test_hifi2_a_is_hifi2() -> None:
    assert op("HiFi3", "HiFi2_A").math_fidelity == "HiFi2"


@pytest.mark.parametrize(
    ("old", "new", "rule", "text"),
    [
        ("type: nop", "type: nop, foo: 1", "V022", "foo"),
        ("type: nop", "type: nop, input_0_pad: {rt: 1, foo: 2}", "V022", "foo"),
        ("type: nop", "type: nop, input_0_unpad: {rt: 0, pad_value: 1}", "V022", "pad_value"),
        ("type: nop", "type: nop, input_0_pad: [0, 0]", "V184", "[0, 0]"),
        ("type: nop", "type: nop, input_0_pad: {rt: x}", "V180", "x"),
        ("type: nop", "type: nop, input_1_pad: {rt: 0}", "V038", "input_1_pad"),
        ("type: nop", "type: nop, input_x_unpad: {rt: 0}", "V038", "input_x_unpad"),
        ("mblock: [2, 1], ublock: [1, 2]}\nprograms", "mblock: [2], ublock: [1, 2]}\nprograms", "V023", "[2]"),
        ("type: nop, grid_loc: [0, 0], grid_size: [1, 1]", "type: nop, grid_loc: [0, 0], grid_size: 1", "V023", "1"),
        ("grid_loc: [0, 0]", "grid_loc: 0", "V183", "0"),
        ("math_fidelity: HiFi3", "math_fidelity: HiFi5", "V025", "HiFi5"),
        ("in_df: [Float16_b]", "in_df: [Float17]", "V010", "Float17"),
        ("in_df: [Float16_b]", "in_df: Float16_b", "V183", "Float16_b"),
        ("inputs: [src]", "inputs: src", "V183", "src"),
        ("inputs: [src]", "inputs: [[src]]", "V017", "[src]"),
        ("out_df: Float16_b", "out_df: [Float16_b]", "V010", "[Float16_b]"),
        ("buf_size_mb: 2", "buf_size_mb: two", "V180", "two"),
        ("type: nop", "type: nop, gradient_op: fAlse", "V181", "fAlse"),
        ("type: nop", "type: nop, tile_dim: [8, 8]", "V007", "[8, 8]"),
        ("type: nop", "type: nop, forked_dram_inputs: {src: copy}", "V183", "{src: copy}"),
        ("type: nop", "type: nop, forked_dram_inputs: [src]", "V184", "src"),
        ("input_count: 1", "input_count: 1\n    foo: 3", "V022", "foo"),
        ("input_count: 1", "input_count: 3000000000", "V180", "3000000000"),
        ("target_device: 0\n", "target_device: x\n", "V180", "x"),
    ],
)  # fmt: skip
def test_a_malformed_field_is_reported_once_at_its_place(old: str, new: str, rule: str, text: str) -> None:
    (finding,) = found(edited(old, new))
    assert (finding.rule, finding.text) == (rule, text)


def test_a_misspelt_graph_field_gets_a_hint() -> None:
    (finding,) = found(edited("    input_count: 1", "    input_cuont: 1\n    input_count: 1"))
    assert (finding.rule, finding.diagnostic.hint) == ("V022", "did you mean 'input_count'?")


def test_duplicate_names_are_reported_where_they_stand_again() -> None:
    again = NETLIST.replace("    copy: {", "    copy: {}\n    copy: {")
    assert [(item.rule, item.text, item.diagnostic.line) for item in found(again) if item.rule == "V020"] == [
        ("V020", "copy", 10)
    ]
    graph = NETLIST.replace(PROGRAMS, "  fwd:\n    target_device: 0\n" + PROGRAMS)
    assert [(item.rule, item.text) for item in found(graph)] == [("V020", "fwd")]


def test_op_names_are_global() -> None:
    other = "  bwd:\n    target_device: 0\n    input_count: 1\n    copy: {}\n"
    assert "V020" in rules(NETLIST.replace(PROGRAMS, other + PROGRAMS))


def test_an_op_name_repeated_by_an_alias_is_a_duplicate() -> None:
    text = NETLIST.replace("  fwd:\n", "  fwd: &g\n").replace(PROGRAMS, "  bwd: *g\n" + PROGRAMS)
    assert "V020" in rules(text)


def test_a_repeated_in_df_is_appended_and_repeated_inputs_are_overwritten() -> None:
    # NETLIST 11.3 C1
    assert rules(edited("in_df: [Float16_b]", "in_df: [Float16_b], in_df: [Float16_b]")) == ["V028"]
    assert op("inputs: [src]", "inputs: [dst], inputs: [src]").inputs == ("src",)
    assert op("grid_size: [1, 1], inputs", "grid_size: [9, 9], grid_size: [1, 1], inputs").blocking.grid_size == (1, 1)


def test_shaping_may_stand_before_the_inputs() -> None:
    copy = op("type: nop", "input_0_tms: [hslice: 2, hstack: 2], input_0_unpad: {rt: 0}, type: nop")
    assert copy.input_tms == ((Tm("hslice", (2,)), Tm("hstack", (2,))),)


def test_padding_is_read_for_its_input() -> None:
    copy = op("type: nop", "type: nop, input_0_pad: {rt: 0, ct: 0, pad_value: 2.5}, input_0_unpad: {rt: 0, ct: 0}")
    assert copy.input_pad == (Pad(0, 0, 2.5),)
    assert copy.input_unpad == (Pad(0, 0, 0.0),)


@pytest.mark.parametrize(
    ("shaping", "value"),
    [
        ("input_0_tms: [pad: [0, 0, 1.0]], input_0_pad: {rt: 0, ct: 0, pad_value: 2.0}", 2.0),
        ("input_0_pad: {rt: 0, ct: 0, pad_value: 2.0}, input_0_tms: [pad: [0, 0, 1.0]]", 1.0),
        ("input_0_tms: [pad: [0, 0, 1.0]], input_0_pad: {rt: 0, ct: 0}", 1.0),
    ],
)
def test_both_kinds_of_padding_share_the_value_that_was_written_last(shaping: str, value: float) -> None:
    # OPS 7.3
    copy = op("type: nop", f"type: nop, {shaping}")
    assert copy.input_pad == (Pad(0, 0, value),)
    assert copy.input_tms == ((Tm("pad", (0, 0, value)),),)


def test_repeated_tm_lists_are_appended() -> None:
    copy = op("type: nop", "type: nop, input_0_tms: [hslice: 2], input_0_tms: , input_0_tms: [hstack: 2]")
    assert copy.input_tms == ((Tm("hslice", (2,)), Tm("hstack", (2,))),)


def test_attributes_are_merged_over_repeated_maps() -> None:
    copy = op("type: nop", "type: nop, attributes: {m_k: 3}, attributes: {u_kt: 2}")
    assert (copy.attributes.m_k, copy.attributes.u_kt) == (3, 2)
    assert copy.attributes.given == {"m_k", "u_kt"}


def test_graphs_without_ops_are_read() -> None:
    text = NETLIST.replace(PROGRAMS, "  idle: {target_device: 3, input_count: 1}\n" + PROGRAMS)
    netlist = check_text(text).netlist
    assert netlist is not None
    assert netlist.graphs["idle"].ops == ()
    assert netlist.graphs["idle"].target_device == 3
