"""The plan of the host around the programs of a model that does not run on the device alone. It stands in
`buda_emu_model.host` of device.json; its graphs and arrays are members of their own below `host/`.

A plan is a list of steps over named values. A step of the device pushes values to the inputs of a program, runs it and
pops its outputs; a step of the host computes an operator: an ONNX graph of one operator, or a front-end op of the
compiler by its name. Nothing here computes one: `COMPUTES` names the module that does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import prod
from typing import Any, Final, NamedTuple, cast

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import (
    FieldError,
    integer_between,
    json_object,
    list_of,
    map_of,
    natural,
    object_of,
    optional_field,
    positive,
    required_field,
    text,
)
from buda_emu.emulator.image.shape_rules import ShapeRule

COMPUTES: Final = "buda_emu.compiler.parted"
"""The module whose `operator_from_image(form, data)` returns a function of a host step's operands, imported when a plan
is executed."""
FORMS: Final = ("onnx", "numpy")
FOLDER: Final = "host"
SOURCE: Final = "source"
"""The folder of the model that an image was compiled from."""
DTYPES: Final = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Element types of the host's tensors, by their names in numpy."""
Compute = Callable[["HostStep", Sequence["Array"]], "Sequence[Array]"]
Device = Callable[["DeviceStep", Mapping[str, "Array"]], "Mapping[str, Array]"]


def dtype(value: Any) -> str:
    """Return the name of an element type of the host's tensors unchanged. Raises FieldError for any other value."""
    if text(value) not in DTYPES:
        raise FieldError(f"one of {', '.join(DTYPES)}")
    return value


def _read_form(value: Any) -> str:
    """Return the name of the form in which a host step's operator is written, "onnx" or "numpy". Raises FieldError for
    any other value."""
    if text(value) not in FORMS:
        raise FieldError(f"one of {', '.join(FORMS)}")
    return value


@dataclass(frozen=True, slots=True)
class PlanInput:
    """An input of the model: its label, the name of its value, shape and element type; integers are at least 0 and less
    than `below`."""

    label: str = required_field(text)
    value: str = required_field(text)
    shape: tuple[int, ...] = required_field(list_of(positive))
    dtype: str = required_field(dtype)
    below: int = optional_field(positive, 2)


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """An output of the model: its label, the name of its value, and its element type."""

    label: str = required_field(text)
    value: str = required_field(text)
    dtype: str = required_field(dtype)


@dataclass(frozen=True, slots=True)
class Result:
    """A value that a host step computes; `place` is its number among the results of the operator."""

    value: str = required_field(text)
    shape: tuple[int, ...] = required_field(list_of(positive))
    dtype: str = required_field(dtype)
    place: int = optional_field(natural, 0)


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """A step that runs a program. `inputs` maps labels of the program's inputs to names of values, `outputs` maps
    labels of its outputs."""

    program: str = required_field(text)
    inputs: Mapping[str, str] = required_field(map_of(text))
    outputs: Mapping[str, str] = required_field(map_of(text))


@dataclass(frozen=True, slots=True)
class HostStep:
    """A step that computes one operator on the host. `kind` is its name in the model, `file` its definition below
    `host/` in a `form`, and `why` the reason that it is not on the device."""

    kind: str = required_field(text)
    form: str = required_field(_read_form)
    file: str = required_field(text)
    operands: tuple[str, ...] = required_field(list_of(text))
    results: tuple[Result, ...] = required_field(list_of(object_of(Result, closed=True)))
    why: str = optional_field(text, "")

    @property
    def title(self) -> str:
        """The step's text in messages and tables."""
        return f"{', '.join(result.value for result in self.results)} = {self.kind}"


def _read_step(value: Any) -> DeviceStep | HostStep:
    """Read a step of the plan: of the device where it has a key "program", else of the host. Raises FieldError."""
    if "program" in json_object(value):
        kind = DeviceStep
    else:
        kind = HostStep
    return object_of(kind, closed=True)(value)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The steps of a model that runs partly on the host. `given` and `gives` are the inputs and outputs of the model;
    `constants` maps names of values to .npy files below `host/`; `rules` are the shapes that inputs decide."""

    given: tuple[PlanInput, ...] = required_field(list_of(object_of(PlanInput, closed=True)))
    gives: tuple[PlanOutput, ...] = required_field(list_of(object_of(PlanOutput, closed=True)))
    constants: Mapping[str, str] = required_field(map_of(text))
    steps: tuple[DeviceStep | HostStep, ...] = required_field(list_of(_read_step))
    rules: tuple[ShapeRule, ...] = optional_field(list_of(object_of(ShapeRule, closed=True)), ())

    @property
    def on_host(self) -> tuple[HostStep, ...]:
        """The steps that the host computes, in order."""
        return tuple(step for step in self.steps if isinstance(step, HostStep))

    @property
    def programs(self) -> tuple[DeviceStep, ...]:
        """The steps that the device runs, in order."""
        return tuple(step for step in self.steps if isinstance(step, DeviceStep))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON for device.json."""
        plan = _as_json_value(self)
        return plan if self.rules else {name: entry for name, entry in plan.items() if name != "rules"}

    def problems(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Yield (place, problem) for each value that is read before a step computes it or is computed twice, and for
        rules that do not fit the inputs."""
        names = [*self.constants, *(plan_input.value for plan_input in self.given)]
        for place, step in enumerate(self.steps):
            operands, results = _values_of_step(step)
            for problem in _order_problems(names, operands, results):
                yield ("steps", place), problem
            names += results
        for place, output in enumerate(self.gives):
            if output.value not in names:
                yield ("gives", place, "value"), f"nothing gives value {output.value!r}"
        labels = [plan_input.label for plan_input in self.given]
        for place, rule in enumerate(self.rules):
            for name, problem in rule.problems(labels):
                yield ("rules", place, name), problem


def _order_problems(names: Sequence[str], operands: Sequence[str], results: Sequence[str]) -> Iterator[str]:
    """Yield a problem for each operand of a step that is not yet among the values `names`, and for each result that
    already is."""
    for name in operands:
        if name not in names:
            yield f"nothing before gives value {name!r}"
    for name in results:
        if name in names:
            yield f"value {name!r} is given twice"


def _values_of_step(step: DeviceStep | HostStep) -> tuple[list[str], list[str]]:
    """Return the names of the values that a step reads, and of those that it computes."""
    if isinstance(step, DeviceStep):
        return list(step.inputs.values()), list(step.outputs.values())
    return list(step.operands), [result.value for result in step.results]


def _as_json_value(value: Any) -> Any:
    """Return any part of a plan as plain data for JSON."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, str]", value))
    if isinstance(value, tuple):
        return [_as_json_value(entry) for entry in cast("tuple[Any, ...]", value)]
    if is_dataclass(value):
        return {entry.name: _as_json_value(getattr(value, entry.name)) for entry in fields(value)}
    return value


def follow(plan: HostPlan, values: "Mapping[str, Array]", device: Device, compute: Compute) -> "dict[str, Array]":
    """Execute a plan and return the model's outputs by label. `values` holds, by their names in the plan, the model's
    inputs and the plan's constants. `device` runs the program of a step on inputs by label and returns its outputs by
    label; `compute` computes a step of the host. Raises what these raise, and HostError for inputs whose values mean
    other shapes than the model was compiled for."""
    values = dict(values)
    arrays = {plan_input.label: values[plan_input.value] for plan_input in plan.given}
    for rule in plan.rules:
        rule.check(arrays)
    for step in plan.steps:
        if isinstance(step, HostStep):
            arrays = compute(step, [np.asarray(values[name]) for name in step.operands])
            values |= {result.value: array for result, array in zip(step.results, arrays, strict=True)}
            continue
        outputs = device(step, {label: values[name] for label, name in step.inputs.items()})
        values |= {name: outputs[label] for label, name in step.outputs.items()}
    return {output.label: values[output.value].astype(output.dtype) for output in plan.gives}


Sizes = tuple[int, ...]
_MOST: Final = (1 << 31) - 1  # the limits of 32 bits, far beyond any window


class Windows(NamedTuple):
    """The layout of sliding windows over an input whose dimensions, in the order `perm`, are [N, C, space...]. For each
    dimension of space there are the `sizes` of the window, its `strides`, where the first one begins (`starts`,
    negative outside) and how many there are (`counts`)."""

    perm: Sizes
    sizes: Sizes
    strides: Sizes
    starts: Sizes
    counts: Sizes

    def shape(self, shape: Sizes) -> Sizes:
        """Return the shape [N, counts..., elements of one window] of the windows of an input of this shape."""
        batch, channels = (shape[place] for place in self.perm[:2])
        return (batch, *self.counts, prod(self.sizes) * channels)

    def most(self, shape: Sizes) -> int:
        """Return the number of elements of the largest array that `apply` makes for an input of this shape."""
        sizes = [shape[place] for place in self.perm]
        elements = [prod(sizes)]
        for size, count, extent in zip(self.sizes, self.counts, sizes[2:], strict=True):
            elements.append(elements[-1] // extent * size * count)
        return max(elements)

    def apply(self, array: "Array") -> "Array":
        """Return the windows of an array as [N, counts..., elements of one window]: the elements of a window by place,
        then by channel, with zeros outside of the array."""
        rank = len(self.sizes)
        array = array.transpose(self.perm)
        for place, (size, stride, start, count) in enumerate(zip(*self[1:], strict=True)):
            axis = 2 + 2 * place
            index = start + np.arange(count)[:, None] * stride + np.arange(size)[None, :]
            inside = (index >= 0) & (index < array.shape[axis])
            samples = np.take(array, np.where(inside, index, 0), axis)
            mask_shape = [1] * samples.ndim
            mask_shape[axis], mask_shape[axis + 1] = index.shape
            array = np.where(inside.reshape(mask_shape), samples, np.zeros((), array.dtype))
        places = range(2, 2 + 2 * rank, 2)
        seen = range(3, 3 + 2 * rank, 2)
        array = array.transpose(0, *places, *seen, 1)
        return array.reshape(array.shape[0], *self.counts, -1)


_lists: Final = list_of(list_of(integer_between(-_MOST, _MOST)), len(Windows._fields))


def read_windows(value: Any) -> Windows:
    """Read a windows record from a list of five lists of integers: order of dimensions, sizes, strides, starts, counts.
    Raises FieldError for anything else."""
    layout = Windows(*_lists(value))
    rank = len(layout.sizes)
    if sorted(layout.perm) != list(range(rank + 2)):
        raise FieldError(f"an order of {rank + 2} dimensions").below(0, list(layout.perm))
    for place, (name, numbers) in enumerate(layout._asdict().items()):
        if place and len(numbers) != rank:
            raise FieldError(f"{name} of {rank} dimensions of space").below(place, list(numbers))
        if name in ("sizes", "strides", "counts") and min(numbers, default=1) < 1:
            raise FieldError(f"{name} of 1 and more").below(place, list(numbers))
    return layout
