"""What the host lays side by side before it pushes an input: for each place of a window all that the window sees.

PyBUDA's Prestride does the same for windows as large as their stride (FRONTEND 7, LAYOUT 5); a window may be larger
than its stride here, so that a whole convolution becomes a product.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError

Array = NDArray[Any]
Sizes = tuple[int, ...]


class Windows(NamedTuple):
    """Of an input whose dimensions in the order `perm` are [N, C, space...]: for each dimension of space the `sizes` of
    the window, its `strides`, where the first one begins (`starts`, negative outside) and how many there are
    (`counts`)."""

    perm: Sizes
    sizes: Sizes
    strides: Sizes
    starts: Sizes
    counts: Sizes

    @staticmethod
    def of(fields: Any) -> "Windows":
        """From five lists of whole numbers. Raises HostError for anything else."""
        lists = (
            [_numbers(item) for item in cast("Sequence[object]", fields)] if isinstance(fields, (list, tuple)) else []
        )
        if len(lists) != len(Windows._fields) or None in lists:
            raise HostError(f"windows of an input are not lists of {', '.join(Windows._fields)}")
        found = Windows(*(item or () for item in lists))
        rank = len(found.sizes)
        fits = sorted(found.perm) == list(range(rank + 2)) and {len(item) for item in found[1:]} == {rank}
        if not fits or min((*found.sizes, *found.strides, *found.counts), default=0) < 1:
            raise HostError(f"windows of an input do not fit together: {found}")
        return found

    def shape(self, given: Sizes) -> Sizes:
        """Of the result: [N, places..., what a window sees]."""
        batch, channels = (given[place] for place in self.perm[:2])
        return (batch, *self.counts, prod(self.sizes) * channels)

    def apply(self, array: Array) -> Array:
        """`[N, places..., places in the window, then channels]`; zeros outside of the input."""
        rank = len(self.sizes)
        array = array.transpose(self.perm)
        for place, (size, stride, start, count) in enumerate(zip(*self[1:], strict=True)):
            axis = 2 + 2 * place
            index = start + np.arange(count)[:, None] * stride + np.arange(size)[None, :]
            inside = (index >= 0) & (index < array.shape[axis])
            found = np.take(array, np.where(inside, index, 0), axis)
            form = [1] * found.ndim
            form[axis], form[axis + 1] = index.shape
            array = np.where(inside.reshape(form), found, np.zeros((), array.dtype))
        places, seen = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
        array = array.transpose(0, *places, *seen, 1)
        return array.reshape(array.shape[0], *self.counts, -1)


def _numbers(item: object) -> Sizes | None:
    """A list of whole numbers as a tuple; None for anything else."""
    if not isinstance(item, (list, tuple)):
        return None
    numbers = cast("Sequence[object]", item)
    found = tuple(number for number in numbers if type(number) is int)
    return found if len(found) == len(numbers) else None
