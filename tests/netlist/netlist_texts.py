"""A small valid netlist, and what a check finds after an edit of its text."""

from dataclasses import dataclass

from buda_emu.netlist.load import check_text
from buda_emu.support.checker.diagnostic import Diagnostic

DEVICES = "devices: {arch: [grayskull, wormhole, wormhole_b0, blackhole]}\n"
QUEUES = """\
queues:
  src: {input: HOST, type: queue, entries: 2, grid_size: [1, 1], t: 1, mblock: [2, 1], ublock: [1, 2], df: Float16_b, \
target_device: 0, loc: dram, dram: [[0, 0x20000000]]}
  dst: {input: copy, type: queue, entries: 2, grid_size: [1, 1], t: 1, mblock: [2, 1], ublock: [1, 2], df: Float16_b, \
target_device: 0, loc: dram, dram: [[1, 0x21000000]]}
"""
GRAPHS = """\
graphs:
  fwd:
    target_device: 0
    input_count: 1
    copy: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [src], in_df: [Float16_b], out_df: Float16_b, \
intermed_df: Float16_b, acc_df: Float16_b, math_fidelity: HiFi3, ublock_order: r, buf_size_mb: 2, t: 1, \
mblock: [2, 1], ublock: [1, 2]}
"""
PROGRAMS = """\
programs:
  - run:
    - param: [$p_count]
    - staticvar: {$lptr: 0, $gptr: 0}
    - loop: $p_count
    - execute: {graph_name: fwd, queue_settings: {src: {prologue: false, epilogue: false, zero: false, \
rd_ptr_local: $lptr, rd_ptr_global: $gptr}}}
    - varinst: [$gptr, incwrap, 1, 4]
    - endloop
"""
NETLIST = DEVICES + QUEUES + GRAPHS + PROGRAMS

FUSED = """\
fused_ops:
  0:
    inputs: 1
    intermediates: 0
    schedules:
      - - double: {type: add, inputs: [input0, input0], mblock: [2, 1], ublock: [1, 2], output: output}
"""


@dataclass(frozen=True)
class Found:
    """A finding: its rule, the text that its carets underline, the whole diagnostic."""

    rule: str
    text: str
    diagnostic: Diagnostic


def found(text: str, arch: str | None = None) -> list[Found]:
    """Every error of a text, by place."""
    errors = [item for item in check_text(text, "net.yaml", arch).diagnostics if item.severity == "error"]
    return [Found(item.rule, item.source_line[item.column - 1 : item.end_column - 1], item) for item in errors]


def edited(old: str, new: str, text: str = NETLIST) -> str:
    """The text with the first `old` replaced."""
    assert old in text
    return text.replace(old, new, 1)


def rules(text: str, arch: str | None = None) -> list[str]:
    """The rules of every error of a text."""
    return [item.rule for item in found(text, arch)]
