"""Arrays by reference are the arrays that numpy makes of the same steps, box by box."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from buda_emu.arithmetic.tensor.host import scatter
from buda_emu.arithmetic.tensor.referenced import Referenced, as_array, concatenate, reference_to

Step = Callable[[Any], Any]


def source(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray[Any, Any], Referenced]:
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return array, reference_to(array, "w")


STEPS: dict[str, tuple[tuple[int, ...], Step]] = {
    "transpose": ((4, 6, 5), lambda x: x.transpose(2, 0, 1)),
    "T": ((4, 6), lambda x: x.T),
    "split": ((12, 10), lambda x: x.reshape(3, 4, 10)),
    "merge": ((3, 4, 10), lambda x: x.reshape(12, 10)),
    "odd": ((4, 6), lambda x: x.reshape(3, 8)),
    "minus one": ((4, 6), lambda x: x.reshape(2, -1, 3)),
    "ones": ((1, 4, 1, 6), lambda x: x.reshape(4, 6, 1)),
    "slice": ((9, 7), lambda x: x[2:8:3, ::-1]),
    "ellipsis": ((3, 4, 7), lambda x: x[..., 2:5]),
    "number": ((3, 4, 7), lambda x: x[1, None, :, -2]),
    "list": ((5, 9), lambda x: x[..., np.array([3, 0, 8, -1])]),
    "factor": ((5, 9), lambda x: x * np.arange(9, dtype=np.float32)),
    "factor from the left": ((5, 9), lambda x: np.arange(5, dtype=np.float32).reshape(5, 1) * x),
    "beside": ((5, 9), lambda x: np.concatenate([x, np.ones((2, 9), np.float32), x], 0)),
    "by function": ((5, 9), lambda x: np.reshape(np.transpose(x), (3, 15))),
    "scattered": ((5, 9), lambda x: scatter(x, (8, 16), (np.array([7, 1, 2, 3, 0]), slice(2, 11)))),
    "chain": ((24, 32), lambda x: scatter(x.T * np.arange(24, dtype=np.float32), (40, 32),
                                            (slice(0, 32), slice(3, 27))).reshape(40, 4, 8).transpose(1, 0, 2)[None]),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_step(name: str) -> None:
    shape, step = STEPS[name]
    array, reference = source(shape)
    want, found = step(array), step(reference)
    assert isinstance(found, Referenced), "the step read the array"
    assert found.shape == want.shape
    assert found.dtype == want.dtype
    assert np.array_equal(np.asarray(found), want)
    assert np.abs(want).max() <= found.bound()
    rng = np.random.default_rng(1)
    for _ in range(50):
        ends = [sorted(rng.integers(0, size + 1, 2)) for size in want.shape]
        box = tuple(
            slice(int(a), int(max(a + 1, b))) if a < size else slice(size - 1, size)
            for (a, b), size in zip(ends, want.shape, strict=True)
        )
        assert np.array_equal(found.read(box), want[box]), box


@pytest.mark.parametrize("most", [1, 3, 20, 1000])
def test_blocks_are_all_elements_in_order(most: int) -> None:
    array, reference = source((1, 3, 4, 5))
    boxes = list(reference.boxes(most))
    assert np.array_equal(np.concatenate([array[box].ravel() for box in boxes]), array.ravel())
    assert all(array[box].size <= max(most, 1) for box in boxes)


def test_anything_else_reads_the_array() -> None:
    array, reference = source((5, 9))
    assert np.array_equal(reference + 1, array + 1)
    assert np.array_equal(np.exp(reference), np.exp(array))
    assert (reference >= 0).any()
    assert reference.max() == array.max()
    assert np.array_equal(reference[array > 0], array[array > 0])
    assert np.array_equal(np.broadcast_to(reference, (2, 5, 9))[1], array)


def test_bfloat16_is_float32() -> None:
    array = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    halves = (array.view(np.uint32) >> 16).astype(np.uint16)
    found = reference_to(halves, "w", bfloat16=True)
    assert found.dtype == np.float32
    assert np.array_equal(found, (halves.astype(np.uint32) << 16).view(np.float32))


def test_equal_steps_on_the_same_memory_are_equal() -> None:
    array, reference = source((6, 8))
    again, other = reference_to(array, "w"), source((6, 8), 1)[1]
    assert reference.T[1:].key == again.T[1:].key
    others = reference.T, reference[1:], reference[:-1], reference * 2, other
    assert len({item.key for item in (reference, *others)}) == 6


@pytest.mark.parametrize(("value", "within", "nan"), [(3.0, True, False), (9.0, False, False), (np.nan, False, True)])
def test_bound(value: float, within: bool, nan: bool) -> None:
    array, _ = source((6, 8))
    array[2, 3] = value
    found = reference_to(array, "w")
    assert found.is_within(8.0) is within
    assert found.has_nan() is nan
    assert found[:2].is_within(8.0), "the bound is that of the file, the elements tell"


def test_only_what_is_asked_for_is_read() -> None:
    read: list[Any] = []

    class Told(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            read.append(key)
            return super().__getitem__(key)

    array = np.zeros((64, 32), np.float32).view(Told)
    reference_to(array, "w").T.reshape(4, 8, 64)[2:3].read((slice(0, 1), slice(3, 5), slice(0, 64)))
    assert read[0] == (slice(0, 64), slice(19, 21))  # what follows are picks of it


def test_arrays_stay_arrays() -> None:
    array, reference = source((2, 2))
    assert as_array(reference) is reference
    assert as_array(array) is array
    assert isinstance(scatter(array, (3, 3), (slice(0, 2), slice(0, 2))), np.ndarray)
    assert concatenate([reference, array]).shape == (4, 2)
    with pytest.raises(ValueError, match=r"4 elements of w do not have the shape \[3, 2\]"):
        reference.reshape(3, 2)
