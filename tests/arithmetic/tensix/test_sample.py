"""A sample that needs no other files: digests of results on fixed words, taken when all vectors were reproduced."""

import hashlib
import math

import numpy as np
import pytest

from buda_emu.arithmetic.tensix.elementwise import copy_to_dst, elwadd, elwmul, elwsub, reduce_max
from buda_emu.arithmetic.tensix.products import tile_matmul
from buda_emu.arithmetic.tensix.registers import to_image
from register_words import PAIRINGS, family

pytestmark = pytest.mark.tiny

DIGESTS = {
    ("Float16_b", "bf16", "wormhole_b0"): {
        "matmul": "2f43a57ceef4f468",
        "multiply": "c25cc251149fcae2",
        "add": "a8a7661d66f87ec0",
        "subtract onto": "e1860ec464f6b60b",
        "copy": "82dcf1fba6075364",
        "reduce": "07b474ed9deb0d31",
    },
    ("Float16_b", "bf16", "blackhole"): {
        "matmul": "2f43a57ceef4f468",
        "multiply": "c25cc251149fcae2",
        "add": "a8a7661d66f87ec0",
        "subtract onto": "e1860ec464f6b60b",
        "copy": "82dcf1fba6075364",
        "reduce": "07b474ed9deb0d31",
    },
    ("Float16_b", "fp32", "wormhole_b0"): {
        "matmul": "e76da27e4218e9bf",
        "multiply": "744f1a34ffda967e",
        "add": "eb8b5bd56efdcbbe",
        "subtract onto": "3a3541c575832cce",
        "copy": "79af15af1c427741",
        "reduce": "0e5dabf6a3dbad28",
    },
    ("Float16_b", "fp32", "blackhole"): {
        "matmul": "e76da27e4218e9bf",
        "multiply": "744f1a34ffda967e",
        "add": "eb8b5bd56efdcbbe",
        "subtract onto": "3a3541c575832cce",
        "copy": "79af15af1c427741",
        "reduce": "0e5dabf6a3dbad28",
    },
    ("Tf32", "fp32", "wormhole_b0"): {
        "matmul": "a636bdcbc920f943",
        "multiply": "3c28c78499e15854",
        "add": "db44497c6282cf21",
        "subtract onto": "7d62bcd6632f9c11",
        "copy": "8431992857688cbd",
        "reduce": "5a1e5dd2e95b739c",
    },
    ("Tf32", "fp32", "blackhole"): {
        "matmul": "a636bdcbc920f943",
        "multiply": "3c28c78499e15854",
        "add": "db44497c6282cf21",
        "subtract onto": "7d62bcd6632f9c11",
        "copy": "8431992857688cbd",
        "reduce": "5a1e5dd2e95b739c",
    },
    ("Float16", "fp16", "wormhole_b0"): {
        "matmul": "993045d3f215229e",
        "multiply": "30697c1a75f00391",
        "add": "351ad265fe241ab7",
        "subtract onto": "f2541d56c8aa2dec",
        "copy": "8072e3646ae99f5e",
        "reduce": "143c298788bad885",
    },
    ("Float16", "fp16", "blackhole"): {
        "matmul": "993045d3f215229e",
        "multiply": "30697c1a75f00391",
        "add": "351ad265fe241ab7",
        "subtract onto": "f2541d56c8aa2dec",
        "copy": "8072e3646ae99f5e",
        "reduce": "143c298788bad885",
    },
    ("Float16", "fp32", "wormhole_b0"): {
        "matmul": "e4bd11a003575309",
        "multiply": "0554523e416e5830",
        "add": "99f40bca0f4387a6",
        "subtract onto": "e0cb3aba1773ee3b",
        "copy": "44977038b50f2da9",
        "reduce": "89e28c884ef09e17",
    },
    ("Float16", "fp32", "blackhole"): {
        "matmul": "e4bd11a003575309",
        "multiply": "0554523e416e5830",
        "add": "99f40bca0f4387a6",
        "subtract onto": "e0cb3aba1773ee3b",
        "copy": "44977038b50f2da9",
        "reduce": "89e28c884ef09e17",
    },
}


def raw_bits(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """uint32 of a generator whose bits numpy promises to keep."""
    return np.random.PCG64(seed).random_raw(math.prod(shape)).reshape(shape).astype(np.uint32)


def src_words(seed: int, shape: tuple[int, ...], register: str) -> np.ndarray:
    """Words with exponents near the middle, and every eighth with any."""
    bits = raw_bits(seed, shape)
    middle, widest = (15, 31) if register == "Float16" else (127, 255)
    exponent = bits >> 8 & 15
    exponent = np.where(bits & 7 == 0, bits >> 8 & widest, exponent + middle - 8).astype(np.uint32)
    fraction = bits >> 16 & (0x3F8 if register == "Float16_b" else 0x3FF)
    return bits & np.uint32(1 << 31) | exponent << np.uint32(23) | fraction << np.uint32(13)


def dst_image(seed: int, shape: tuple[int, ...], mode: str) -> np.ndarray:
    """Dst images of such words."""
    words = src_words(seed, shape, {"bf16": "Float16_b", "fp16": "Float16", "fp32": "Tf32"}[mode])
    return words if mode == "fp32" else to_image(words, mode)


def results(register: str, mode: str, core: str) -> dict[str, np.ndarray]:
    """Each unit on the same words."""
    setting = (family(register), mode, core)
    a, b = src_words(1, (2, 32, 32), register), src_words(2, (2, 32, 32), register)
    dst = dst_image(3, (2, 32, 32), mode)
    product = dst
    for phase in range(4):
        product = elwmul(product, a, b, phase, *setting)
    return {
        "matmul": tile_matmul(dst[0], a, b, (0, 1, 2, 3), *setting),
        "multiply": product,
        "add": elwadd(None, a, b, *setting),
        "subtract onto": elwsub(dst, a, b, *setting),
        "copy": copy_to_dst(a, *setting),
        "reduce": reduce_max(a, "c", register, mode, core),
    }


def digest(image: np.ndarray) -> str:
    """Of the words as little-endian bytes."""
    return hashlib.sha256(image.astype("<u4").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(("register", "mode"), PAIRINGS)
@pytest.mark.parametrize("core", ["wormhole_b0", "blackhole"])
def test_bits_are_those_that_were_checked(register, mode, core):
    found = {name: digest(image) for name, image in results(register, mode, core).items()}
    assert found == DIGESTS[register, mode, core]
