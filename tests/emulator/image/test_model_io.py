"""Inputs and outputs of a model by their names, on its queues."""

import json

import numpy as np
import pytest

from buda_emu.emulator.image.model_io import INFINITE, KEY, ModelInput, ModelIo, ModelOutput
from buda_emu.emulator.image.rules import Place
from buda_emu.support.errors import HostError

AT = Place("image.tti", "device.json", (KEY,))

TWO = ModelIo(
    ("a", "b"),
    (ModelInput("qa", "a", (2, 3), "float32", (1, 2, 3), (1, 32, 32)),
     ModelInput("qb", "b", (4,), "float32", (1, 1, 2), (1, 32, 32), gather=(3, 0))),
    (ModelOutput("qo", "o", (2, 3), "float32", (1, 2, 3)),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"a": 0}, "inputs: no b; the model takes a, b"),
        ({"a": 0, "b": 0, "c": 0, "d": 0}, "inputs: unknown c, d; the model takes a, b"),
        ({"a": 0, "c": 0}, "inputs: no b; unknown c; the model takes a, b"),
    ],
)
def test_names_that_are_missing_or_unknown(given, says):
    with pytest.raises(HostError) as caught:
        TWO.queues(given)
    assert str(caught.value) == says


def test_inputs_lie_in_the_leading_part_of_their_queues():
    made = TWO.queues({"a": np.arange(6.0).reshape(2, 3), "b": np.array([5.0, 6.0, 7.0, 8.0])})
    assert {name: array.shape for name, array in made.items()} == {"qa": (1, 1, 32, 32), "qb": (1, 1, 32, 32)}
    assert made["qa"][0, 0, :2, :3].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made["qb"][0, 0, 0, :2].tolist() == [8, 5]
    assert made["qa"].sum() == 15
    assert made["qb"].sum() == 13
    with pytest.raises(HostError, match=r"input a: shape \[3, 2\], the model takes \[2, 3\]"):
        TWO.queues({"a": np.zeros((3, 2)), "b": np.zeros(4)})


def test_outputs_are_tensors_of_the_model_one_for_each_entry():
    held = np.arange(2 * 32 * 32, dtype=np.float32).reshape(2, 1, 32, 32)
    one, two = TWO.by_queue["qo"].from_queue(held[:1]), TWO.by_queue["qo"].from_queue(held)
    assert one.tolist() == [[0, 1, 2], [32, 33, 34]]
    assert two.shape == (2, 2, 3)
    assert two[1, 0, 0] == 1024


def test_columns_in_slices_are_put_side_by_side_and_apart_again():
    output = ModelOutput("q", "o", (2, 7), "float32", (1, 2, 7), slices=3)
    held = np.arange(2 * 3 * 2 * 3, dtype=np.float32).reshape(2, 3, 2, 3)
    found = output.from_queue(held)
    assert found[0].tolist() == [[0, 1, 2, 6, 7, 8, 12], [3, 4, 5, 9, 10, 11, 15]]
    again = output.in_queue(found, (3, 2, 3))
    assert again is not None
    np.testing.assert_array_equal(again, output.alone(held))
    assert again[0, 2].tolist() == [[12, 0, 0], [15, 0, 0]]


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        ("float32", [INFINITE, -INFINITE, 1.5], [np.inf, -np.inf, 1.5]),
        ("float64", [INFINITE, 0.0, -1.5], [np.inf, 0.0, -1.5]),
        ("int32", [1.6, np.nan, -2.4], [2, 0, -2]),
        ("bool", [0.2, 1.0, np.nan], [False, True, False]),
    ],
)
def test_numbers_become_those_of_the_models_type(dtype, values, expected):
    output = ModelOutput("q", "o", (3,), dtype, (1, 1, 3))
    found = output.from_queue(np.array(values, np.float32).reshape(1, 1, 1, 3))
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == expected


def test_json_and_back():
    whole = json.loads(json.dumps(TWO.as_json()))
    assert ModelIo.from_json(whole, AT) == TWO
    for broken, where in (
        ({**whole, "schema_version": 2}, "buda_emu_model/schema_version: 2 is not the schema_version that is known"),
        ({"schema_version": 1}, "buda_emu_model: .* is not an object with labels"),
        ({**whole, "inputs": [1]}, "buda_emu_model/inputs/0: 1 is not an object"),
        ({**whole, "colour": 1}, "buda_emu_model/colour: 1 is not a value that belongs here"),
    ):
        with pytest.raises(HostError, match=where):
            ModelIo.from_json(broken, AT)


@pytest.mark.parametrize("index", [-1, -2, -100, 2**32 - 1, 2**32, -(2**32)])
def test_an_index_that_no_word_stands_for_is_refused(index):
    source = ModelInput("q", "tokens", (3,), "int64", (1, 1, 3), (1, 32, 32), indices=True)
    with pytest.raises(HostError, match=rf"input tokens: index {index}: the model takes indices from 0 on"):
        source.entries(np.array([0, index, 1]))
    fit = source.entries(np.array([0, 2**32 - 2, 1]))
    assert fit.reshape(-1)[:3].tolist() == [0, 2**32 - 2, 1]


@pytest.mark.parametrize("seed", range(20))
def test_indices_of_a_table_are_counted_from_its_first_row(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 50))
    from_end = bool(rng.integers(2))
    zero = rng.choice([None, -1, -100, 255])
    source = ModelInput(
        "q", "tokens", (8,), "int64", (1, 1, 8), (1, 32, 32), indices=True, rows=rows, from_end=from_end, zero=zero
    )
    fit = [*range(-rows if from_end else 0, rows), *([] if zero is None else [zero])]
    indices = rng.choice(fit, 8)
    want = [0xFFFFFFFF if index == zero else index % rows for index in indices]
    assert source.to_queue(indices).reshape(-1)[:8].tolist() == want
    for index in {rows, -rows - 1 if from_end else -1} - {zero}:
        indices[3] = index
        with pytest.raises(HostError, match=rf"index {index}: the model takes indices from {fit[0]} to {rows - 1}"):
            source.to_queue(indices)


def take(dtype, array):
    """The elements that an input of that type pushes."""
    source = ModelInput("q", "x", (len(array),), dtype, (1, 1, len(array)), (1, 32, 32))
    return source.to_queue(array)[0, 0, 0, : len(array)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_infinities_of_inputs_are_numbers_on_the_device_and_infinities_in_outputs(dtype):
    values = np.array([np.inf, -np.inf, 1.5, np.nan], dtype)
    pushed = take(dtype, values)
    np.testing.assert_array_equal(pushed, np.array([2.0**100, -(2.0**100), 1.5, np.nan], np.float32))
    output = ModelOutput("q", "o", (4,), dtype, (1, 1, 4))
    np.testing.assert_array_equal(output.from_queue(pushed.reshape(1, 1, 1, 4)), values)


def test_other_numbers_end_where_constants_end():
    least = np.finfo(np.float32).min
    assert take("float32", np.array([least, -least, 1e35], np.float32)).tolist()[:2] == [-(2.0**126), 2.0**126]
    assert take("float64", np.array([1e300, -1e300])).tolist() == [2.0**100, -(2.0**100)]


@pytest.mark.parametrize(
    ("dtype", "array", "complaint"),
    [
        ("float32", np.array([1 + 2j]), "elements of type complex128, the model takes float32"),
        ("float32", np.array(["1"]), "elements of type <U1, the model takes float32"),
        ("int64", np.array([1], "M8[s]"), r"elements of type datetime64\[s\], the model takes int64"),
        ("float32", np.array([None]), "elements of type object, the model takes float32"),
        ("bool", np.array([255], np.uint8), "an element 255, the model takes bool as True and False"),
        ("bool", np.array([1.0, 0.5]), "an element 0.5, the model takes bool"),
        ("bool", np.array([np.nan]), "an element nan, the model takes bool"),
        ("int32", np.array([1.5]), "an element 1.5, the model takes int32, whole numbers within its range"),
        ("int64", np.array([np.inf]), "an element inf, the model takes int64"),
        ("uint8", np.array([3, -1]), "an element -1, the model takes uint8"),
    ],
)
def test_elements_of_another_kind_are_refused(dtype, array, complaint):
    with pytest.raises(HostError, match=f"^input x: {complaint}"):
        take(dtype, array)


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_other_types_that_fit_are_taken(seed):
    rng = np.random.default_rng(seed)
    dtype = rng.choice(["bool", "int8", "int64", "uint8", "float32"])
    numbers = rng.integers(0, 2 if dtype == "bool" else 100, 5)
    given = numbers.astype(rng.choice(["float32", "float64", "int16", "int64"]))
    assert take(dtype, given).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("int32", 2**24 + 1), ("int32", -(2**24) - 1), ("int32", 2**31 - 1), ("int64", 2**53 + 1),
        ("int64", 2**63 - 1), ("int64", -(2**63) + 1), ("uint64", 2**64 - 1),
    ],
)  # fmt: skip
def test_integers_that_the_device_would_round_are_refused(dtype, number):
    queue = ModelInput("q", "a", (3,), dtype, (1, 1, 3), (1, 32, 32))
    with pytest.raises(HostError, match=f"input a: the integer {number} is not exact in float32, in which the device"):
        queue.to_queue(np.array([1, number, 2], dtype))


@pytest.mark.parametrize(
    ("dtype", "number"), [("int32", 2**24), ("int64", 2**40), ("int64", -(2**63)), ("int32", -(2**31))]
)
def test_integers_that_float32_has_are_taken(dtype, number):
    queue = ModelInput("q", "a", (3,), dtype, (1, 1, 3), (1, 32, 32))
    assert queue.to_queue(np.array([1, number, 2], dtype))[0, 0, 0, :3].tolist() == [1, number, 2]


def test_an_input_of_floats_is_rounded_as_floats_are():
    queue = ModelInput("q", "a", (1,), "float32", (1, 1, 1), (1, 32, 32))
    assert queue.to_queue(np.array([2**24 + 1]))[0, 0, 0, 0] == 2**24
