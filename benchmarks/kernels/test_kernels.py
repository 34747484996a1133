"""Kernels one by one, against a numpy copy of the bytes that they move, on one thread.

    pip install -e '.[bench]'
    pytest benchmarks/kernels/test_kernels.py --benchmark-columns=min,median,rounds --benchmark-sort=min

`extra_info` (in `--benchmark-json`) has `bytes`, what a call reads and writes; `test_copy` is the yardstick. The dense
product has a benchmark of its own beside sgemm, `bench_matmul.py`; the units of precision "device" have
`bench_tensix.py` and `bench_sfpu_pack.py`.
"""

import numpy as np
import pytest

from buda_emu.arithmetic.kernels.functions.transcendental import FUNCTIONS
from buda_emu.arithmetic.kernels.tiles import binary, tile_memory
from buda_emu.arithmetic.kernels.tiles.quantise import quantisers
from buda_emu.arithmetic.kernels.tiles.reduce import Z, reduce_tiles
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    NO_RELU,
    RELU_FROM,
    accumulate_tiles,
    embedding_tiles,
    place_tiles,
    relu_tiles,
)
from buda_emu.spec.formats import FORMATS

TILES = 1024  # 4 MiB
BYTES = 4 * 1024 * TILES
FORMATS_TRIED = [name for name in FORMATS if name not in ("Float32", "RawUInt32")]


def quantise_tiles(start, stop, tiles, name, truncate):
    for run, arguments in quantisers(name, truncate):
        run(start, stop, tiles, *arguments)


@pytest.fixture
def tiles():
    return np.random.default_rng(0).standard_normal((1, TILES, 1024)).astype(np.float32)


def plain(source, arrange=tile_memory.AS_IS):
    index = np.arange(source.shape[1], dtype=np.int32)
    index.flags.writeable = False
    return source, index, np.float32(0), arrange


def measure(benchmark, moved, call, *args):
    """Time `call`; the first one, which compiles, is left out."""
    call(*args)
    benchmark.extra_info["bytes"] = moved
    benchmark(call, *args)


def test_copy(benchmark, tiles):
    measure(benchmark, 2 * BYTES, np.copyto, np.empty_like(tiles), tiles)


@pytest.mark.parametrize("arrange", ["AS_IS", "TRANSPOSE", "FIRST_ROW", "FIRST_COLUMN"])
def test_gather(benchmark, tiles, arrange):
    out = np.empty_like(tiles)
    _, index, pad, code = plain(tiles, getattr(tile_memory, arrange))
    measure(benchmark, 2 * BYTES, tile_memory.gather_tiles, 0, TILES, out, tiles, index, pad, code, (32, 32))


@pytest.mark.parametrize("name", FORMATS_TRIED)
def test_quantise(benchmark, tiles, name):
    measure(benchmark, 2 * BYTES, quantise_tiles, 0, TILES, tiles[0], name, False)


@pytest.mark.parametrize("name", ["ADD", "SUBTRACT", "MULTIPLY", "MAXIMUM"])
def test_binary(benchmark, tiles, name):
    out = np.empty_like(tiles)
    other = tiles.copy()
    code = getattr(binary, name)
    measure(
        benchmark,
        3 * BYTES,
        binary.binary_tiles,
        0,
        TILES,
        out,
        plain(tiles),
        plain(other),
        (code, np.float32(0)),
        (32, 32),
        (NO_RELU, np.float32(0)),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(benchmark, tiles, name):
    """In place, on fresh values each time: the copy is part of the time."""
    run, _ = FUNCTIONS[name]
    source = np.abs(tiles) if name == "log" else tiles
    work = np.empty_like(tiles)

    def once():
        work[...] = source
        run(0, TILES, work, (1, 1024))

    measure(benchmark, 4 * BYTES, once)


def test_relu(benchmark, tiles):
    measure(benchmark, 2 * BYTES, relu_tiles, 0, TILES, tiles, RELU_FROM, np.float32(0))


def test_accumulate(benchmark, tiles):
    measure(benchmark, 3 * BYTES, accumulate_tiles, 0, TILES, tiles, np.zeros_like(tiles))


def test_reduce_z(benchmark, tiles):
    out = np.empty((1, TILES // 8, 1024), np.float32)
    bases = np.arange(TILES // 8, dtype=np.int64)
    measure(benchmark, BYTES, reduce_tiles, 0, TILES // 8, out, plain(tiles), bases, TILES // 8, 8, Z)


def test_splice(benchmark, tiles):
    out = np.empty_like(tiles)
    places = np.arange(TILES, dtype=np.int32)
    measure(benchmark, 2 * BYTES, place_tiles, 0, TILES, out, plain(tiles), places, places[::-1].copy())


def test_embedding(benchmark, tiles):
    out = np.empty_like(tiles)
    picked = np.random.default_rng(1).integers(0, TILES, (1, 32 * 32)).astype(np.int64)
    measure(benchmark, 2 * BYTES, embedding_tiles, 0, TILES, out, tiles, picked, 32)
