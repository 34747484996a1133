"""Words of Src registers and Dst images to test with: ordinary numbers, wide ranges, and the ends of the formats."""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
KINDS = ("normal", "wide", "special")
PAIRINGS = (("Float16_b", "bf16"), ("Float16_b", "fp32"), ("Tf32", "fp32"), ("Float16", "fp16"), ("Float16", "fp32"))
"""Register format and what Dst holds, as ops pair them."""


def src_words(stream: np.random.Generator, shape: tuple[int, ...], register: str, kind: str) -> Words:
    """Words of one register format; `special` has zeros, fractions under exponent 0, and exponents at both ends."""
    half = register == "Float16"
    middle, top = (15, 31) if half else (127, 255)
    spread = {"normal": 3, "wide": 14 if half else 40, "special": 3}[kind]
    exponent = np.clip(stream.normal(middle, spread, shape), 0, top).astype(np.uint32)
    if kind == "special":
        ends = np.array([0, 0, 1, middle - 12, middle + 12, top - 1, top], np.uint32)
        exponent = np.where(stream.random(shape) < 0.6, stream.choice(ends, shape), exponent)
    fraction = stream.integers(0, 1 << 10, shape, np.uint32)
    if kind == "special":
        fraction = np.where(
            stream.random(shape) < 0.3, stream.choice(np.array([0, 1, 1023], np.uint32), shape), fraction
        )
    if register == "Float16_b":
        fraction &= np.uint32(0x3F8)
    sign = stream.integers(0, 2, shape, np.uint32)
    return sign << np.uint32(31) | exponent << np.uint32(23) | fraction << np.uint32(13)


def dst_image(stream: np.random.Generator, shape: tuple[int, ...], mode: str, kind: str) -> Words:
    """Dst images of one mode."""
    if mode == "bf16":
        return src_words(stream, shape, "Float16_b", kind) >> np.uint32(16)
    if mode == "fp16":
        words = src_words(stream, shape, "Float16", kind)
        return words >> np.uint32(16) & np.uint32(0x8000) | words >> np.uint32(13) & np.uint32(0x7FFF)
    return src_words(stream, shape, "Tf32", kind) | stream.integers(0, 1 << 13, shape, np.uint32)


def family(register: str) -> str:
    """The family of a float register format."""
    return "a" if register == "Float16" else "b"
