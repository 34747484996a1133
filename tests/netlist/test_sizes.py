"""NETLIST 1.9."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.sizes import align_up, buffer_bytes, entry_bytes, has_tile_headers
from netlist.netlist_texts import NETLIST, edited


def size(text: str, queue: str = "src", arch: str | None = None) -> int:
    netlist = check_text(text, arch=arch).netlist
    assert netlist is not None, check_text(text, arch=arch).diagnostics
    return buffer_bytes(netlist.queues[queue], netlist)


def test_a_buffer_holds_its_entries_behind_a_header() -> None:
    assert size(NETLIST) == 2 * 4 * 2080 + 32
    assert size(NETLIST, arch="blackhole") == 2 * 4 * 2112 + 64


@pytest.mark.parametrize(("df", "tile"), [("Float32", 4128), ("Bfp8_b", 1120), ("Bfp4_b", 608), ("Bfp2_b", 352)])
def test_sizes_follow_the_format(df: str, tile: int) -> None:
    assert (
        size(NETLIST.replace("Float16_b", df).replace(f"intermed_df: {df}", "intermed_df: Float16_b"))
        == 2 * 4 * tile + 32
    )


def test_flat_and_untilized_data_has_no_tile_headers() -> None:
    assert size(edited("entries: 2", "layout: flat, entries: 2")) == 2 * 4 * 2048 + 32
    assert size(edited("type: nop", "type: nop, untilize_output: true"), "dst") == 2 * 4 * 2048 + 32
    assert size(NETLIST, "dst") == 2 * 4 * 2080 + 32


def test_sizes_of_a_queue_that_is_not_valid_are_nothing() -> None:
    netlist = check_text(NETLIST).netlist
    assert netlist is not None
    from dataclasses import replace

    queue = netlist.queues["src"]
    assert entry_bytes(replace(queue, df=""), netlist.arch, True) == 0
    assert entry_bytes(replace(queue, blocking=replace(queue.blocking, t=-1)), netlist.arch, True) == 0
    assert has_tile_headers(replace(queue, input="nope"), {})


def test_align_up() -> None:
    assert [align_up(size, 32) for size in (0, 1, 32, 33)] == [0, 32, 32, 64]
