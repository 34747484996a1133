"""Shapes that a model's inputs decide by their values. A netlist has fixed shapes, so the compiled model is right only
for values that mean the shapes that it was compiled for: a `ShapeRule` holds what an input must mean, and refuses every
other value when the model is called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, Final, NamedTuple

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import (
    FieldError,
    flag,
    integer_between,
    list_of,
    natural,
    object_of,
    optional_field,
    required_field,
    text,
)
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError

Shape = tuple[int, ...]
_KINDS: Final = ("int32", "int64", "uint32", "uint64")
CONSTANT: Final = -1
"""Stands in an element of an operand for the number of the input: the element is a constant."""
_MOST: Final = (1 << 63) - 1  # of 64 bits with a sign
_integer: Final = integer_between(-_MOST - 1, _MOST)


def _dimensions_of_axes(axes: Sequence[int], rank: int) -> set[int]:
    """Return the numbers of the dimensions that axes name; negative axes count from the end. Raises ValueError for an
    axis that a tensor of this rank does not have."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} of {plural(rank, 'dimension')}")
    return {axis % rank for axis in axes}


def _require_sizes(sizes: Sequence[int], least: int = 0) -> None:
    """Raise ValueError for a size that is less than `least`."""
    if min(sizes, default=least) < least:
        raise ValueError(f"a size of {min(sizes)}")


def _shape_of_reshape(shape: Shape, values: Sequence[int], keeps_zero: bool) -> Shape:
    """Return the result's shape of ONNX's Reshape to the sizes `values`. `keeps_zero`: a size of 0 keeps that of the
    operand. Raises ValueError for sizes that give another number of elements."""
    _require_sizes(values, -1)
    sizes = list(values)
    if keeps_zero:
        sizes = _replace_zeros(sizes, shape)
    elements = prod(shape)
    others = prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1:
        raise ValueError("several sizes of -1")
    if -1 in sizes:
        if not others or elements % others:
            raise ValueError(f"{others} does not divide {plural(elements, 'element')}")
        sizes[sizes.index(-1)] = elements // others
    if prod(sizes) != elements:
        raise ValueError(f"{plural(prod(sizes), 'element')} in place of {elements}")
    return tuple(sizes)


def _replace_zeros(sizes: Sequence[int], shape: Shape) -> list[int]:
    """Return sizes with each 0 replaced by the size of the same dimension in `shape`. Raises ValueError for a 0 where
    `shape` has no such dimension."""
    replaced: list[int] = []
    for place, size in enumerate(sizes):
        if size == 0 and place >= len(shape):
            raise ValueError(f"size 0 for dimension {place} of {len(shape)}")
        replaced.append(size or shape[place])
    return replaced


def _shape_of_squeeze(shape: Shape, values: Sequence[int], _: bool) -> Shape:
    """Return the result's shape of ONNX's Squeeze along the axes `values`. Raises ValueError for an axis that is longer
    than 1."""
    removed = _dimensions_of_axes(values, len(shape))
    longer = [place for place in sorted(removed) if shape[place] != 1]
    if longer:
        raise ValueError(f"axis {longer[0]} has {shape[longer[0]]} elements")
    return tuple(size for place, size in enumerate(shape) if place not in removed)


def _shape_of_unsqueeze(shape: Shape, values: Sequence[int], _: bool) -> Shape:
    """Return the result's shape of ONNX's Unsqueeze at the axes `values`. Raises ValueError for an axis that occurs
    twice."""
    rank = len(shape) + len(values)
    inserted = _dimensions_of_axes(values, rank)
    if len(inserted) != len(values):
        raise ValueError("an axis that occurs twice")
    sizes = iter(shape)
    return tuple(1 if place in inserted else next(sizes) for place in range(rank))


def _shape_of_expand(shape: Shape, values: Sequence[int], _: bool) -> Shape:
    """Return the result's shape of ONNX's Expand: the operand's shape and `values`, broadcast as by numpy. Raises
    ValueError for shapes that do not broadcast."""
    _require_sizes(values)
    rank = max(len(shape), len(values))
    sizes: list[int] = []
    for have, want in zip(_pad_with_ones(shape, rank), _pad_with_ones(values, rank), strict=True):
        if have != want and 1 not in (have, want):
            raise ValueError(f"{have} elements along a dimension do not become {want}")
        sizes.append(want if have == 1 else have)
    return tuple(sizes)


def _pad_with_ones(sizes: Sequence[int], rank: int) -> list[int]:
    """Return sizes with ones in front, up to a rank."""
    return [*[1] * (rank - len(sizes)), *sizes]


def _shape_of_tile(shape: Shape, values: Sequence[int], _: bool) -> Shape:
    """Return the result's shape of ONNX's Tile with the repeats `values`. Raises ValueError unless there is one for
    each dimension."""
    _require_sizes(values)
    if len(values) != len(shape):
        raise ValueError(f"{plural(len(values), 'repeat')} for {plural(len(shape), 'dimension')}")
    return tuple(size * count for size, count in zip(shape, values, strict=True))


def _shape_of_constant(_: Shape, values: Sequence[int], __: bool) -> Shape:
    """Return the result's shape of ONNX's ConstantOfShape, which is `values`. Raises ValueError for a size below 0."""
    _require_sizes(values)
    return tuple(values)


RESULT_SHAPES: Final[Mapping[str, Callable[[Shape, Sequence[int], bool], Shape]]] = {
    "Reshape": _shape_of_reshape,
    "Squeeze": _shape_of_squeeze,
    "Unsqueeze": _shape_of_unsqueeze,
    "Expand": _shape_of_expand,
    "Tile": _shape_of_tile,
    "ConstantOfShape": _shape_of_constant,
}
"""The shape that each operator gives an operand of some shape by the values of another operand; the last argument of
Reshape is whether a size of 0 keeps that of the operand."""


def _read_operator(value: Any) -> str:
    """Return the name of an operator that has a row in `RESULT_SHAPES`. Raises FieldError for any other value."""
    if text(value) not in RESULT_SHAPES:
        raise FieldError(f"one of {', '.join(RESULT_SHAPES)}")
    return value


def _read_kind(value: Any) -> str:
    """Return the element type of an input that decides a shape. Raises FieldError for any other value."""
    if text(value) not in _KINDS:
        raise FieldError(f"one of {', '.join(_KINDS)}")
    return value


def decides_shapes(dtype: str) -> bool:
    """Return whether an input of an element type may decide a shape: its values are whole numbers of 32 or 64 bits."""
    return dtype in _KINDS


@dataclass(frozen=True, slots=True)
class DecidingInput:
    """An input of the model that a shape depends on: its label, shape and element type."""

    label: str = required_field(text)
    shape: Shape = required_field(list_of(natural))
    dtype: str = required_field(_read_kind)


class Element(NamedTuple):
    """An element of the operand that decides a shape: the number of an input in the rule and a place in that input
    seen flat, or `CONSTANT` and a value."""

    source: int
    value: int


_elements: Final = list_of(list_of(_integer, 2))


def _read_elements(value: Any) -> tuple[Element, ...]:
    """Read a list of pairs of integers as elements. Raises FieldError for anything else."""
    return tuple(Element(*pair) for pair in _elements(value))


@dataclass(frozen=True, slots=True)
class ShapeRule:
    """A shape that inputs decide.

    `operator` gives `result`, a value of the model, the shape `gives` of an operand of `shape` by the values of
    another operand, which are the `elements` of `inputs`. `example` are values that mean `gives`. `keeps_zero`: a size
    of 0 keeps that of the operand."""

    operator: str = required_field(_read_operator)
    result: str = required_field(text)
    shape: Shape = required_field(list_of(natural))
    gives: Shape = required_field(list_of(natural))
    inputs: tuple[DecidingInput, ...] = required_field(list_of(object_of(DecidingInput, closed=True)))
    elements: tuple[Element, ...] = required_field(_read_elements)
    example: Shape = required_field(list_of(_integer))
    keeps_zero: bool = optional_field(flag, False)

    def problems(self, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield (field, problem) for each statement of the rule that contradicts another one, or the `labels` of the
        model's inputs."""
        for entry in self.inputs:
            if entry.label not in labels:
                yield "inputs", f"{entry.label!r} is not one of the model's labels"
        if len(self.example) != len(self.elements):
            yield "example", f"{plural(len(self.example), 'value')} for {plural(len(self.elements), 'element')}"
        for element in self.elements:
            is_input = 0 <= element.source < len(self.inputs)
            if element.source != CONSTANT and not is_input:
                yield "elements", f"there is no input {element.source}"
            elif is_input and not 0 <= element.value < prod(self.inputs[element.source].shape):
                yield "elements", f"input {element.source} has no element {element.value}"

    def shape_by(self, values: Sequence[int]) -> Shape:
        """Return the shape of the result where the deciding operand has these values. Raises ValueError for values that
        mean no shape."""
        return RESULT_SHAPES[self.operator](self.shape, values, self.keeps_zero)

    def check(self, arrays: "Mapping[str, Array]") -> None:
        """Raise HostError where the inputs, by label, mean another shape than the model was compiled for, or none. Does
        nothing if not all inputs of the rule are given."""
        if any(entry.label not in arrays for entry in self.inputs):
            return
        flat = [np.asarray(arrays[entry.label]).reshape(-1) for entry in self.inputs]
        values = [
            element.value if element.source == CONSTANT else int(flat[element.source][element.value])
            for element in self.elements
        ]
        hint = ""
        try:
            shape = self.shape_by(values)
        except ValueError as error:
            meaning = f"no shape ({error})"
        else:
            if shape == self.gives:
                return
            meaning = f"the shape {list(shape)}"
            hint = ": give these values as example inputs to compile it for them"
        names = ", ".join(entry.label for entry in self.inputs)
        one_or_more = "input" if len(self.inputs) == 1 else "inputs"
        raise HostError(
            f"{one_or_more} {names}: {self.operator} by {values} gives {self.result} {meaning}, the model was compiled "
            f"for {list(self.gives)}{hint}"
        )

    def with_labels(self, names: Mapping[str, str]) -> "ShapeRule":
        """Return the rule with its inputs renamed; `names` has a new label for each old one. Raises KeyError for a
        label without one."""
        inputs = tuple(replace(entry, label=names[entry.label]) for entry in self.inputs)
        return replace(self, inputs=inputs)

    def fill(self, label: str, array: "Array") -> "Array":
        """Return a copy of the array of input `label` with the values of `example` at the places that the rule reads,
        so that a generated input means the compiled shapes."""
        filled = array.copy()
        flat = filled.reshape(-1)
        for element, value in zip(self.elements, self.example, strict=True):
            if element.source != CONSTANT and self.inputs[element.source].label == label:
                flat[element.value] = value
        return filled


def deciding_inputs(rules: Sequence[ShapeRule]) -> dict[str, DecidingInput]:
    """Return the inputs that decide shapes by these rules, by label."""
    return {entry.label: entry for entry in chain.from_iterable(rule.inputs for rule in rules)}


def fill_by_rules(rules: Sequence[ShapeRule], label: str, array: "Array") -> "Array":
    """Return a generated array of input `label`, changed so that it means the shapes that the model was compiled for;
    the array itself where no rule reads the input."""
    for rule in rules:
        array = rule.fill(label, array)
    return array
