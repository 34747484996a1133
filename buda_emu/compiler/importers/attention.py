"""Numerical parts that several importers use: softmax of rows of which a mask leaves nothing, and discrete Fourier
transforms as products.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buda_emu.compiler.graph.builder import Builder, made_size
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.importers.operators import NotSupportedError

_MOVES = ("reshape", "transpose", "expand", "identity", "take", "slice", "concat")
"""Ops that give what they take, where else."""
_PASS = ("add", "subtract", "multiply", "divide", "where", *_MOVES)
"""Ops whose results may be infinite because an operand is."""


def rows_left(b: Builder, scores: Node, dim: int) -> Node | None:
    """1 for rows along a dimension of which something is more than minus infinity, 0 for the others, with that
    dimension of size 1; None where there are no others. Raises NotSupportedError where nobody says how a value came by
    its infinities. An infinity of an input does not count: it is not known."""
    kept = _kept(b, scores)
    if kept is None:
        return None
    rank = len(scores.shape)
    if len(kept.shape) < rank:
        kept = b.reshape(kept, shape=(*(1,) * (rank - len(kept.shape)), *kept.shape))
    if kept.op != "constant":
        return b.reduce_largest(kept, axes=[dim])
    left = kept.value.astype(bool).any(dim, keepdims=True)
    return None if left.all() else b.constant(left)


def _kept(b: Builder, x: Node) -> Node | None:
    """Where a value is more than minus infinity, in a shape that it may be broadcast from; None for everywhere."""
    if x.op == "constant":
        if x.value.dtype.kind == "f":
            kept = ~np.isinf(x.value)
        else:
            kept = np.ones((), bool)
        if (x.value[~kept] > 0).any():
            raise _unclear()
        return None if kept.all() else b.constant(kept)
    if not _may_be_infinite(b, x):
        return None
    operands = [b.graph.nodes[name] for name in x.inputs]
    if x.op == "add":
        masks = [mask for mask in (_kept(b, item) for item in operands) if mask is not None]
        if len(masks) == 1:
            return masks[0]
        return b.logical_and(*masks)
    if x.op == "where":
        condition, first, second = operands
        if _nothing(second) and _kept(b, first) is None:
            return condition
        if _nothing(first) and _kept(b, second) is None:
            return b.logical_not(condition)
    if x.op in _MOVES and len(operands) == 1:
        kept = _kept(b, operands[0])
        if kept is None or x.op == "expand":
            return kept
        if kept.shape != operands[0].shape:
            kept = b.expand(kept, shape=operands[0].shape)
        return b.emit(x.op, kept, **x.attrs)
    raise _unclear()


def _unclear() -> NotSupportedError:
    return NotSupportedError("infinities that are not those of a mask")


def _nothing(x: Node) -> bool:
    return x.op == "constant" and x.value.dtype.kind == "f" and bool(np.isneginf(x.value).all())


def _may_be_infinite(b: Builder, x: Node) -> bool:
    """Whether a constant that comes into a value by sums, products by parts or moves is infinite."""
    met = {x.name}
    open_ = [x]
    while open_:
        node = open_.pop()
        if node.op == "constant" and node.value.dtype.kind == "f" and np.isinf(node.value).any():
            return True
        fresh = {name for name in node.inputs if node.op in _PASS} - met
        met |= fresh
        open_ += [b.graph.nodes[name] for name in fresh]
    return False


@dataclass(frozen=True, slots=True)
class Complex:
    """`imag` None: zero everywhere."""

    real: Node
    imag: Node | None = None

    @property
    def parts(self) -> list[Node]:
        """Its nodes."""
        if self.imag is None:
            return [self.real]
        return [self.real, self.imag]


def transform(b: Builder, x: Complex, dims: Sequence[int], *, inverse: bool = False, factor: float = 1.0) -> Complex:
    """The transform along some dimensions, not divided by their sizes, times `factor`."""
    for dim in reversed(dims):
        cosine, sine = (wave * factor for wave in _waves(x.real.shape[dim]))
        if inverse:
            sine = -sine
        real = _along(b, x.real, dim, cosine)
        imag = _along(b, x.real, dim, -sine)
        if x.imag is not None:
            real = b.add(real, _along(b, x.imag, dim, sine))
            imag = b.add(imag, _along(b, x.imag, dim, cosine))
        x = Complex(real, imag)
        factor = 1.0
    return x


def real_inverse(b: Builder, x: Complex, dim: int, size: int, factor: float = 1.0) -> Node:
    """`size` real numbers of the first half of a spectrum, not divided by `size`, times `factor`."""
    cosine, sine = _waves(size)
    half = size // 2 + 1
    if x.real.shape[dim] != half:
        raise ValueError(f"{x.real.shape[dim]} frequencies for {size} numbers: there are {half}")
    both = np.full(half, 2.0)  # a frequency stands for its mirror image, too
    both[0] = 1.0
    if size % 2 == 0:
        both[-1] = 1.0
    found = _along(b, x.real, dim, cosine[:, :half] * both * factor)
    if x.imag is None:
        return found
    return b.subtract(found, _along(b, x.imag, dim, sine[:, :half] * both * factor))


def _waves(size: int) -> tuple[Array, Array]:
    """[size, size] of float64."""
    made_size("Fourier transform", (size, size))
    turns = np.outer(np.arange(size), np.arange(size)) % size * (2 * np.pi / size)
    return np.cos(turns), np.sin(turns)


def _along(b: Builder, x: Node, dim: int, matrix: Array) -> Node:
    """[out, in] times one dimension."""
    rank = len(x.shape)
    if rank == 1:
        return b.reshape(b.matmul(b.constant(matrix), b.reshape(x, shape=(*x.shape, 1))), shape=(matrix.shape[0],))
    if dim == rank - 1:
        return b.matmul(x, b.constant(matrix.T))
    order = [place for place in range(rank) if place != dim]
    order.insert(rank - 2, dim)
    found = b.matmul(b.constant(matrix), b.transpose(x, perm=order))
    return b.transpose(found, perm=[order.index(place) for place in range(rank)])
