"""Numerical helpers of several importers: discrete Fourier transforms as matrix products, and the kernels by which
images are interpolated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.builder import Builder, check_constant_size
from buda_emu.compiler.graph.graph import Array, Node

Weights = NDArray[np.float64]


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
    """Return the cosines and sines of the transform, two float64 matrices [size, size]. Raise UnsupportedError for
    matrices that are too large."""
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


def triangle(distance: Weights) -> Weights:
    """Return the weights of linear interpolation: 1 at distance 0, 0 from distance 1 on."""
    return np.maximum(1 - np.abs(distance), 0)


def cubic(distance: Weights, a: float) -> Weights:
    """Return the weights of Keys' cubic convolution with slope `a` at distance 1; they are 0 from distance 2 on."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))
