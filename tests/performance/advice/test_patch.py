"""Edits in the text: only the values change, wherever and however they are written."""

import pytest

from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.model import Buffer
from buda_emu.performance.advice.edits import Edit, apply_edits
from buda_emu.performance.advice.patch import UnwritableError, check_patch, patch_text
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

MATMUL = (ROOT / "netlists/matmul.yaml").read_bytes()
BLOCK = b"""\
devices: {arch: wormhole_b0}
queues:
  a: {input: HOST, type: queue, entries: 1, grid_size: [1, 1], t: 1, mblock: [2, 1], ublock: [1, 1], df: Float16_b,
      target_device: 0, loc: dram, dram: [[0, 0x10000000]]}
  o: {input: n, type: queue, entries: 1, grid_size: [1, 1], t: 1, mblock: [2, 1], ublock: [1, 1], df: Float16_b,
      target_device: 0, loc: dram, dram: [[1, 0x10000000]]}
graphs:
  g:
    target_device: 0
    input_count: 1
    n:  # the op
      type: exp
      grid_loc:   # where
        - 0
        - 0
      grid_size: [
        1,
        1 ]  # one ]
      inputs: [a]
      t: 1
      mblock: [2, 1]
      ublock: [1, 1]
      buf_size_mb: 2
      ublock_order: r
      in_df: [Float16_b]
      out_df: Float16_b
      intermed_df: Float16_b
      acc_df: Float16_b
      math_fidelity: "HiFi4"  # four passes
programs:
  - p:
      - var: {$c_zero: 0}
      - execute: {graph_name: g, queue_settings: {
          a: {prologue: false, epilogue: false, zero: false, rd_ptr_local: $c_zero, rd_ptr_global: $c_zero}}}
"""


def loaded(data):
    result = check_bytes(data, "net.yaml")
    assert result.netlist is not None, result.diagnostics
    return result.netlist


def changed_lines(before, after):
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    return [b.strip() for a, b in zip(old, new, strict=True) if a != b]


def test_values_change_and_comments_stay():
    netlist = loaded(MATMUL)
    edits = [
        Edit("op", "product", ("math_fidelity",), "LoFi"),
        Edit("op", "product", ("attributes", "m_k"), 2),
        Edit("op", "product", ("attributes", "u_kt"), 4),
        Edit("queue", "out", ("dram",), (Buffer(5, 0x20000000), Buffer(0, 0x20000000))),
    ]
    new, result = check_patch(MATMUL, netlist, edits)
    lines = changed_lines(MATMUL, new)
    assert len(lines) == 3
    assert lines[0].endswith(b"dram: [[5, 0x20000000], [0, 0x20000000]]}")
    assert b"math_fidelity: LoFi," in lines[1]
    assert b"{m_k: 2, u_kt: 4, bias: true" in lines[2]
    assert result.netlist.ops["product"].attributes.u_kt == 4
    assert patch_text(MATMUL, netlist, []) == MATMUL


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_blocks_lists_over_lines_and_quotes(newline, mark):
    data = mark + BLOCK.replace(b"\n", newline)
    netlist = loaded(data)
    edits = [
        Edit("op", "n", ("grid_loc",), (3, 2)),
        Edit("op", "n", ("grid_size",), (1, 1)),
        Edit("op", "n", ("math_fidelity",), "LoFi"),
        Edit("op", "n", ("attributes", "approximate_mode"), True),
    ]
    new, result = check_patch(data, netlist, edits)
    assert result.netlist.ops["n"].grid_loc == (3, 2)
    assert result.netlist.ops["n"].attributes.approximate_mode
    assert new.startswith(mark)
    assert b"# the op" in new
    assert b"grid_size: [1, 1]  # one ]" in new
    assert b"math_fidelity: LoFi  # four passes" in new
    assert b"\n      attributes: {approximate_mode: true}" in new


def test_a_key_is_added_to_a_map_on_one_line():
    programs = [program("p", execute("g", fifo_settings("a")))]
    data = text([queue("a"), queue("o", "n")], [graph("g", op("n", "exp", ["a"]))], programs).encode()
    netlist = loaded(data)
    new, result = check_patch(data, netlist, [Edit("op", "n", ("attributes", "approximate_mode"), True)])
    assert b", attributes: {approximate_mode: true}}" in new
    assert result.ok


def test_a_value_that_others_share_is_not_written():
    several = BLOCK.replace(b"target_device: 0", b"target_device: [0, 1]")
    netlist = loaded(several)
    assert len(netlist.ops) == 2
    with pytest.raises(UnwritableError, match="other objects share"):
        check_patch(several, netlist, [Edit("op", next(iter(netlist.ops)), ("math_fidelity",), "LoFi")])


def test_an_alias_is_refused():
    data = BLOCK.replace(b"dram: [[0, 0x10000000]]", b"dram: &d [[0, 0x10000000]]")
    data = data.replace(b"dram: [[1, 0x10000000]]", b"dram: *d")
    _, result = check_patch(data, loaded(data), [Edit("queue", "o", ("dram",), (Buffer(3, 0x10000000),))])
    assert not result.ok


def test_a_comment_inside_of_a_value_is_not_lost():
    data = BLOCK.replace(b"        1,\n", b"        1,  # rows ]\n")
    with pytest.raises(UnwritableError, match="a comment is inside of grid_size of n"):
        check_patch(data, loaded(data), [Edit("op", "n", ("grid_size",), (1, 1))])


def test_graphs_of_several_chips_are_edited_together_or_not_at_all():
    data = (ROOT / "netlists/two_chips.yaml").read_bytes()
    netlist = loaded(data)
    for name, own in netlist.ops.items():
        try:
            _, result = check_patch(data, netlist, [Edit("op", name, ("buf_size_mb",), own.buf_size_mb + 2)])
        except UnwritableError:
            continue
        assert result.netlist.ops[name].buf_size_mb == own.buf_size_mb + 2


def test_two_edits_of_one_place_and_what_is_not_there():
    netlist = loaded(MATMUL)
    twice = [Edit("op", "product", ("t",), 1), Edit("op", "product", ("t",), 2)]
    with pytest.raises(UnwritableError, match="two edits meet"):
        patch_text(MATMUL, netlist, twice)
    with pytest.raises(UnwritableError, match="there is no"):
        patch_text(MATMUL, netlist, [Edit("op", "product", ("t", "below"), 1)])


def test_what_an_edited_netlist_is():
    netlist = loaded(MATMUL)
    edits = [
        Edit("op", "product", ("grid_size",), (1, 1)),
        Edit("op", "product", ("input_2_tms", 0, "broadcast", "r"), 2),
        Edit("op", "product", ("in_df",), ("Bfp8_b",) * 3),
        Edit("queue", "weights", ("df",), "Bfp4_b"),
    ]
    new = apply_edits(netlist, edits)
    assert new.ops["product"].blocking.grid_size == (1, 1)
    assert new.ops["product"].input_tms[2][0].args == ("r", 2)
    assert new.ops["product"].in_df == ("Bfp8_b",) * 3
    assert new.queues["weights"].df == "Bfp4_b"
    assert netlist.ops["product"].blocking.grid_size == (2, 1)
    assert str(Edit("op", "n", ("attributes", "kernel_broadcast"), ((0, 4),))).endswith("{input_0: 4}")
