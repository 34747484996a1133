"""What an example is, how its operands are filled, and how kernel and reference are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand, Parallel, PlannedOp
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.support.errors import ProgramError

F32 = NDArray[np.float32]
GARBAGE = np.uint32(0xDEADBEEF).view(np.float32)  # what `out` holds before a run
SPECIALS = np.array(
    [0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001,
     0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x42B17218, 0xC2B17218,
     0x3F000000, 0xBF000000, 0x4B000001, 0xCF000000, 0x4EFFFFFF, 0x40200000],
    np.uint32,
).view(np.float32)  # fmt: skip


@dataclass(frozen=True)
class Example:
    """One call, and what its operands hold: a word of `VALUES` for each."""

    id: str
    call: PlannedOp
    values: tuple[str, ...]
    same_nans: bool = False  # NaN payloads and signs are compared as well: the op only moves words

    def __str__(self) -> str:
        return f"{self.call.type}-{self.id}"


def random_bits(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    return rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)


def adversarial(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    """Zeros of both signs, infinities, NaNs, denormals, huge values, any bits, and ordinary numbers."""
    choice = rng.integers(0, 4, shape)
    special = rng.choice(SPECIALS, shape)
    ordinary = rng.normal(0, 3, shape).astype(np.float32)
    return np.where(choice == 0, special, np.where(choice == 1, random_bits(rng, shape), ordinary))


def plain(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    return rng.normal(0, 2, shape).astype(np.float32)


def not_negative(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    """What sqrt accepts: no NaN, nothing below -0."""
    values = adversarial(rng, shape)
    return np.where((values >= 0) | (values == 0), values, np.float32(-0.0))


def invertible(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    """What reciprocal accepts: no NaN, and no negative value so small that its inverse is -inf."""
    values = adversarial(rng, shape)
    return np.where(np.isnan(values) | ((values < 0) & (values > -1e-38)), np.float32(0.0), values)


def small_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    return rng.integers(-127, 128, shape).astype(np.float32)


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], F32]] = {
    "adversarial": adversarial,
    "bits": random_bits,
    "plain": plain,
    "not negative": not_negative,
    "invertible": invertible,
    "small integers": small_integers,
}


def scattered(rng: np.random.Generator, shape: Shape, pad_value: float | None = None) -> TileMap:
    """A map to `shape` from a source of some other shape: tiles in any order, repeated, left out, and padded."""
    source = (int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    lowest = 0 if pad_value is None else -1
    index = rng.integers(lowest, int(np.prod(source)), int(np.prod(shape))).astype(np.int32)
    index.flags.writeable = False
    return TileMap(source, shape, index, pad_value or 0.0)


def operand(shape: Shape, seed: int | None = None, pad_value: float | None = None, **others: Any) -> Operand:
    """An operand of `shape`: in place without a seed, else through a scattered map."""
    tiles = TileMap.identity(shape) if seed is None else scattered(np.random.default_rng(seed), shape, pad_value)
    return Operand(tiles, **others)


def make_call(
    type: str, operands: Sequence[Operand], tile_dim: tuple[int, int] = FULL_TILE, **others: Any
) -> PlannedOp:
    """A call on one core; attributes are given as a dict of those that are written."""
    written = others.pop("attributes", {})
    attributes = replace(Attributes(), given=frozenset(written), **written)
    blocking = others.pop("blocking", None)
    if blocking is None:
        t, rows, cols = operands[0].map.shape
        blocking = Blocking((1, 1), t, (rows, cols), (1, 1), "r", tile_dim)
    return PlannedOp(f"a_{type}", type, attributes, blocking, tuple(operands), **others)


def uneven(kernel: Callable[..., Any], items: int, *args: Any) -> int:
    """A `Parallel` that cuts the items into ranges of different lengths, and takes the last one first."""
    cuts = sorted({0, items // 5, items // 5 + 1, items // 2, items})
    ranges = reversed(list(pairwise(cuts)))
    return sum(int(kernel(start, stop, *args) or 0) for start, stop in ranges)


def assert_same_bits(actual: F32, expected: F32, same_nans: bool = False) -> None:
    """Equal bits; every NaN counts as the same one unless `same_nans`."""
    words = [np.ascontiguousarray(array).view(np.uint32).copy() for array in (actual, expected)]
    if not same_nans:
        for array in words:
            array[(array & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    np.testing.assert_array_equal(words[0], words[1])


def sources_of(example: Example, entries: Sequence[int], seed: int) -> list[F32]:
    """Source tensors float32[w, t, R, C, 32, 32] of an example; `entries` gives w, over and over."""
    rng = np.random.default_rng(seed)
    shapes = [operand.map.source_shape for operand in example.call.operands]
    return [
        VALUES[kind](rng, (entries[number % len(entries)], *shape, 32, 32))
        for number, (kind, shape) in enumerate(zip(example.values, shapes, strict=True))
    ]


Kernels = Callable[[PlannedOp, Sequence[F32], F32, Parallel], None]
"""As `Implementation.run`."""


def run(call: PlannedOp, sources: Sequence[F32], kernels: Kernels | None = None) -> F32:
    """The kernels' result float32[w, t, R, C, 32, 32]; not of `Implementation.run` but of `kernels`, if given."""
    implementation = ops.implementation(call.type)
    w = max(source.shape[0] for source in sources)
    shape = implementation.shape(call)
    out = np.full((w, int(np.prod(shape)), 1024), GARBAGE)
    inputs = [np.ascontiguousarray(source).reshape(source.shape[0], -1, 1024) for source in sources]
    kept = [tensor.copy() for tensor in inputs]
    (kernels or implementation.run)(call, inputs, out, uneven)
    for tensor, before in zip(inputs, kept, strict=True):
        assert_same_bits(tensor, before, same_nans=True)  # a fork's other readers see the same values
    return out.reshape(w, *shape, 32, 32)


def reference(call: PlannedOp, sources: Sequence[F32]) -> F32:
    """The reference's result float32[w, t, R, C, 32, 32]."""
    operands = [operand.map.apply(source) for operand, source in zip(call.operands, sources, strict=True)]
    return ops.implementation(call.type).reference(call, operands)


def assert_kernel_equals_reference(
    example: Example,
    entries: Sequence[int] = (2,),
    seed: int = 1,
    kernels: Kernels | None = None,
    after: Callable[[F32], F32] = np.asarray,
) -> None:
    """The two faces of an op agree, bit for bit, on random content: `after` of the reference, and `kernels`."""
    sources = sources_of(example, entries, seed)
    try:
        expected = after(reference(example.call, sources))
    except ProgramError as failure:
        expected = str(failure)
    try:
        actual = run(example.call, sources, kernels)
    except ProgramError as failure:
        actual = str(failure)
    if isinstance(actual, str) or isinstance(expected, str):
        assert actual == expected
        return
    assert expected.dtype == np.float32
    assert expected.shape[1:4] == ops.implementation(example.call.type).shape(example.call)
    assert_same_bits(actual, np.broadcast_to(expected, actual.shape), example.same_nans)
