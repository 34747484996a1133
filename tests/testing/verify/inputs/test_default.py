"""Inputs that nobody gave: which queues, how many entries, what data."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.load import check_text, load
from buda_emu.netlist.test_config import read_test_config
from buda_emu.support.errors import HostError, NetlistError

QUEUE = "grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [2, 2], target_device: 0, loc: dram"
NETLIST = (
    """
devices: {arch: wormhole_b0}
queues:
  a: {input: HOST, type: queue, entries: 1, df: DF, QUEUE, dram: [[0, 0x10000000]]}
  out: {input: op, type: queue, entries: 1, df: DF, QUEUE, dram: [[1, 0x10000000]]}
graphs:
  g:
    target_device: 0
    input_count: 1
    op: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [a], t: 1, mblock: [1, 1], ublock: [2, 2],
      ublock_order: r, buf_size_mb: 2, in_df: [DF], out_df: DF, intermed_df: DF, acc_df: ACC, math_fidelity: HiFi4}
programs:
  - run: [execute: {graph_name: g, queue_settings: {a: {rd_ptr_local: 0, rd_ptr_global: 0}}}]
test-config:
  stimulus-config: {STIMULUS}
"""
).replace("QUEUE", QUEUE)


def netlist_of(df="Float16_b", stimulus="", acc="Float16_b", name="a", block="[1, 1]"):
    """A copy of one queue, named `name`."""
    text = NETLIST.replace("DF", df).replace("STIMULUS", stimulus).replace("ACC", acc)
    text = text.replace(" a:", f" {name}:").replace("{a:", f"{{{name}:").replace("[a]", f"[{name}]")
    result = check_text(text.replace("mblock: [1, 1]", f"mblock: {block}"))
    assert result.netlist is not None, result.diagnostics
    return result.netlist


def blocks_of(netlist, seed=0):
    programs = list(netlist.programs.values())
    config = read_test_config(netlist.path, netlist.sections)
    return list(default_inputs(netlist, config, programs, default_parameters(programs, config.args), seed))


def one(df, stimulus, acc="Float16_b"):
    (block,) = blocks_of(netlist_of(df, stimulus, acc))
    return block.array


def test_every_queue_of_an_example_gets_its_data(root):
    shapes = {}
    for block in blocks_of(load(root / "netlists/attention.yaml")):
        shapes[block.queue] = (block.array.shape, block.array.dtype, block.slot)
    assert shapes["x"] == ((4, 1, 64, 128), np.float32, None)
    assert shapes["wq"] == ((1, 1, 128, 128), np.float32, 0)
    assert shapes["mask"] == ((1, 1, 64, 64), np.float32, None)
    assert "e2e_v" not in shapes


def test_rams_that_ops_feed_are_initialised_in_a_training_netlist(root):
    blocks = {block.queue: block for block in blocks_of(load(root / "netlists/training.yaml"))}
    assert np.abs(blocks["w1"].array).max() > 0
    assert not blocks["grad_w1"].array.any()
    assert "e2e_h" not in blocks


def test_the_seed_and_the_name_decide(root):
    netlist = load(root / "netlists/attention.yaml")
    first, again, other = ({block.queue: block.array for block in blocks_of(netlist, seed)} for seed in (3, 3, 4))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["x"], other["x"])
    assert not np.array_equal(first["wq"], first["wk"])


def test_raw_words_and_integers():
    raw = one("RawUInt32", "type: Uniform, uniform_lower_bound: 0, uniform_upper_bound: 9")
    assert raw.dtype == np.uint32
    assert raw.max() == 9
    small = one("Int8", "type: Uniform, uniform_lower_bound: -9, uniform_upper_bound: 9", "Int32")
    assert small.dtype == np.float32
    assert set(np.unique(small)) == set(range(-9, 10))


def test_a_stimulus_that_cannot_be_made_is_refused_by_name():
    with pytest.raises(NetlistError, match="unknown type 'bananas'"):
        one("Float16_b", "overrides: {a: {type: Bananas}}")


def test_too_much_data_is_refused_before_it_is_made():
    netlist = netlist_of(block="[1000, 1000]")
    with pytest.raises(HostError, match=r"queue a alone takes 15\.3 GiB for 1 entry"):
        blocks_of(netlist)


@pytest.mark.parametrize(
    ("name", "value"),
    [("layernorm_eps", np.float32(2**-23)), ("lc.mean.0", np.float32(1 / 128)), ("my_sum_1", np.float32(1))],
)
def test_names_that_the_harness_knows(name, value):
    (block,) = blocks_of(netlist_of("Float32", acc="Float32", name=name))
    assert np.unique(block.array) == [value]


EMBEDDING = """
devices: {arch: wormhole_b0}
queues:
  table: {input: HOST, type: queue, entries: 1, df: Float16_b, layout: flat, grid_size: [1, 1], t: 1, mblock: [4, 1],
    ublock: [1, 2], target_device: 0, loc: dram, dram: [[0, 0x10000000]]}
  indices: {input: HOST, type: queue, entries: 1, df: RawUInt32, grid_size: [1, 1], t: 1, mblock: [1, 1],
    ublock: [1, 1], target_device: 0, loc: dram, dram: [[1, 0x10000000]]}
  out: {input: rows, type: queue, entries: 1, df: Float16_b, grid_size: [1, 1], t: 1, mblock: [1, 1],
    ublock: [1, 2], target_device: 0, loc: dram, dram: [[2, 0x10000000]]}
graphs:
  g:
    target_device: 0
    input_count: 1
    rows: {type: embedding, grid_loc: [0, 0], grid_size: [1, 1], inputs: [table, indices], t: 1, mblock: [1, 1],
      ublock: [1, 2], ublock_order: r, buf_size_mb: 2, in_df: [Float16_b, RawUInt32], out_df: Float16_b,
      intermed_df: Float16_b, acc_df: Float16_b, math_fidelity: HiFi4, attributes: {num_indices: 32}}
programs:
  - run: [execute: {graph_name: g, queue_settings: {
      table: {rd_ptr_local: 0, rd_ptr_global: 0}, indices: {rd_ptr_local: 0, rd_ptr_global: 0}}}]
"""


def test_embedding_indices_are_rows_of_the_table():
    result = check_text(EMBEDDING)
    assert result.netlist is not None, result.diagnostics
    indices = next(block.array for block in blocks_of(result.netlist) if block.queue == "indices")
    assert indices.dtype == np.uint32
    assert 100 < indices.max() < 128
    with be.Emulator(result.netlist, threads=1) as emulator:
        for block in blocks_of(result.netlist):
            emulator.push(block.queue, block.array)
            if block.queue == "table":
                table = emulator.peek("table")
        emulator.run("run")
        rows = emulator.pop("out")
    assert np.array_equal(rows[0, 0], table[0, 0][indices.reshape(-1)[:32]])


@pytest.mark.parametrize("df", ["Float16_b", "Int32", "RawUInt32"])
@pytest.mark.parametrize(
    "stimulus",
    ["Uniform, uniform_lower_bound: -3e38, uniform_upper_bound: 3e38", "Normal, normal_mean: 3e38, normal_stddev: 3e38",
     "DebugTileId, debug_tile_id_base: 3e38, debug_tile_id_step: 3e38", "Step, step_start: 3e38, step_increment: 3e38",
     "StepRowwise, step_start: 3e38, step_increment: -3e38", "Step, step_start: 1", "Constant, constant_value: .inf"],
)  # fmt: skip
def test_what_single_precision_cannot_hold_is_infinite(df, stimulus):
    """Warnings are errors: numpy has none."""
    made = one(df, f"{{type: {stimulus}}}", "Int32" if df == "Int32" else "Float16_b")
    assert made.size
