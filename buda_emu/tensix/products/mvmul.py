"""MVMUL: Dst += SrcB x SrcA over 16 products, in two groups of 8 (DEVICE_NUMERICS 2.2)."""

import numpy as np

from buda_emu.formats.bits import U32
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.products.accumulate import Sum, accumulate
from buda_emu.tensix.products.fidelity import Product, product
from buda_emu.tensix.words import I64, Core

GROUP = 8
"""Products that are aligned to one exponent and summed."""


def mvmul(dst: U32, srcb: U32, srca: U32, phase: int, family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image [..., rows, cols] after one accumulation of srcb [..., rows, 16] x srca [..., 16, cols].

    Both groups enter one single addition.
    """
    terms = product(srca[..., None, :, :], srcb[..., :, :, None], phase, family, mode)
    sums = [_group_sum(terms, slice(first, first + GROUP)) for first in range(0, srca.shape[-2], GROUP)]
    return accumulate(dst, sums, family, mode, core)


def _group_sum(terms: Product, k: slice) -> Sum:
    """The sum of products, whose axis k is the last but one, each aligned to the largest exponent."""
    sign, magnitude, exponent = (x[..., k, :] for x in (terms.sign, terms.magnitude, terms.exponent))
    largest = np.maximum.reduce(exponent, axis=-2)
    distance = np.minimum(largest[..., None, :] - exponent, 30)
    aligned: I64 = (2 * magnitude + (1 << distance)) >> (distance + 1)
    total = np.add.reduce(np.where(sign == 1, -aligned, aligned), axis=-2)
    total = np.where(largest <= 0, 0, total)
    return Sum((total < 0).astype(np.int64), np.maximum(largest, 0), np.abs(total) << 13)
