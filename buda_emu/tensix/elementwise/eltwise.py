"""ELWMUL, ELWADD and ELWSUB: SrcA with SrcB element by element (DEVICE_NUMERICS 2.4, 2.5)."""

import numpy as np

from buda_emu.formats.bits import U32
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.products.accumulate import Sum, accumulate
from buda_emu.tensix.products.fidelity import product
from buda_emu.tensix.words import SIGN, SRC_BITS, Core, exponent_of, require_pairing, sign_of, significand_of


def elwmul(dst: U32, srca: U32, srcb: U32, phase: int, family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image after the products of one phase are added to it; all shapes are the same."""
    require_pairing(family, mode)
    terms = product(srca, srcb, phase, family, mode)
    # A zero operand has left +0 with the exponent of the bias; an exponent that is not positive drops the term too.
    dropped = terms.exponent <= 0
    one = Sum(
        sign=np.where(dropped, 0, terms.sign),
        exponent=np.maximum(terms.exponent, 0),
        magnitude=np.where(dropped, 0, terms.magnitude << 13),
    )
    return accumulate(dst, [one], family, mode, core)


def elwadd(dst: U32 | None, srca: U32, srcb: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image of srca + srcb, added to `dst` where one is given; all shapes are the same."""
    require_pairing(family, mode)
    a, b = (np.where(exponent_of(x) == 0, np.uint32(0), x & SRC_BITS) for x in (srca, srcb))
    a_larger = a & ~SIGN >= b & ~SIGN
    larger, smaller = np.where(a_larger, a, b), np.where(a_larger, b, a)
    zero = smaller & ~SIGN == 0
    exponent = exponent_of(larger)
    distance = exponent - exponent_of(smaller)
    large = np.where(larger & ~SIGN == 0, 0, significand_of(larger))
    small = np.where(zero, 0, significand_of(smaller))
    right = np.clip(distance, 1, 12)
    aligned = np.where(distance == 0, small, np.where(distance < 12, (small + (1 << (right - 1))) >> right, 0))
    total = np.where(sign_of(larger) == sign_of(smaller), large + aligned, large - aligned)
    if (family, mode) == ("a", "fp32"):
        exponent = np.where(exponent == 0, 97, exponent + 112)
    one = Sum(sign_of(larger), exponent, total << 13)
    return accumulate(np.zeros_like(a) if dst is None else dst, [one], family, mode, core)


def elwsub(dst: U32 | None, srca: U32, srcb: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image of srca - srcb, added to `dst` where one is given; all shapes are the same."""
    return elwadd(dst, srca, srcb ^ SIGN, family, mode, core)
