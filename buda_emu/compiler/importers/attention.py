"""Numerical helpers of several importers: masks of softmax rows, and discrete Fourier transforms as matrix products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.spec.precision import INFINITE, MASKED

_MOVES = ("reshape", "transpose", "expand", "identity", "take", "slice", "concat")
"""Ops that only move or repeat elements."""
_PASS = ("add", "subtract", "multiply", "divide", "where", *_MOVES)
"""Ops whose results may be infinite because an operand is: with these, a constant is known to be a mask's."""
_PASS_INPUTS = (*_PASS, "negative", "maximum", "minimum", "pad", "repeat", "tile", "linear", "gather", "embedding")
"""Ops whose results may be infinite because an input of the model is."""


def find_unmasked_rows(b: Builder, scores: Node, dim: int) -> Node | None:
    """Return 1 for each row of scores with an element that is not masked, and 0 for each row that a mask fills with
    minus infinity; None if no row is masked completely. The result has size 1 along `dim`, the dimension of the rows.

    Of scores that inputs of the model reach, which may hold infinities, the largest of each row is compared. Raises
    NotSupportedError if constant infinities cannot be traced to a mask."""
    unmasked = _trace_mask(b, scores)
    if _reaches(b, scores, _is_float_input, _PASS_INPUTS):
        return b.logical_not(_is_minus_infinity_row(b, b.reduce_largest(scores, axes=[dim])))
    if unmasked is None:
        return None
    rank = len(scores.shape)
    if len(unmasked.shape) < rank:
        unmasked = b.reshape(unmasked, shape=(*(1,) * (rank - len(unmasked.shape)), *unmasked.shape))
    if unmasked.op != "constant":
        return b.reduce_largest(unmasked, axes=[dim])
    nonempty = unmasked.value.astype(bool).any(dim, keepdims=True)
    if nonempty.all():
        return None
    return b.constant(nonempty)


def zero_masked_rows(b: Builder, result: Node, unmasked_rows: Node | None) -> Node:
    """Return what a softmax, or an attention, gives with zeros in the rows that are masked completely, which
    `find_unmasked_rows` found."""
    if unmasked_rows is None:
        return result
    return b.multiply(result, unmasked_rows, dtype=result.dtype)


def _is_minus_infinity_row(b: Builder, largest: Node) -> Node:
    """Return 1 where the largest score of a row is minus infinity. A row of the least float32 is no masked row."""
    return b.logical_and(b.less_equal(largest, -INFINITE), b.greater_equal(largest, MASKED))


def _trace_mask(b: Builder, x: Node) -> Node | None:
    """Return 1 where a value is above minus infinity, in a shape that broadcasts to it; None if all of it is. Raises
    NotSupportedError as `find_unmasked_rows` does."""
    if x.op == "constant":
        return _find_unmasked_constants(b, x)
    if not _reaches(b, x, _is_infinite_constant, _PASS):
        return None
    operands = [b.graph.nodes[name] for name in x.inputs]
    if x.op == "add":
        return _mask_of_sum(b, operands)
    if x.op == "where":
        unmasked = _condition_of_mask(b, operands)
        if unmasked is not None:
            return unmasked
    if x.op in _MOVES and len(operands) == 1:
        return _move_unmasked(b, x, operands[0])
    raise _unknown_infinities_error()


def _mask_of_sum(b: Builder, operands: Sequence[Node]) -> Node:
    """Return 1 where the sum of values, of which some are minus infinity somewhere, is above minus infinity."""
    masks = [mask for mask in (_trace_mask(b, operand) for operand in operands) if mask is not None]
    if len(masks) == 1:
        return masks[0]
    return b.logical_and(*masks)


def _condition_of_mask(b: Builder, operands: Sequence[Node]) -> Node | None:
    """Return the condition under which a `where` of these operands is above minus infinity: one of its branches is
    minus infinity, the other one never. None for any other `where`."""
    condition, first, second = operands
    if _is_minus_infinity(second) and _trace_mask(b, first) is None:
        return condition
    if _is_minus_infinity(first) and _trace_mask(b, second) is None:
        return b.logical_not(condition)
    return None


def _move_unmasked(b: Builder, x: Node, operand: Node) -> Node | None:
    """Return 1 where the result of a move of elements, `x`, is above minus infinity; None if all of it is."""
    unmasked = _trace_mask(b, operand)
    if unmasked is None or x.op == "expand":
        return unmasked
    if unmasked.shape != operand.shape:
        unmasked = b.expand(unmasked, shape=operand.shape)
    return b.emit(x.op, unmasked, **x.attrs)


def _find_unmasked_constants(b: Builder, x: Node) -> Node | None:
    """Return where a constant is finite, or None if it is everywhere. Raise NotSupportedError for plus infinity."""
    if x.value.dtype.kind != "f":
        return None
    finite = ~np.isinf(x.value)
    if (x.value[~finite] > 0).any():
        raise _unknown_infinities_error()
    if finite.all():
        return None
    return b.constant(finite)


def _unknown_infinities_error() -> NotSupportedError:
    """Return the error for infinities in attention scores that do not come from a mask."""
    return NotSupportedError("infinities that are not those of a mask")


def _is_minus_infinity(x: Node) -> bool:
    """Return whether a node is a constant of floats that are all minus infinity."""
    return x.op == "constant" and x.value.dtype.kind == "f" and bool(np.isneginf(x.value).all())


def _is_infinite_constant(node: Node) -> bool:
    return node.op == "constant" and node.value.dtype.kind == "f" and bool(np.isinf(node.value).any())


def _is_float_input(node: Node) -> bool:
    return node.op == "input" and np.dtype(node.dtype).kind == "f"


def _reaches(b: Builder, x: Node, is_source: Callable[[Node], bool], ops: Sequence[str]) -> bool:
    """Return whether a source of infinities reaches a value through ops of these names."""
    seen = {x.name}
    pending = [x]
    while pending:
        node = pending.pop()
        if is_source(node):
            return True
        unseen = {name for name in node.inputs if node.op in ops} - seen
        seen |= unseen
        pending += [b.graph.nodes[name] for name in unseen]
    return False


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex value; `imag` is None if the imaginary part is zero everywhere."""

    real: Node
    imag: Node | None = None

    @property
    def parts(self) -> list[Node]:
        """The nodes of the real part, and of the imaginary part unless it is zero."""
        if self.imag is None:
            return [self.real]
        return [self.real, self.imag]


def transform_fourier(
    b: Builder, x: Complex, dims: Sequence[int], *, inverse: bool = False, factor: float = 1.0
) -> Complex:
    """Apply the discrete Fourier transform, or with `inverse` the inverse one, along some dimensions, without division
    by their sizes but times `factor`."""
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
    """Compute `size` real numbers from the first half of their spectrum, without division by `size` but times `factor`.
    Raise ValueError if the number of frequencies does not fit."""
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
    """Return the cosines and sines of the transform, two float64 matrices [size, size]."""
    check_constant_size("Fourier transform", (size, size))
    angles = np.outer(np.arange(size), np.arange(size)) % size * (2 * np.pi / size)
    return np.cos(angles), np.sin(angles)


def _multiply_along(b: Builder, x: Node, dim: int, matrix: Array) -> Node:
    """Multiply one dimension by a constant matrix [out, in], such as the cosines of a Fourier transform, and return the
    value with `out` elements there."""
    rank = len(x.shape)
    if rank == 1:
        return b.reshape(b.matmul(b.constant(matrix), b.reshape(x, shape=(*x.shape, 1))), shape=(matrix.shape[0],))
    if dim == rank - 1:
        return b.matmul(x, b.constant(matrix.T))
    order = [place for place in range(rank) if place != dim]
    order.insert(rank - 2, dim)
    product = b.matmul(b.constant(matrix), b.transpose(x, perm=order))
    return b.transpose(product, perm=[order.index(place) for place in range(rank)])
