"""Pipe graphs of real netlists are those that the vendor's net2pipe makes, in every field of every buffer and pipe."""

import pytest

from buda_emu.netlist.load import load
from buda_emu.performance.routing.pipes.build import build
from buda_emu.performance.routing.pipes.epoch import epochs
from performance.routing.canonical import differences
from pipe_reading import read
from router_vectors import RecordedFile, needs_router_vectors, recorded_files

# One of each kind of op and TM, all small.
_SMALL = (
    "netlist_unary_gradient.yaml",
    "matmul_w_bias.yaml",
    "netlist_nop_with_tiny_tile_size_2x32.yaml",
    "softmax_1x1x40x40_dim_min1_netlist.yaml",
    "netlist_fused_op_with_kernel_bcast_per_t.yaml",
    "netlist_depthwise_op_bias_t_bcast.yaml",
    "netlist_9a8244da581b4f055cef5dffb3d39e20.yaml",
    "netlist_concat_op.yaml",
    "netlist_dram_tm.yaml",
    "netlist_programs1_loops1_multiple_epochs_multicore_0.yaml",
    "netlist_416d47e718aa9482b1ae33897449d4cb.yaml",
    "netlist_0f9b5143b05b599eb7c9467040b7dc77.yaml",
    "single_tile/netlist_matmul_ident.yaml",
    "fused_op_producer_reuse_multi_tile_maps.yaml",
    "netlist_dual_view_ram.yaml",
    "netlist_test_padding_1.yaml",
    "netlist_tilizer_1x1_slow_push.yaml",
    "netlist_reduce_c_dim_tile_dim_32x16_untilize.yaml",
    "multichip/mmio/netlist_200.yaml",
    "tilize_fp16_untilize_fp16b_output_queue_device_id_0.yaml",
    "netlist_wh_multichip_dram_fork_1_to_00.yaml",
    "netlist_wh_multichip_weights_chip_01_op_chip_0.yaml",
    "eth_datacopy/netlist_single_channel_eth_datacopy.yaml",
    "eth_datacopy/netlist_single_channel_stacked_eth_datacopy_8x_3way_fork_32_streams_smaller_blocks.yaml",
    "eth_datacopy/slice_to_tstream_hang.yaml",
)


def _hold(case: RecordedFile) -> None:
    expected = case.pipes()
    built = list(map(build, epochs(load(case.path, case.arch, cache=False))))
    if not expected:
        assert any(one.refusals for one in built)
        return
    assert len(built) == len(expected)
    for ours, theirs in zip(built, expected, strict=True):
        assert ours.graph is not None, ours.refusals
        assert differences(ours.graph, read(theirs, str(case.path))) == []


@needs_router_vectors
@pytest.mark.parametrize("name", _SMALL)
def test_small_netlists(name: str) -> None:
    _hold(next(case for case in recorded_files() if str(case.path).endswith("/" + name)))


@pytest.mark.slow
@needs_router_vectors
@pytest.mark.parametrize("case", recorded_files(), ids=lambda case: f"{case.path.stem[-60:]}-{case.arch}")
def test_the_corpus(case: RecordedFile) -> None:
    _hold(case)
