"""What part of each operand's significand a fidelity phase multiplies (DEVICE_NUMERICS 2.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from buda_emu.formats.bits import U32
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.words import I64, exponent_of, sign_of, significand_of

PHASES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"LoFi": (0,), "HiFi2": (0, 1), "HiFi2_A": (0, 1), "HiFi2_B": (0, 2), "HiFi3": (0, 1, 2), "HiFi4": (0, 1, 2, 3)}
)
"""The phases of each math_fidelity, in the order in which they run."""

BIAS: Final[Mapping[tuple[Family, DstMode], int]] = MappingProxyType(
    {("b", "bf16"): -127, ("b", "fp32"): -127, ("a", "fp16"): -15, ("a", "fp32"): 97}
)
"""What is added to the two exponents, by the operands' family and what Dst holds."""


def phase_mask(math_fidelity: str) -> int:
    """The phases as the kernels take them: bit p is set where phase p runs."""
    return sum(1 << phase for phase in PHASES[math_fidelity])


@dataclass(frozen=True, slots=True)
class Product:
    """Products of one phase: sign 0 or 1, magnitude of at most 12 bits, exponent."""

    sign: I64
    magnitude: I64
    exponent: I64


def part_of_srca(significand: I64, phase: int) -> I64:
    """5 bits: the upper ones, or in odd phases the next ones. The lowest bit of the 11 is never used."""
    return significand >> 1 & 31 if phase & 1 else significand >> 6


def part_of_srcb(significand: I64, phase: int) -> I64:
    """7 bits: the upper ones, or in phases 2 and 3 the lower 4 with zeros below."""
    return (significand & 15) << 3 if phase & 2 else significand >> 4


def correction(phase: int) -> int:
    """By how much the parts of a phase lie lower than those of phase 0."""
    return 5 * (phase & 1) + 7 * (phase >> 1)


def product(srca: U32, srcb: U32, phase: int, family: Family, mode: DstMode) -> Product:
    """The product of Src words, which broadcast. With a zero operand it is +0 and the exponent what a bias makes it."""
    bias = BIAS[family, mode] - correction(phase)
    exponent_a, exponent_b = exponent_of(srca), exponent_of(srcb)
    zero = (exponent_a == 0) | (exponent_b == 0)
    parts = part_of_srca(significand_of(srca), phase) * part_of_srcb(significand_of(srcb), phase)
    return Product(
        sign=np.where(zero, 0, sign_of(srca) ^ sign_of(srcb)),
        magnitude=np.where(zero, 0, parts),
        exponent=np.where(zero, max(bias, 0), exponent_a + exponent_b + bias),
    )
