"""What the kernels of matrix products are told: operands, sizes, and how the matrix unit is set."""

from typing import NamedTuple

import numpy as np

from buda_emu.arithmetic.kernels.tensix.words import Index, Setting, Tensor


class RegisterOperand(NamedTuple):
    """An operand in a register file: words uint32[w or 1, tiles, 1024] (1: the same entry for every w), read through
    `places`, in which a negative number is a tile full of the word `pad`; `transposed` inside each tile first."""

    words: Tensor
    places: Index
    pad: np.uint32
    transposed: bool = False


class Extent(NamedTuple):
    """Sizes in tiles: `t` slices of `rows` x `inner` x `cols`, of which the inner tiles first to last - 1 are added;
    `faces`: how many faces the inner dimension of a tile has, 1 or 2."""

    t: int
    rows: int
    inner: int
    cols: int
    first: int
    last: int
    faces: int


class Product(NamedTuple):
    """in0 (SrcB), read through t * rows * inner places, x in1 (SrcA), through t * inner * cols. `phases`:
    bit p is set where phase p runs; `faces_first`: the phases run inside a face, as on Grayskull."""

    in0: RegisterOperand
    in1: RegisterOperand
    extent: Extent
    phases: int
    faces_first: bool
    setting: Setting
