"""device.json with as little as there may be in it: what stands for the rest."""

import pytest

from buda_emu.emulator.image.metadata import VERSION, read_metadata
from buda_emu.emulator.image.rules import ImageError, Place

LEAST = {"version": VERSION, "arch": "wormhole_b0", "compiled_graph_state": {"netlist_filename": "net.yaml"}}


def test_defaults_and_what_is_missing():
    data = read_metadata(LEAST, Place("image.tti", "device.json"))
    assert (data.version, data.compiled_graph_state.netlist_filename) == (VERSION, "net.yaml")
    assert data.training is False
    assert (data.microbatch_size, data.microbatch_count, data.chip_ids, data.grid_size) == (1, 1, (), ())
    assert (data.optimizer, data.loss_module, data.compiler_cfg) == (None, None, None)
    assert dict(data.module_name_to_metadata) == {}
    state = data.compiled_graph_state
    assert state.microbatch == 1
    assert state.has_cache_buffers is False
    assert dict(state.output_host_tms) == {}
    assert dict(state.post_const_eval_constants) == {}
    names = ("microbatch", "output_host_tms", "post_const_eval_parameters")
    of_state = {f"compiled_graph_state.{name}" for name in names}
    assert {"training", "module_name_to_metadata", *of_state} <= set(data.missing)
    assert {"version", "arch", "compiled_graph_state.netlist_filename"}.isdisjoint(data.missing)


def test_what_a_host_tm_leaves_out():
    state = {"netlist_filename": "net.yaml", "output_host_tms": {"o": {}}}
    data = read_metadata({**LEAST, "compiled_graph_state": state}, Place("image.tti", "device.json"))
    tm = data.compiled_graph_state.output_host_tms["o"]
    assert (tm.hstack_factor, tm.vstack_factor, tm.row_major) == (1, 1, True)


@pytest.mark.parametrize("field", ["version", "arch", "compiled_graph_state"])
def test_what_may_not_be_missing(field):
    with pytest.raises(ImageError, match=r"version is|is missing"):
        read_metadata({name: value for name, value in LEAST.items() if name != field}, Place("i", "device.json"))
