"""Arrays by reference: where the numbers lie, and what is still to be done with them.

A parameter of gigabytes is never in memory. It is its shape, the file that it lies in, and a chain of steps, each of
which can give any box of its result by asking the step before it for a box: a transposition, a reshape, elements of one
dimension (slices and padding, too), a factor, arrays side by side. Whoever needs numbers asks for them box by box.

To numpy's functions it is an array. `transpose`, `reshape`, `concatenate`, indices and products with smaller arrays
give another reference; anything else reads the whole of it first.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from math import prod
from typing import Any, Final, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from buda_emu.arithmetic.tensor.boxes import (
    Array,
    Box,
    Read,
    group_dimensions,
    largest_magnitude,
    reshape_box,
    take_box,
)

LARGE: Final = 1 << 20
"""Bytes in the file from which on an array is held by reference."""
BLOCK: Final = 1 << 22
"""Elements that are read at a time: 16 MiB in float32."""
RoomCheck = Callable[[int, str], None]
"""Called with the bytes and the origin of an array that is about to be read as a whole; raises where there is no
room."""
_ROOM_CHECK: Final[ContextVar[RoomCheck | None]] = ContextVar("asked", default=None)


@contextmanager
def guard_whole_reads(check_room: RoomCheck) -> Generator[None]:
    """Call check_room(bytes, origin of the array) before the whole of a referenced array is read into memory, during
    the block; it raises where there is no room."""
    token = _ROOM_CHECK.set(check_room)
    try:
        yield
    finally:
        _ROOM_CHECK.reset(token)


class Referenced(NDArrayOperatorsMixin):
    """An array of `shape` and `dtype` whose elements are read on demand; numbers with a fraction are float32, whatever
    the file has.

    `key`: equal for arrays that are made of the same memory by the same steps. `origin`: what to call it in messages.
    `packed`: a function that returns the bytes of the packed tiles that the array is read from (`mapped.py`); None for
    any other array, and after any step.
    """

    __slots__ = ("_bound", "_give_back", "_read", "dtype", "key", "origin", "packed", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        read: Read,
        key: Hashable,
        origin: str,
        bound: Callable[[], float],
        give_back: Callable[[], None],
    ) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.dtype = np.dtype(dtype)
        self.key = key
        self.origin = origin
        self._read = read
        self._bound = bound
        self._give_back = give_back
        self.packed: Callable[[], Array] | None = None

    def __repr__(self) -> str:
        return f"Referenced({self.origin!r}, {self.dtype.name}{list(self.shape)})"

    # --------------------------------------------------------------------------------------------- as an array has it
    @property
    def ndim(self) -> int:
        """The number of dimensions of the array."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the array."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the array would take in memory."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> "Referenced":  # noqa: N802 - numpy's name
        """The array with all dimensions in reverse order."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        check_room = _ROOM_CHECK.get()
        if check_room is not None:
            check_room(self.nbytes, self.origin)
        array = self.read(self.whole)
        if array.base is not None:
            array = np.array(array)  # the memory of a view may belong to somebody else
        self.give_back()
        if dtype is None:
            return array
        return array.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.multiply and method == "__call__" and not options and len(inputs) == 2:
            other = inputs[0]
            if other is self:
                other = inputs[1]
            if not isinstance(other, Referenced):
                factor = np.asarray(other)
                if factor.ndim <= self.ndim and np.broadcast_shapes(self.shape, factor.shape) == self.shape:
                    return self.times(factor)
        return getattr(ufunc, method)(*map(_without_references, inputs), **options)

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        move = _MOVES.get(function)
        if move is not None and not options.keys() - {"axis", "axes"}:
            return move(*args, **options)
        return function(
            *_without_references(args), **{name: _without_references(option) for name, option in options.items()}
        )

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return _select_part(self, cast("tuple[Any, ...]", key))
        return _select_part(self, (key,))

    # -------------------------------------------------------------------------------------------------------- numbers
    @property
    def whole(self) -> Box:
        """The box of all elements."""
        return tuple(slice(0, size) for size in self.shape)

    def read(self, box: Box) -> Array:
        """Return the elements of a box, one range for each dimension. They may be a view of the file, and must not be
        written to."""
        return self._read(box)

    def boxes(self, limit: int = BLOCK) -> Iterator[Box]:
        """Yield boxes of at most `limit` elements in the order of the array, whose elements follow each other in it;
        together they are all of the array."""
        axis = next((number for number, size in enumerate(self.shape) if size > 1), 0)
        for number in range(axis, self.ndim):  # as many dimensions one by one as it takes
            inner = prod(self.shape[number + 1 :])
            if inner <= limit or number == self.ndim - 1:
                break
        else:
            yield self.whole
            return
        step = max(1, limit // max(1, inner))
        for outer in np.ndindex(self.shape[:number]):
            fixed = tuple(slice(place, place + 1) for place in outer)
            for start in range(0, self.shape[number], step):
                part = slice(start, min(start + step, self.shape[number]))
                yield (*fixed, part, *self.whole[number + 1 :])

    def blocks(self) -> Iterator[Array]:
        """Yield all elements in order, as arrays of one box each (`boxes`), and give the pages that were read back to
        the system when the caller has enough."""
        try:
            for box in self.boxes():
                yield self.read(box)
        finally:  # who has seen enough asks for no more
            self.give_back()

    def give_back(self) -> None:
        """Give the pages of the file that were read back to the system; they are read from the file again when they are
        next used."""
        self._give_back()

    def bound(self) -> float:
        """Return an upper limit of all magnitudes, from the largest in the file and the steps since; NaN where an
        element is not a number, infinity where no limit is known. It may read the file once."""
        return self._bound()

    def is_within(self, limit: float) -> bool:
        """Return whether all elements are numbers no further from 0 than `limit`. All of them are read where `bound`
        does not tell."""
        if self.bound() <= limit:
            return True
        return all(bool((np.abs(block) <= limit).all()) for block in self.blocks())

    def has_nan(self) -> bool:
        """Return whether an element is not a number, by reading all of them."""
        return any(bool(np.isnan(block).any()) for block in self.blocks())

    # ---------------------------------------------------------------------------------------------------------- steps
    def _step(
        self,
        name: Hashable,
        shape: Sequence[int],
        read: Read,
        dtype: DTypeLike | None = None,
        bound: Callable[[], float] | None = None,
    ) -> "Referenced":
        """Return the array after one more step, which has this shape and reads its boxes by `read`. `name` tells the
        step from others in the key; None for `dtype` or `bound` keeps this array's."""
        if dtype is None:
            dtype = self.dtype
        return Referenced(
            shape=shape,
            dtype=dtype,
            read=read,
            key=(self.key, name),
            origin=self.origin,
            bound=bound or self._bound,
            give_back=self._give_back,
        )

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> "Referenced":  # noqa: ARG002 - numpy's word
        """Return the array with another element type, by reference; the array itself where the type is the same."""
        element_type = np.dtype(dtype)
        if element_type == self.dtype:
            return self
        return self._step(
            ("type", element_type.str), self.shape, lambda box: self.read(box).astype(element_type), element_type
        )

    def transpose(self, *axes: Any) -> "Referenced":
        """Return the array with its dimensions in the order `axes`, reversed without them, by reference."""
        order = axes
        if len(axes) == 1 and not isinstance(axes[0], int):
            order = axes[0]
        perm = tuple(int(axis) % self.ndim for axis in order or range(self.ndim - 1, -1, -1))
        if perm == tuple(range(self.ndim)):
            return self

        def read(box: Box) -> Array:
            """Read the box with its dimensions in the order before the transposition, and reorder the elements."""
            old_box = [slice(0, 0)] * self.ndim
            for place, axis in enumerate(perm):
                old_box[axis] = box[place]
            return self.read(tuple(old_box)).transpose(perm)

        return self._step(("transpose", perm), [self.shape[axis] for axis in perm], read)

    def reshape(self, *shape: Any) -> "Referenced":
        """Return the same elements in the same order in another shape, by reference; -1 is the size that makes up their
        number. Raises ValueError where the number differs."""
        lengths = shape
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            lengths = shape[0]
        sizes = [int(size) for size in lengths]
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.size // max(1, -prod(sizes))
        if prod(sizes) != self.size:
            raise ValueError(f"{self.size} elements of {self.origin} do not have the shape {sizes}")
        if tuple(sizes) == self.shape:
            return self
        parts = group_dimensions(self.shape, sizes)
        return self._step(("reshape", tuple(sizes)), sizes, lambda box: reshape_box(self.read, parts, box))

    def take_at(self, dim: int, index: Any) -> "Referenced":
        """Return the array with the elements `index` (numbers) of dimension `dim`, and 0 where a number is negative, by
        reference: for slices, padding, and elements moved to other places."""
        index = np.ascontiguousarray(index, np.int64)
        if index.size == self.shape[dim] and index.tolist() == list(range(index.size)):
            return self
        shape = (*self.shape[:dim], index.size, *self.shape[dim + 1 :])
        return self._step(
            ("take", dim, index.tobytes()), shape, lambda box: take_box(self.read, self.dtype, dim, index, box)
        )

    def times(self, factor: Array) -> "Referenced":
        """Return the product with `factor`, by reference. The factor has no more dimensions than the array, and is
        repeated along those where it has one element."""
        factor = factor.reshape((1,) * (self.ndim - factor.ndim) + factor.shape)
        dtype = np.result_type(self.dtype, factor.dtype)
        largest_factor = 0.0
        if factor.size:
            largest_factor = float(np.abs(factor).max())

        def read(box: Box) -> Array:
            """Read the box, and multiply it with its part of the factor."""
            factor_box = tuple(part if size > 1 else slice(0, 1) for part, size in zip(box, factor.shape, strict=True))
            return self.read(box) * factor[factor_box]

        name = ("times", factor.dtype.str, factor.shape, factor.tobytes())
        return self._step(name, self.shape, read, dtype, lambda: self.bound() * largest_factor)

    def each(self, name: Hashable, function: Callable[[Array], Array], limit: float) -> "Referenced":
        """Return the array with a function applied to each element, by reference. Its results are of the same type and
        no further from 0 than `limit`; `name` tells the function from others in the key."""
        return self._step(name, self.shape, lambda box: function(self.read(box)), None, lambda: limit)


def reference_to(
    array: Array,
    origin: str,
    give_back: Callable[[], None] = lambda: None,
    check: Callable[[], None] | None = None,
    *,
    bfloat16: bool = False,
) -> Referenced:
    """Return an array by reference to its memory. Where the memory is a file's, `check` raises if the file is not what
    it was: it is called before and after a box is read, which is then a copy, and `give_back` returns the pages that
    were read to the system. `bfloat16`: the elements are uint16, the upper halves of float32."""
    dtype = array.dtype.newbyteorder("=")
    if bfloat16 or array.dtype.kind == "f":
        dtype = np.dtype(np.float32)

    def values(box: Box) -> Array:
        """Return the elements of a box as numbers of the reference's type."""
        part = array[box]
        if bfloat16:
            return (part.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(all="ignore"):  # what is too large for float32 is infinite
            return part.astype(dtype, copy=check is not None)

    def read(box: Box) -> Array:
        """Return the elements of a box, with a check of the file before and after."""
        if check is None:
            return values(box)
        check()
        part = values(box)
        check()
        return part

    bounds: list[float] = []  # one, once it is asked for

    def bound() -> float:
        """Return the largest magnitude of all elements, NaN if one is not a number; computed once."""
        if not bounds:
            if check is not None:
                check()
            magnitudes = (largest_magnitude(values(box) if bfloat16 else array[box]) for box in reference.boxes())
            limit = max(magnitudes, key=lambda value: (np.isnan(value), value), default=0.0)
            if check is not None:
                check()
            bounds.append(limit)
            give_back()
        return bounds[0]

    address = array.__array_interface__["data"][0]
    reference = Referenced(
        shape=array.shape,
        dtype=dtype,
        read=read,
        key=(address, array.shape, array.strides, array.dtype.str, bfloat16),
        origin=origin,
        bound=bound,
        give_back=give_back,
    )
    return reference


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Referenced:
    """Return arrays side by side along a dimension, by reference. At least one of them is a reference (else
    StopIteration is raised); the result is named after the first one."""
    first = next(array for array in arrays if isinstance(array, Referenced))
    dim = axis % first.ndim
    parts = [as_array(array) for array in arrays]
    starts = list(accumulate((part.shape[dim] for part in parts), initial=0))

    def read(box: Box) -> Array:
        """Join the parts of the box from the arrays that it lies in."""
        pieces: list[Array] = []
        for part, start in zip(parts, starts, strict=False):
            low = max(box[dim].start, start)
            high = min(box[dim].stop, start + part.shape[dim])
            if low < high:
                part_box = (*box[:dim], slice(low - start, high - start), *box[dim + 1 :])
                if isinstance(part, Referenced):
                    pieces.append(part.read(part_box))
                else:
                    pieces.append(part[part_box])
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces, dim)

    def give_back() -> None:
        """Give back the pages of all arrays that are references."""
        for part in parts:
            if isinstance(part, Referenced):
                part.give_back()

    shape = (*first.shape[:dim], starts[-1], *first.shape[dim + 1 :])
    dtype = np.result_type(*(part.dtype for part in parts))
    return Referenced(
        shape=shape,
        dtype=dtype,
        read=read,
        key=("joined", dim, *map(_key_of, parts)),
        origin=first.origin,
        bound=lambda: max(map(_bound_of, parts)),
        give_back=give_back,
    )


def _key_of(part: Any) -> Hashable:
    """Return what makes a reference or an array equal to others: the key of a reference, type, shape and bytes of an
    array."""
    if isinstance(part, Referenced):
        return part.key
    return part.dtype.str, part.shape, part.tobytes()


def _bound_of(part: Any) -> float:
    """Return an upper limit of all magnitudes of a reference or an array; NaN where an element is not a number."""
    if isinstance(part, Referenced):
        return part.bound()
    return largest_magnitude(part)


def as_array(values: Any) -> Any:
    """Return a reference as it is, and anything else as an array."""
    if isinstance(values, Referenced):
        return values
    return np.asarray(values)


def _without_references(argument: Any) -> Any:
    """Return an argument of a numpy function with arrays, read as a whole, in place of references, also inside of lists
    and tuples, which become lists."""
    if isinstance(argument, Referenced):
        return np.asarray(argument)
    if isinstance(argument, (list, tuple)):
        return [_without_references(part) for part in cast("Sequence[Any]", argument)]
    return argument


def _numpy_transpose(array: Referenced, axes: Sequence[int] | None = None) -> Referenced:
    """Return the array with its dimensions in the order `axes`, by default reversed: `np.transpose` for references."""
    return array.transpose(*(axes or ()))


_MOVES: Final[dict[Any, Callable[..., Any]]] = {
    np.transpose: _numpy_transpose,
    np.reshape: Referenced.reshape,
    np.concatenate: concatenate,
}


def _select_part(array: Referenced, key: tuple[Any, ...]) -> Any:
    """Return the part of an array that an index, as a tuple, selects: by reference where it is made of ranges, numbers,
    new dimensions and one vector of numbers (`_is_readable_by_parts`), else as an array, for which the whole is
    read."""
    parts = list(key)
    if not _is_readable_by_parts(parts):
        return np.asarray(array)[key]
    named = sum(part is not None and part is not ... for part in parts)
    at = next((number for number, part in enumerate(parts) if part is ...), len(parts))
    parts[at : at + 1] = [slice(None)] * (array.ndim - named)
    shape: list[int] = []
    dim = 0
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        size = array.shape[dim]
        array = array.take_at(dim, np.atleast_1d(np.arange(size)[part]))
        if not isinstance(part, (int, np.integer)):
            shape.append(array.shape[dim])
        dim += 1
    return array.reshape(shape)


def _is_readable_by_parts(parts: Sequence[Any]) -> bool:
    """Return whether an index selects along one dimension at a time: it has ranges and single numbers only, or one
    vector of integers and no single number, with which numpy would combine it."""
    lists = [part for part in parts if not isinstance(part, (int, np.integer, slice, type(None), type(...)))]
    if not lists:
        return True
    has_number = any(isinstance(part, (int, np.integer)) for part in parts)
    return len(lists) == 1 and _is_integer_vector(lists[0]) and not has_number


def _is_integer_vector(part: Any) -> bool:
    """Return whether a part of an index is a vector of integers."""
    return isinstance(part, np.ndarray) and part.ndim == 1 and cast("Array", part).dtype.kind in "iu"
