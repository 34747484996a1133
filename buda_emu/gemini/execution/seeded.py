"""Seeded weights and network inputs: none were published (facts GEMINI 6)."""

from math import sqrt
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.gemini.boxes import Coordinates

Weights: TypeAlias = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]
"""Of a layer: [K, C, R, S], scale [K], bias [K]."""

_MOST = 1 << 31  # elements


def hashes(name: str, seed: int, count: int) -> NDArray[np.uint32]:
    """h(name, i) for i below count: MurmurHash3's finaliser over a sequence that begins with the name's CRC."""
    if count > _MOST:
        raise UnsupportedError(f"{name}: {count} values are more than {_MOST}")
    start = np.uint32((crc32(name.encode()) ^ seed) & 0xFFFFFFFF)
    h = start + np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h


def units(name: str, seed: int, count: int) -> NDArray[np.float32]:
    """u = (h >> 8) / 2^24, from 0 on and below 1; exact in float32."""
    return (hashes(name, seed, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def seeded_weights(layer: str, shape: Coordinates, seed: int) -> Weights:
    """Of a convolution with weights [K, C, R, S]."""
    k, c, r, s = shape
    words = hashes(f"{layer}/weight", seed, k * c * r * s)
    values = ((words >> np.uint32(24)) % np.uint32(255)).astype(np.int16) - 127
    step = np.float32(1 / (64 * sqrt(c * r * s)))
    scale = step * (np.float32(0.75) + np.float32(0.5) * units(f"{layer}/scale", seed, k))
    bias = units(f"{layer}/bias", seed, k) * np.float32(0.5) - np.float32(0.25)
    return values.astype(np.int8).reshape(shape), scale, bias


def seeded_input(name: str, shape: Coordinates, seed: int) -> NDArray[np.float16]:
    """A network input, N C H W."""
    n, c, h, w = shape
    values = units(name, seed, n * c * h * w) * np.float32(4) - np.float32(2)
    return values.astype(np.float16).reshape(shape)
