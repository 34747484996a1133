"""Numerical parts that several importers use: softmax of rows of which a mask leaves nothing, and discrete Fourier
transforms as products.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.importers.operators import NotSupportedError

_MOVES = ("reshape", "transpose", "expand", "identity", "take", "slice", "concat")
"""Ops that give what they take, where else."""
_PASS = ("add", "subtract", "multiply", "divide", "where", *_MOVES)
"""Ops whose results may be infinite because an operand is."""


def find_unmasked_rows(b: Builder, scores: Node, dim: int) -> Node | None:
    """1 for rows along a dimension of which something is more than minus infinity, 0 for the others, with that
    dimension of size 1; None where there are no others. Raises NotSupportedError where nobody says how a value came by
    its infinities. An infinity of an input does not count: it is not known."""
    unmasked = _find_unmasked(b, scores)
    if unmasked is None:
        return None
    rank = len(scores.shape)
    if len(unmasked.shape) < rank:
        unmasked = b.reshape(unmasked, shape=(*(1,) * (rank - len(unmasked.shape)), *unmasked.shape))
    if unmasked.op != "constant":
        return b.reduce_largest(unmasked, axes=[dim])
    nonempty = unmasked.value.astype(bool).any(dim, keepdims=True)
    return None if nonempty.all() else b.constant(nonempty)


def _find_unmasked(b: Builder, x: Node) -> Node | None:
    """Where a value is more than minus infinity, in a shape that it may be broadcast from; None for everywhere."""
    if x.op == "constant":
        if x.value.dtype.kind == "f":
            unmasked = ~np.isinf(x.value)
        else:
            unmasked = np.ones((), bool)
        if (x.value[~unmasked] > 0).any():
            raise _unknown_infinities_error()
        return None if unmasked.all() else b.constant(unmasked)
    if not _may_be_infinite(b, x):
        return None
    operands = [b.graph.nodes[name] for name in x.inputs]
    if x.op == "add":
        masks = [mask for mask in (_find_unmasked(b, operand) for operand in operands) if mask is not None]
        if len(masks) == 1:
            return masks[0]
        return b.logical_and(*masks)
    if x.op == "where":
        condition, first, second = operands
        if _is_minus_infinity(second) and _find_unmasked(b, first) is None:
            return condition
        if _is_minus_infinity(first) and _find_unmasked(b, second) is None:
            return b.logical_not(condition)
    if x.op in _MOVES and len(operands) == 1:
        unmasked = _find_unmasked(b, operands[0])
        if unmasked is None or x.op == "expand":
            return unmasked
        if unmasked.shape != operands[0].shape:
            unmasked = b.expand(unmasked, shape=operands[0].shape)
        return b.emit(x.op, unmasked, **x.attrs)
    raise _unknown_infinities_error()


def _unknown_infinities_error() -> NotSupportedError:
    return NotSupportedError("infinities that are not those of a mask")


def _is_minus_infinity(x: Node) -> bool:
    return x.op == "constant" and x.value.dtype.kind == "f" and bool(np.isneginf(x.value).all())


def _may_be_infinite(b: Builder, x: Node) -> bool:
    """Whether a constant that comes into a value by sums, products by parts or moves is infinite."""
    seen = {x.name}
    pending = [x]
    while pending:
        node = pending.pop()
        if node.op == "constant" and node.value.dtype.kind == "f" and np.isinf(node.value).any():
            return True
        unseen = {name for name in node.inputs if node.op in _PASS} - seen
        seen |= unseen
        pending += [b.graph.nodes[name] for name in unseen]
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


def transform_fourier(
    b: Builder, x: Complex, dims: Sequence[int], *, inverse: bool = False, factor: float = 1.0
) -> Complex:
    """The transform along some dimensions, not divided by their sizes, times `factor`."""
    for dim in reversed(dims):
        cosine, sine = (wave * factor for wave in _fourier_matrices(x.real.shape[dim]))
        if inverse:
            sine = -sine
        real = _multiply_along(b, x.real, dim, cosine)
        imag = _multiply_along(b, x.real, dim, -sine)
        if x.imag is not None:
            real = b.add(real, _multiply_along(b, x.imag, dim, sine))
            imag = b.add(imag, _multiply_along(b, x.imag, dim, cosine))
        x = Complex(real, imag)
        factor = 1.0
    return x


def invert_real_spectrum(b: Builder, x: Complex, dim: int, size: int, factor: float = 1.0) -> Node:
    """`size` real numbers of the first half of a spectrum, not divided by `size`, times `factor`."""
    cosine, sine = _fourier_matrices(size)
    half = size // 2 + 1
    if x.real.shape[dim] != half:
        raise ValueError(f"{x.real.shape[dim]} frequencies for {size} numbers: there are {half}")
    multiplicity = np.full(half, 2.0)  # a frequency stands for its mirror image, too
    multiplicity[0] = 1.0
    if size % 2 == 0:
        multiplicity[-1] = 1.0
    even_part = _multiply_along(b, x.real, dim, cosine[:, :half] * multiplicity * factor)
    if x.imag is None:
        return even_part
    return b.subtract(even_part, _multiply_along(b, x.imag, dim, sine[:, :half] * multiplicity * factor))


def _fourier_matrices(size: int) -> tuple[Array, Array]:
    """[size, size] of float64."""
    check_constant_size("Fourier transform", (size, size))
    turns = np.outer(np.arange(size), np.arange(size)) % size * (2 * np.pi / size)
    return np.cos(turns), np.sin(turns)


def _multiply_along(b: Builder, x: Node, dim: int, matrix: Array) -> Node:
    """[out, in] times one dimension."""
    rank = len(x.shape)
    if rank == 1:
        return b.reshape(b.matmul(b.constant(matrix), b.reshape(x, shape=(*x.shape, 1))), shape=(matrix.shape[0],))
    if dim == rank - 1:
        return b.matmul(x, b.constant(matrix.T))
    order = [place for place in range(rank) if place != dim]
    order.insert(rank - 2, dim)
    product = b.matmul(b.constant(matrix), b.transpose(x, perm=order))
    return b.transpose(product, perm=[order.index(place) for place in range(rank)])
