"""Reads from DRAM: which buffer serves them, and in how many phases. pipegen2 says the same, where it is there."""

from pathlib import Path
from typing import Any

import pytest

from buda_emu.performance.routing.streams.dram_reads import whole_chunk
from buda_emu.performance.routing.streams.model import Routed
from buda_emu.performance.routing.streams.route import route
from core_streams import ours
from pipe_mutations import as_text
from small_pipes import TILE, Pipes
from vendor_router import AVAILABLE, lowest_addresses, our_lowest_addresses, streams

Made = list[tuple[str, int, int | None]]  # kind, tiles of the buffer, phases


def _routed(pipes: Pipes, scratch: Path) -> Routed:
    done = route(pipes.graph, "grayskull", phases=True)
    if AVAILABLE:
        path = scratch / "pipegen.yaml"
        path.write_text(as_text(pipes.graph))
        expected, said = streams(path, "grayskull")
        assert expected == ours(done.cores, "grayskull"), said
        assert lowest_addresses(path, "grayskull") == our_lowest_addresses(done.cores, "grayskull")
    return done


def _made(routed: Routed) -> Made:
    return [
        (stream.kind, stream.buffer_bytes // TILE, stream.phases) for core in routed.cores for stream in core.streams
    ]


@pytest.mark.parametrize(
    ("entry", "operand", "clears", "given", "expected"),
    [
        (4, 8, 4, 0, [("unpacker", 16, 16)]),  # chunks of 4 and 8 make 8; twice that, for reads to overlap
        (4, 8, 4, 20, [("unpacker", 16, 16)]),  # as many times 8 as 20 tiles hold
        (4, 8, 4, 64, [("unpacker", 64, 16)]),
        (16, 32, 16, 0, [("unpacker", 32, 16)]),  # enough for reads as it is
        (16, 32, 16, 40, [("unpacker", 32, 16)]),
        (6, 8, 4, 0, [("unpacker", 24, 16)]),  # chunks of 6, an operand of 8
        (6, 8, 4, 30, [("unpacker", 24, 16)]),
        (1, 2, 1, 0, [("unpacker", 16, 16)]),
        (1, 2, 1, 9, [("unpacker", 8, 16)]),
        (48, 24, 24, 0, [("unpacker", 48, 16)]),
        (30, 60, 30, 0, [("unpacker", 60, 16)]),
        (100, 10, 10, 0, [("unpacker", 10, 1), ("relay", 100, 16)]),  # 100 tiles are too many for the operand's own
        (7, 14, 7, 25, [("unpacker", 14, 16)]),
        (13, 26, 13, 0, [("unpacker", 26, 16)]),
    ],
)
def test_buffers_of_reads(entry: int, operand: int, clears: int, given: int, expected: Made, tmp_path: Path) -> None:
    pipes = Pipes()
    flow: dict[str, Any] = {"epoch_tiles": 16 * entry, "tiles_per_input": entry}
    queue = pipes.queue(size_tiles=entry, scatter_gather_num_tiles=entry, **flow)
    reader = pipes.unpacker(0, 0, size_tiles=operand, tile_clear_granularity=clears, **flow)
    pipes.pipe([queue], [reader], (0, 0), op_input_dram_io_buf_size_tiles=given)
    assert _made(_routed(pipes, tmp_path)) == expected


@pytest.mark.parametrize(
    ("parts", "chunk", "operand", "given", "expected"),
    [
        (1025, 4, 10, 64, [("unpacker", 60, 615)]),
        (700, 6, 10, 64, [("unpacker", 60, 672)]),
        (1025, 6, 10, 25, [("unpacker", 10, 400), ("relay", 6, 400)]),
    ],
)
def test_more_tiles_an_input_than_a_phase_has(
    parts: int, chunk: int, operand: int, given: int, expected: Made, tmp_path: Path
) -> None:
    pipes = Pipes()
    tiles = parts * chunk
    flow: dict[str, Any] = {"epoch_tiles": 16 * tiles, "tiles_per_input": tiles}
    queue = pipes.queue(size_tiles=tiles, scatter_gather_num_tiles=chunk, replicate=parts, **flow)
    reader = pipes.unpacker(0, 0, size_tiles=operand, tile_clear_granularity=operand // 2, **flow)
    inputs = [queue + index * chunk for index in range(parts)]
    pipes.pipe(inputs, [reader], (0, 0), op_input_dram_io_buf_size_tiles=given)
    assert _made(_routed(pipes, tmp_path)) == expected


def test_a_relay_between_dram_and_operand(tmp_path: Path) -> None:
    pipes = Pipes()
    relay = pipes.relay(1, 1)
    pipes.pipe([pipes.queue()], [relay], (1, 1))
    pipes.pipe([relay], [pipes.unpacker(2, 2)], (2, 2))
    assert _made(_routed(pipes, tmp_path)) == [("relay", 16, 16), ("unpacker", 8, 1)]


def test_a_queue_that_two_pipes_read_is_read_in_chunks_that_suit_both(tmp_path: Path) -> None:
    pipes = Pipes()
    queue = pipes.queue(size_tiles=12, scatter_gather_num_tiles=12, tiles_per_input=12, epoch_tiles=192)
    for column, size in enumerate((12, 9)):
        reader: dict[str, Any] = {"size_tiles": size, "tile_clear_granularity": size // 3, "epoch_tiles": 192}
        pipes.pipe([queue], [pipes.unpacker(0, column, **reader)], (0, column))
    assert _made(_routed(pipes, tmp_path)) == [("unpacker", 24, 16), ("unpacker", 36, 16)]


def _flat_table(pipes: Pipes, **fields: object) -> int:
    rows = {"size_tiles": 64, "scatter_gather_num_tiles": 1, "tiles_per_input": 64, "epoch_tiles": 512, "tile_size": 64}
    dims = {"untilized_output_c_dim": 2, "untilized_output_tile_dim_r": 32, "untilized_output_tile_dim_c": 32}
    return pipes.queue("table", **{**rows, **dims, **fields})


def test_an_embedding_reads_rows_by_what_its_indices_say(tmp_path: Path) -> None:
    pipes = Pipes()
    indices = {"embedding_index": True, "embedding_indices_per_input": 32, "embedding_indices_per_tile": 32}
    one = {"size_tiles": 1, "scatter_gather_num_tiles": 1, "tiles_per_input": 1, "epoch_tiles": 8, "tile_size": 1088}
    table = pipes.unpacker(0, 0, op="lookup", size_tiles=128, tile_clear_granularity=64, tile_size=64, epoch_tiles=512)
    index = pipes.unpacker(0, 0, 1, op="lookup", **{**one, "tile_clear_granularity": 1})
    pipes.pipe([pipes.queue("indices", **{**one, **indices})], [index], (0, 0))
    flat = {"embedding_table": True, "embedding_table_core_c_div": 1, "embedding_table_row_size_per_core": 2}
    pipes.pipe([_flat_table(pipes, **flat)], [table], (0, 0))
    done = _routed(pipes, tmp_path)
    assert [(stream.kind, stream.operand, stream.reads_queues) for stream in done.cores[0].streams] == [
        ("unpacker", 0, 1),
        ("unpacker", 1, 1),
    ]


@pytest.mark.parametrize("rows", [32, 0])
def test_a_tilizer_reads_whole_rows(rows: int, tmp_path: Path) -> None:
    """Of 32 rows where tiles do not say how high they are."""
    pipes = Pipes()
    table = pipes.unpacker(0, 0, op="tilize", size_tiles=128, tile_clear_granularity=64, tile_size=64, epoch_tiles=512)
    flat = {"hw_tilize": True, "tilize_mblock_n_loop_num_rows": 32, "untilized_output_tile_dim_r": rows}
    pipes.pipe([_flat_table(pipes, **flat)], [table], (0, 0))
    (stream,) = _routed(pipes, tmp_path).cores[0].streams
    assert (stream.kind, stream.reads_queues, stream.phases) == ("unpacker", 1, 512)


@pytest.mark.parametrize(
    ("chunk", "least", "tile", "tiles", "size", "expected"),
    [
        (8, 1, 100, 10, 1000, 8),
        (12, 1, 100, 10, 1000, 6),  # half of it fits
        (12, 4, 100, 10, 1000, 4),  # a third is the largest part of whole fours
        (12, 12, 100, 10, 1000, 12),  # none fits: as little as it has to be
        (30, 5, 100, 30, 1000, 10),
        (30, 5, 100, 7, 10_000, 5),
    ],
)
def test_chunks(chunk: int, least: int, tile: int, tiles: int, size: int, expected: int) -> None:
    assert whole_chunk(chunk, least, tile, tiles, size) == expected
