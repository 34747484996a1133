"""Arguments of the kernels of matrix products, from one flat list."""

from typing import Any

import numpy as np

from buda_emu.arithmetic.kernels.tensix.products.accumulate import Extent, Product, RegisterOperand
from buda_emu.arithmetic.kernels.tensix.words import Setting


def product_of(*given: Any) -> Product:
    """Words, index and pad of in0; those of in1, and whether it is transposed; `Extent`; phases; `Setting`; whether
    faces go first."""
    in0, in1, extent, (phases, *setting, faces_first) = given[:3], given[3:7], given[7:14], given[14:]
    return Product(
        RegisterOperand(*in0), RegisterOperand(*in1), Extent(*extent), phases, faces_first, Setting(*setting)
    )


def integer_product_of(*given: Any) -> Product:
    """Words and index of in0; those of in1, and whether it is transposed; `Extent`; whether faces go first."""
    none = np.uint32(0)
    return product_of(*given[:2], none, *given[2:4], none, *given[4:12], 0b1111, 0, 8, False, given[12])
