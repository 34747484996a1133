"""Sparse encodings on the emulator: its own identity matmul finds exactly the sparsity that was asked for.

Activations of ones and sparse tiles with a single 1 in each row make every element of an output tile the number of
tile products that were added to it.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.netlist.load import check_text
from buda_emu.netlist.test_config import read_test_config

NETLIST = """
devices: {{arch: wormhole_b0}}
queues:
  tiles:  {{input: HOST, type: ram, entries: 1, grid_size: [1, 1], t: 1, mblock: [{rows}, 1], ublock: [1, 5],
            df: Float16_b, target_device: 0, loc: dram, dram: [[0, 0x10000000]]}}
  ones:   {{input: HOST, type: ram, entries: 1, grid_size: [1, 1], t: {act_t}, mblock: [{m_k}, 1], ublock: [{u_kt}, 1],
            df: Float16_b, target_device: 0, loc: dram, dram: [[1, 0x10000000]]}}
  stream: {{input: HOST, type: ram, entries: 1, grid_size: [1, 1], t: 1, mblock: [{rows}, 1], ublock: [1, 4],
            df: RawUInt32, target_device: 0, loc: dram, dram: [[2, 0x10000000]]}}
  out:    {{input: product, type: queue, entries: 1, grid_size: [{rows}, 1], t: {t}, mblock: [{mblock}, 1],
            ublock: [{ublock}, 1], df: Float32, target_device: 0, loc: dram, dram: [{buffers}]}}
graphs:
  g:
    target_device: 0
    input_count: 1
    product: {{type: matmul, grid_loc: [0, 0], grid_size: [{rows}, 1], inputs: [tiles, ones, stream], t: {t},
      mblock: [{mblock}, 1], ublock: [{ublock}, 1], ublock_order: r, buf_size_mb: 2,
      in_df: [Float16_b, Float16_b, RawUInt32], out_df: Float32, intermed_df: Float32, acc_df: Float32,
      math_fidelity: HiFi4, attributes: {{identity: true, m_k: {m_k}, u_kt: {u_kt}, act_t: {act_t},
      num_sparse_tiles: 5, num_index_tiles: 4, sparse_tile_ptr_bits: 4, sparse_ublock_idx_bits: 4}}}}
programs:
  - p:
    - var: {{$zero: 0}}
    - execute: {{graph_name: g, queue_settings: {{
        tiles: {{prologue: true, epilogue: false, zero: false, rd_ptr_global: $zero, wr_ptr_global: $zero}},
        ones: {{prologue: false, epilogue: false, zero: false, rd_ptr_global: $zero, wr_ptr_global: $zero}},
        stream: {{prologue: true, epilogue: false, zero: false, rd_ptr_global: $zero, wr_ptr_global: $zero}}}}}}
test-config:
  stimulus-config:
    type: Constant
    constant_value: 1
    overrides:
      tiles: {{type: Sparse, matmul_ident_name: product}}
      stream: {{{stimulus}, matmul_ident_name: product}}
"""


def products(stimulus, *, rows=2, t=1, m_k=4, u_kt=2, mblock=3, ublock=2, seed=0, per_t=False):
    """How many products each output tile is the sum of: [grid row, t, tile row]."""
    buffers = ", ".join(f"[{3 + row}, 0x10000000]" for row in range(rows))
    text = NETLIST.format(
        stimulus=stimulus,
        rows=rows,
        t=t,
        m_k=m_k,
        u_kt=u_kt,
        mblock=mblock,
        ublock=ublock,
        buffers=buffers,
        act_t=t if per_t else 1,
    )
    checked = check_text(text)
    assert checked.netlist is not None, checked.diagnostics
    netlist = checked.netlist
    config = read_test_config(netlist.path, netlist.sections)
    with be.Emulator(netlist, precision="ideal", threads=1) as emulator:
        for block in default_inputs(netlist, config, list(netlist.programs.values()), {}, seed):
            emulator.push(block.queue, block.array, block.slot)
        emulator.run("p")
        out = emulator.pop("out")[0]
    tiles = out.reshape(t, rows, mblock * ublock, 32, 32)
    assert (tiles == tiles[..., :1, :1]).all()
    return tiles[..., 0, 0].transpose(1, 0, 2)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_counts_are_found_again(data):
    t, m_k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    mblock, ublock, u_kt = (data.draw(st.integers(1, 3)) for _ in range(3))
    strips = data.draw(st.integers(t, m_k + t - 1))
    ublocks = data.draw(st.integers(strips, strips * mblock))
    tiles = data.draw(st.integers(ublocks, ublocks * ublock * u_kt))
    found = products(
        f"type: sparse_encoding_nz_counts, nz_strips: {strips}, nz_ublocks: {ublocks}, nz_tiles: {tiles}",
        t=t,
        m_k=m_k,
        mblock=mblock,
        ublock=ublock,
        u_kt=u_kt,
    )
    assert found.sum(axis=(1, 2)).tolist() == [tiles, tiles]  # in each of two grid rows


def test_nothing_dropped_is_everything_there():
    # each of 4 strips adds u_kt products to each of the 3*2 tile rows
    assert (products("type: sparse_encoding") == 4 * 2).all()
    # of two t's with activations of their own, t 0 takes strips 0 and 1, t 1 begins with the last of t 0
    found = products("type: sparse_encoding", t=2, per_t=True)
    assert found.tolist() == [[[4] * 6, [6] * 6]] * 2


def test_all_that_may_be_dropped():
    assert (products("type: sparse_encoding, zero_strip_freq: 1") == 0).all()
    found = products("type: sparse_encoding, zero_ublock_freq: 1, zero_tile_freq: 1")
    assert found.sum(axis=(1, 2)).tolist() == [4, 4]  # one tile in one ublock of each strip is kept
    found = products("type: sparse_encoding, zero_ublock_freq: 0, zero_tile_freq: 1")
    assert found.sum(axis=(1, 2)).tolist() == [12, 12]  # one of four tiles in each of three ublocks


@pytest.mark.parametrize(("frequency", "low", "high"), [(0.25, 0.6, 0.9), (0.75, 0.25, 0.5)])
def test_tiles_are_dropped_by_their_frequency(frequency, low, high):
    kept = np.mean(
        [
            products(f"type: sparse_encoding, zero_tile_freq: {frequency}", seed=seed, u_kt=4, ublock=3).sum()
            for seed in range(8)
        ]
    ) / (2 * 4 * 3 * 12)
    assert low < kept < high  # the share that is not dropped, and one tile of each ublock that never is
