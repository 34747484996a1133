"""Discrete Fourier transforms as products with matrices of cosines and sines; complex numbers are two real values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buda_emu.compiler.graph.builder import Builder, made_size
from buda_emu.compiler.graph.graph import Array, Node


@dataclass(frozen=True, slots=True)
class Complex:
    """`imag` None: zero everywhere."""

    real: Node
    imag: Node | None = None

    @property
    def parts(self) -> list[Node]:
        """Its nodes."""
        return [self.real] if self.imag is None else [self.real, self.imag]


def transform(b: Builder, x: Complex, dims: Sequence[int], *, inverse: bool = False, factor: float = 1.0) -> Complex:
    """The transform along some dimensions, not divided by their sizes, times `factor`."""
    for dim in reversed(dims):
        cosine, sine = (wave * factor for wave in _waves(x.real.shape[dim]))
        sine = -sine if inverse else sine
        real, imag = _along(b, x.real, dim, cosine), _along(b, x.real, dim, -sine)
        if x.imag is not None:
            real = b.add(real, _along(b, x.imag, dim, sine))
            imag = b.add(imag, _along(b, x.imag, dim, cosine))
        x, factor = Complex(real, imag), 1.0
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
