"""buda-emu in two minutes: one netlist of three ops on single tiles, from text to result.

These tests also pass with NUMBA_DISABLE_JIT=1, where kernels are the plain Python functions they are written as.
"""

import subprocess
import sys

import numpy as np
import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text

pytestmark = pytest.mark.tiny

# queue a, ram b -> product -> root -> out.  A tile has 32 x 32 elements; every tensor here is one tile.
NETLIST = """
devices: {arch: wormhole_b0}

queues:
  a:   {input: HOST, type: queue, entries: 2, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float16_b,
        target_device: 0, loc: dram, dram: [[0, 0x10000000]]}
  b:   {input: HOST, type: ram, entries: 1, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Bfp8_b,
        target_device: 0, loc: dram, dram: [[1, 0x10000000]]}
  out: {input: root, type: queue, entries: 2, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float32,
        target_device: 0, loc: dram, dram: [[2, 0x10000000]]}

graphs:
  compute:
    target_device: 0
    input_count: 1
    product: {type: matmul, grid_loc: [0, 0], grid_size: [1, 1], inputs: [a, b], t: 1, mblock: [1, 1], ublock: [1, 1],
      ublock_order: r, buf_size_mb: 2, in_df: [Float16_b, Bfp8_b], out_df: Float16_b, intermed_df: Float16_b,
      acc_df: Float16_b, math_fidelity: HiFi4, attributes: {m_k: 1, u_kt: 1}}
    root: {type: sqrt, grid_loc: [0, 1], grid_size: [1, 1], inputs: [product], t: 1, mblock: [1, 1], ublock: [1, 1],
      ublock_order: r, buf_size_mb: 2, in_df: [Float16_b], out_df: Float32, intermed_df: Float32, acc_df: Float16_b,
      math_fidelity: HiFi4}

programs:
  - run:
      - param: [$rounds]
      - staticvar: {$read: 0}                     # kept from run to run
      - loop: $rounds
      - execute: {graph_name: compute, queue_settings: {
          a: {rd_ptr_local: $read, rd_ptr_global: $read},
          b: {prologue: true, rd_ptr_global: 0, wr_ptr_global: 0}}}
      - varinst: [$read, incwrap, 1, 4]           # the entry is used: pointers run modulo twice the entries
      - endloop
"""


@pytest.fixture
def netlist():
    """NETLIST, loaded: no rule has anything against it."""
    result = check_text(NETLIST, strict=True)
    assert result.diagnostics == ()
    return result.netlist


def test_a_run(netlist):
    stream = np.random.default_rng(0)
    a, b = stream.random((2, 1, 32, 32), np.float32), stream.random((1, 1, 32, 32), np.float32)
    with be.Emulator(netlist, precision="ideal", threads=1) as emulator:
        emulator.push("a", a)
        emulator.push("b", b)
        emulator.run("run", {"$rounds": 2})
        out = emulator.pop("out", count=2)
    np.testing.assert_allclose(out, np.sqrt(a.astype(np.float64) @ b), rtol=1e-6)


def test_a_push_rounds_to_the_format_of_the_queue(netlist):
    with be.Emulator(netlist, threads=1) as emulator:
        emulator.push("a", np.full((1, 1, 32, 32), 1 + 2**-9 + 2**-20, np.float32))
        assert np.unique(emulator.peek("a")) == [1.0]  # 7 bits of fraction


def test_a_queue_holds_its_entries_and_no_more(netlist):
    tile = np.ones((1, 1, 32, 32), np.float32)
    with be.Emulator(netlist, threads=1) as emulator:
        emulator.push("a", tile)
        emulator.push("a", tile)
        with pytest.raises(be.HostError, match="it is full"):
            emulator.push("a", tile)


def test_a_program_that_fails_says_where(netlist):
    with be.Emulator(netlist, threads=1) as emulator:
        emulator.push("b", np.ones((1, 1, 32, 32), np.float32))
        with pytest.raises(be.ProgramError, match=r"program run, instruction 3 \(execute, line \d+\).*queue a"):
            emulator.run("run", {"$rounds": 1})


def test_a_netlist_that_is_wrong_says_where():
    spoilt = NETLIST.replace("type: sqrt", "type: sqrrt")
    (finding,) = check_text(spoilt).diagnostics
    line = spoilt.splitlines()[finding.line - 1]
    assert line[finding.column - 1 :].startswith("sqrrt")
    assert "sqrt" in finding.hint


BITS = f"""
import hashlib, numpy as np, buda_emu as be
from buda_emu.netlist.load import check_text
netlist = check_text({NETLIST!r}).netlist
data = np.sin(np.arange(2 * 1024, dtype=np.float64) ** 2).astype(np.float32).reshape(2, 1, 32, 32)
for precision in ("format", "ideal"):
    with be.Emulator(netlist, precision=precision, threads=1) as emulator:
        emulator.push("a", np.abs(data))
        emulator.push("b", np.abs(data[:1]) + np.float32(0.25))
        emulator.run("run", {{"$rounds": 2}})
        print(hashlib.sha256(emulator.pop("out", 2, "raw").tobytes()).hexdigest())
"""


def test_compiled_and_plain_kernels_have_the_same_bits(child_environment):
    shown = []
    for disabled in ("0", "1"):
        environment = {**child_environment, "NUMBA_DISABLE_JIT": disabled}
        command = [sys.executable, "-W", "error", "-c", BITS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert shown[0] == shown[1]
    assert len(set(shown[0].split())) == 2  # the precisions differ
