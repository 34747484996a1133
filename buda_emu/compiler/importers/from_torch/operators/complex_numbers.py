"""Handlers for complex operands, which are pairs of real values, as far as models use them (Fourier transforms, rotary
angles)."""

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod, sqrt
from typing import Any, cast

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.importers.from_torch.declared import ATEN, aten
from buda_emu.compiler.importers.from_torch.operators.elementwise import to_copy
from buda_emu.compiler.importers.from_torch.operators.moves import stack
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.compiler.importers.signals import Complex, invert_real_spectrum, transform_fourier

Handler = Callable[..., Any]
_PART_BY_PART = (
    "view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "permute", "transpose", "t", "expand", "repeat", "slice",
    "select", "unbind", "split_with_sizes", "flip", "roll", "clone", "alias", "detach", "sum", "mean", "neg", "add",
    "sub", "rsub", "cat", "stack", "constant_pad_nd", "unfold",
)  # fmt: skip
"""Operators that treat both parts as real values; a real operand has an imaginary part of zeros."""
_PRODUCTS = ("mul", "mm", "bmm", "matmul")
"""Operators that sum products of an element of each operand."""
_VALUE_PLACES = {"add": (0, 1), "sub": (0, 1), "rsub": (0, 1), "constant_pad_nd": (0, 2)}
"""Arguments that are values, of operators that also take numbers for them: a real number has no imaginary part. All
other numbers are sizes and places, the same for both parts."""


def find_complex_handler(name: str) -> Handler | None:
    """Return the handler of an operator for complex operands; None if it is not supported for them."""
    if name == "_to_copy":
        return _convert
    declared = ATEN.get(name)
    if declared is None or declared.family == "complex_numbers":
        return declared and declared.handler
    if name in _PRODUCTS:
        return _make_product_handler(declared.handler)
    if name in _PART_BY_PART:
        return _apply_to_parts(declared.handler, _VALUE_PLACES.get(name, ()))
    return None


def _convert(b: Builder, x: Complex | Node, *, dtype: Any = None) -> Complex | Node:
    """Convert between complex types, or to and from real values."""
    if not isinstance(x, Complex):
        return Complex(x)
    if dtype is None or str(dtype).startswith("torch.complex"):
        return x
    return to_copy(b, x.real, dtype=dtype)


def _apply_to_parts(handler: Handler, value_places: Sequence[int]) -> Handler:
    """Return a handler of complex operands that applies the handler of real ones to their real and to their imaginary
    parts. `value_places` are the places of arguments that may be numbers with such parts."""

    @wraps(handler)
    def run(b: Builder, *arguments: Any, **options: Any) -> Any:
        """Run the handler on the real and on the imaginary parts and join the results. Raises NotSupportedError for a
        complex alpha."""
        if isinstance(options.get("alpha"), complex):
            raise NotSupportedError("a complex alpha")
        as_complex = [
            complex(argument) if place in value_places and isinstance(argument, (int, float)) else argument
            for place, argument in enumerate(arguments)
        ]
        real = handler(b, *_select_part(b, as_complex, 0), **options)
        imag = handler(b, *_select_part(b, as_complex, 1), **options)
        if isinstance(real, list):
            pairs = zip(cast("list[Node]", real), cast("list[Node]", imag), strict=True)
            return [Complex(*pair) for pair in pairs]
        return Complex(real, imag)

    return run


def _select_part(b: Builder, argument: Any, number: int) -> Any:
    """Replace all operands and complex numbers in an argument by their real (0) or imaginary (1) parts."""
    if isinstance(argument, (list, tuple)):
        return [_select_part(b, element, number) for element in cast("list[Any]", argument)]
    if isinstance(argument, complex):
        return (argument.real, argument.imag)[number]
    if isinstance(argument, Complex):
        return _real_and_imaginary(b, argument)[number]
    if isinstance(argument, Node) and number:
        return b.constant(np.zeros(argument.shape, np.float32))
    return argument


def _real_and_imaginary(b: Builder, x: Complex | Node) -> tuple[Node, Node]:
    """Return the real and the imaginary part of a value; a missing imaginary part is a constant of zeros."""
    if isinstance(x, Complex):
        real = x.real
    else:
        real = x
    if isinstance(x, Complex):
        imag = x.imag
    else:
        imag = None
    return real, b.constant(np.zeros(real.shape, np.float32)) if imag is None else imag


def _make_product_handler(handler: Handler) -> Handler:
    """Return the handler of a product of complex factors, given that of real ones: (a + bi)(c + di) = ac - bd + (ad +
    bc)i."""

    def run(b: Builder, x: Any, y: Any) -> Complex:
        """Return the product of two factors; parts that are zero everywhere are left out."""
        x_real, x_imag = _parts_of_factor(x)
        y_real, y_imag = _parts_of_factor(y)
        real = handler(b, x_real, y_real)
        mixed: list[Node] = []
        if y_imag is not None:
            mixed.append(handler(b, x_real, y_imag))
        if x_imag is not None:
            mixed.append(handler(b, x_imag, y_real))
        if x_imag is not None and y_imag is not None:
            real = b.subtract(real, handler(b, x_imag, y_imag))
        if not mixed:
            return Complex(real)
        return Complex(real, mixed[0] if len(mixed) == 1 else b.add(*mixed))

    return run


def _parts_of_factor(factor: Any) -> tuple[Any, Any]:
    """Return the real part of a factor, and the imaginary part unless it is zero everywhere."""
    if isinstance(factor, Complex):
        return factor.real, factor.imag
    if isinstance(factor, complex):
        return factor.real, factor.imag or None
    return factor, None


def complex_constant(b: Builder, array: Array) -> Complex:
    """Add a constant of complex numbers."""
    return Complex(b.constant(np.real(array)), b.constant(np.imag(array)))


@aten("complex")
def complex_(_: Builder, real: Node, imag: Node) -> Complex:
    """Two real values"""
    return Complex(real, imag)


@aten("polar")
def polar(b: Builder, size: Node, angle: Node) -> Complex:
    """`cosine` and `sine` of the angle, times the size"""
    return Complex(b.multiply(size, b.cosine(angle)), b.multiply(size, b.sine(angle)))


@aten("view_as_complex")
def view_as_complex(b: Builder, x: Node) -> Complex:
    """`take` of both parts"""
    parts = [b.reshape(b.take(x, dim=len(x.shape) - 1, index=np.asarray([k])), shape=x.shape[:-1]) for k in (0, 1)]
    return Complex(*parts)


@aten("view_as_real")
def view_as_real(b: Builder, x: Complex) -> Node:
    """`concat` of both parts along a new dimension"""
    return stack(b, _real_and_imaginary(b, x), -1)


@aten("_conj", "_conj_physical", "conj_physical")
def conjugate(b: Builder, x: Complex) -> Complex:
    """The imaginary part negated"""
    if x.imag is None:
        return x
    return Complex(x.real, b.negative(x.imag))


@aten("_fft_r2c")
def fft_r2c(b: Builder, x: Node, dims: Any, norm: int, onesided: bool) -> Complex:
    """`matmul` by cosines and sines

    Fourier transform of real values along `dims`; if `onesided` the last of them keeps only the frequencies that are
    not conjugates of others. `norm`: torch's number of a normalisation (`_normalisation_factor`).
    """
    spectrum = fft_c2c(b, Complex(x), dims, norm, True)
    if not onesided:
        return spectrum
    last = dims[-1] % len(x.shape)
    half = np.arange(x.shape[last] // 2 + 1)
    return Complex(*(b.take(part, dim=last, index=half) for part in spectrum.parts))


@aten("_fft_c2c")
def fft_c2c(b: Builder, x: Complex, dims: Any, norm: int, forward: bool) -> Complex:
    """`matmul` by cosines and sines

    Fourier transform along `dims`, or its inverse. `norm`: torch's number of a normalisation (`_normalisation_factor`).
    """
    places = [dim % len(x.real.shape) for dim in dims]
    factor = _normalisation_factor(norm, [x.real.shape[place] for place in places])
    return transform_fourier(b, x, places, inverse=not forward, factor=factor)


@aten("_fft_c2r")
def fft_c2r(b: Builder, x: Complex, dims: Any, norm: int, size: int) -> Node:
    """`matmul` by cosines and sines

    Inverse Fourier transform to real values, `size` of them along the last of `dims`. `norm`: torch's number of a
    normalisation (`_normalisation_factor`).
    """
    *others, last = (dim % len(x.real.shape) for dim in dims)
    factor = _normalisation_factor(norm, [size, *(x.real.shape[place] for place in others)])
    return invert_real_spectrum(b, transform_fourier(b, x, others, inverse=True), last, size, factor)


def _normalisation_factor(norm: int, sizes: list[int]) -> float:
    """Return the factor for torch's normalisation of a transform: 1 (0), 1 over the root of the size (1), or 1 over the
    size (2). Raises NotSupportedError for any other number."""
    if norm not in (0, 1, 2):
        raise NotSupportedError(f"division {norm} of a Fourier transform")
    return (1.0, 1 / sqrt(prod(sizes)), 1 / prod(sizes))[norm]
