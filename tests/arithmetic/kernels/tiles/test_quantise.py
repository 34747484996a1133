"""The quantising kernels give the bits of the numpy definition, for every format, compiled or not."""

import os
import subprocess
import sys

import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.kernels.tiles.quantise import quantisers
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import UnsupportedError

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
CASES = pytest.mark.parametrize("name", FORMATS)
MODES = pytest.mark.parametrize("rounding", ["nearest", "truncate"])


def quantise_tiles(start, stop, tiles, name, truncate):
    for run, arguments in quantisers(name, truncate):
        run(start, stop, tiles, *arguments)


def patterns(kind: str, count: int) -> np.ndarray:
    """uint32[count, 1024] words that are hard in one way."""
    random = np.random.default_rng(len(kind) * 1000 + count)
    words = random.integers(0, 1 << 32, (count, 1024), dtype=np.uint32)
    if kind == "close":  # one group, similar exponents
        return words & np.uint32(0x81FFFFFF) | np.uint32(0x3E000000)
    if kind == "five-bit ends":  # around 2^-15 and 2^17, where the small family begins and ends
        ends = np.where(words & 1, np.uint32(0x38000000), np.uint32(0x47800000))
        return ends + (words & np.uint32(0x81FFFFFF)) - np.uint32(0x01000000)
    if kind == "denormals":
        return words & np.uint32(0x80FFFFFF)
    if kind == "specials":
        chosen = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000]
        chosen += [0x7F800001, 0xFFA00001, 0x7FC00000, 0xFFFFFFFF, 0x7FC0BEEF, 0x3F800000, 0xBF000000]
        return np.array(chosen, np.uint32)[words % len(chosen)]
    if kind == "numbers":  # integers, halves and what lies just beside them, up to and beyond 2^63
        halves = (words.view(np.int32) >> (words % 32).astype(np.int32)).astype(np.float32) / np.float32(2)
        large = np.float32(2) ** (words >> np.uint32(26)).astype(np.float32) * np.float32(1.25)
        values = np.where(words % 5 == 0, large, halves).astype(np.float32)
        return values.view(np.uint32) + words % np.uint32(3) - np.uint32(1)
    if kind == "ties":  # words whose low bits are zero from some place on, and their neighbours
        low = (np.uint32(1) << words % np.uint32(24)) - np.uint32(1)
        pattern = words & np.uint32(0x83FFFFFF) | np.uint32(0x3C000000)
        return (pattern & ~low) + (words >> np.uint32(8)) % np.uint32(3) - np.uint32(1)
    return words


KINDS = ["any", "close", "five-bit ends", "denormals", "specials", "numbers", "ties"]


@MODES
@CASES
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_is_the_definition(kind, name, rounding):
    words = patterns(kind, 40 if COMPILED else 1)
    expected = quantise(name, words.view(np.float32), rounding)
    tiles = words.copy().view(np.float32)
    quantise_tiles(0, len(tiles), tiles, name, rounding == "truncate")
    different = tiles.view(np.uint32) != expected.view(np.uint32)
    assert not different.any(), [f"{word:08x}" for word in words[different][:5]]


@CASES
def test_every_upper_half(name):
    words = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16) | np.uint32(0x8000)).reshape(-1, 1024)
    words = words if COMPILED else words[::8].copy()
    expected = quantise(name, words.view(np.float32))
    tiles = words.copy().view(np.float32)
    quantise_tiles(0, len(tiles), tiles, name, False)
    assert (tiles.view(np.uint32) == expected.view(np.uint32)).all()


@CASES
def test_only_the_range_is_touched(name):
    words = patterns("any", 4)
    tiles = words.copy().view(np.float32)
    quantise_tiles(1, 3, tiles, name, False)
    result = tiles.view(np.uint32)
    assert (result[[0, 3]] == words[[0, 3]]).all()
    assert (result[1:3] == quantise(name, words[1:3].view(np.float32)).view(np.uint32)).all()


def test_unknown_format():
    with pytest.raises(UnsupportedError, match="'Bfp16'"):
        quantise_tiles(0, 1, np.zeros((1, 1024), np.float32), "Bfp16", False)


@pytest.mark.skipif(not COMPILED, reason="this run is already without compilation")
def test_the_same_bits_without_compilation():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "definition or touched"]
    done = subprocess.run(
        command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
