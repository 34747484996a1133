"""What the host lays side by side before it pushes an input: for each place of a window all that the window sees.

PyBUDA's Prestride does the same for windows as large as their stride (FRONTEND 7, LAYOUT 5); a window may be larger
than its stride here, so that a whole convolution becomes a product.
"""

from math import prod
from typing import Any, Final, NamedTuple

from buda_emu.image.arrays import Array, np
from buda_emu.image.fields import FieldError, listed, whole

Sizes = tuple[int, ...]
_MOST: Final = (1 << 31) - 1


class Windows(NamedTuple):
    """Of an input whose dimensions in the order `perm` are [N, C, space...]: for each dimension of space the `sizes` of
    the window, its `strides`, where the first one begins (`starts`, negative outside) and how many there are
    (`counts`)."""

    perm: Sizes
    sizes: Sizes
    strides: Sizes
    starts: Sizes
    counts: Sizes

    def shape(self, given: Sizes) -> Sizes:
        """Of the result: [N, places..., what a window sees]."""
        batch, channels = (given[place] for place in self.perm[:2])
        return (batch, *self.counts, prod(self.sizes) * channels)

    def most(self, given: Sizes) -> int:
        """Elements of the largest array on the way to the result."""
        sizes = [given[place] for place in self.perm]
        found = [prod(sizes)]
        for size, count, have in zip(self.sizes, self.counts, sizes[2:], strict=True):
            found.append(found[-1] // have * size * count)
        return max(found)

    def apply(self, array: "Array") -> "Array":
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


_lists: Final = listed(listed(whole(-_MOST, _MOST)), len(Windows._fields))


def windows(value: Any) -> Windows:
    """From five lists of integers. Raises FieldError for anything else."""
    found = Windows(*_lists(value))
    rank = len(found.sizes)
    if sorted(found.perm) != list(range(rank + 2)):
        raise FieldError(f"an order of {rank + 2} dimensions").below(0, list(found.perm))
    for place, (name, numbers) in enumerate(found._asdict().items()):
        if place and len(numbers) != rank:
            raise FieldError(f"{name} of {rank} dimensions of space").below(place, list(numbers))
        if name in ("sizes", "strides", "counts") and min(numbers, default=1) < 1:
            raise FieldError(f"{name} of 1 and more").below(place, list(numbers))
    return found
