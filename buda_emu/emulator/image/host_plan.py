"""What the host does around the programs of a model that does not run on the device alone: in `buda_emu_model.host` of
device.json, its graphs and arrays as members of their own below `host/`.

A plan is a list of steps over named values. A step of the device pushes values to the inputs of a program, runs it and
pops its outputs; a step of the host computes an operator: an ONNX graph of one operator, or a front-end op of the
compiler by its name. Nothing here computes one: `COMPUTES` names the module that does.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import prod
from typing import Any, Final, NamedTuple, cast

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import (
    FieldError,
    json_object,
    listed,
    mapped,
    natural,
    needed,
    positive,
    shaped,
    text,
    wanted,
    whole,
)
from buda_emu.spec.precision import STAND_IN

COMPUTES: Final = "buda_emu.compiler.parted"
"""Module with `operator_from_image(form, data)`, which returns the function of a host step. Imported when a plan runs."""
FORMS: Final = ("onnx", "numpy")
FOLDER: Final = "host"
DTYPES: Final = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Element types of the host's tensors, in numpy's words."""
Compute = Callable[["HostStep", Sequence["Array"]], "Sequence[Array]"]
Device = Callable[["DeviceStep", Mapping[str, "Array"]], "Mapping[str, Array]"]


def dtype(value: Any) -> str:
    """The name of an element type. Raises FieldError."""
    if text(value) not in DTYPES:
        raise FieldError(f"one of {', '.join(DTYPES)}")
    return value


def _form(value: Any) -> str:
    if text(value) not in FORMS:
        raise FieldError(f"one of {', '.join(FORMS)}")
    return value


@dataclass(frozen=True, slots=True)
class Given:
    """An input of the model: its label, the value that it is, and what it holds; integers are 0 up to `below`."""

    label: str = needed(text)
    value: str = needed(text)
    shape: tuple[int, ...] = needed(listed(positive))
    dtype: str = needed(dtype)
    below: int = wanted(positive, 2)


@dataclass(frozen=True, slots=True)
class Gives:
    """An output of the model: the value that it is."""

    label: str = needed(text)
    value: str = needed(text)
    dtype: str = needed(dtype)


@dataclass(frozen=True, slots=True)
class Result:
    """Number `place` of what a host step computes becomes a value."""

    value: str = needed(text)
    shape: tuple[int, ...] = needed(listed(positive))
    dtype: str = needed(dtype)
    place: int = wanted(natural, 0)


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """A program. `inputs`: by the label of an input of it, the value that goes there; `outputs` the same."""

    program: str = needed(text)
    inputs: Mapping[str, str] = needed(mapped(text))
    outputs: Mapping[str, str] = needed(mapped(text))


@dataclass(frozen=True, slots=True)
class HostStep:
    """An operator, `kind` by its name in the model, in a `form`; `file` below `host/` has it, `why` it is here."""

    kind: str = needed(text)
    form: str = needed(_form)
    file: str = needed(text)
    operands: tuple[str, ...] = needed(listed(text))
    results: tuple[Result, ...] = needed(listed(shaped(Result, closed=True)))
    why: str = wanted(text, "")

    @property
    def title(self) -> str:
        """What messages and tables call it."""
        return f"{', '.join(item.value for item in self.results)} = {self.kind}"


def _step(value: Any) -> DeviceStep | HostStep:
    kind = DeviceStep if "program" in json_object(value) else HostStep
    return shaped(kind, closed=True)(value)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """`constants`: by value, the file below `host/` that has it as .npy."""

    given: tuple[Given, ...] = needed(listed(shaped(Given, closed=True)))
    gives: tuple[Gives, ...] = needed(listed(shaped(Gives, closed=True)))
    constants: Mapping[str, str] = needed(mapped(text))
    steps: tuple[DeviceStep | HostStep, ...] = needed(listed(_step))

    @property
    def on_host(self) -> tuple[HostStep, ...]:
        """What the host computes."""
        return tuple(step for step in self.steps if isinstance(step, HostStep))

    @property
    def programs(self) -> tuple[DeviceStep, ...]:
        """What the device does."""
        return tuple(step for step in self.steps if isinstance(step, DeviceStep))

    def as_json(self) -> dict[str, Any]:
        """For device.json."""
        return _plain(self)

    def problems(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Values that nothing before gives, or that are given twice, each with its place."""
        known = [*self.constants, *(item.value for item in self.given)]
        for place, step in enumerate(self.steps):
            device = isinstance(step, DeviceStep)
            read = step.inputs.values() if device else step.operands
            for name in read:
                if name not in known:
                    yield ("steps", place), f"nothing before gives value {name!r}"
            made = list(step.outputs.values()) if device else [item.value for item in step.results]
            for name in made:
                if name in known:
                    yield ("steps", place), f"value {name!r} is given twice"
            known += made
        for place, item in enumerate(self.gives):
            if item.value not in known:
                yield ("gives", place, "value"), f"nothing gives value {item.value!r}"


def _plain(value: Any) -> Any:
    """Any part of a plan as JSON."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, str]", value))
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value)} if is_dataclass(value) else value


def follow(plan: HostPlan, values: "Mapping[str, Array]", device: Device, compute: Compute) -> "dict[str, Array]":
    """The model's outputs by label. `values`: those of the model's inputs and of `constants`; `device` runs a program
    on inputs by label and gives its outputs by label, `compute` does the host's steps. Raises what these raise."""
    values = dict(values)
    own = {item.value for item in plan.given}
    for step in plan.steps:
        if isinstance(step, HostStep):
            found = compute(step, [np.asarray(values[name]) for name in step.operands])
            values |= {item.value: array for item, array in zip(step.results, found, strict=True)}
            continue
        given = {label: values[name] if name in own else _finite(values[name]) for label, name in step.inputs.items()}
        found = device(step, given)
        values |= {name: found[label] for label, name in step.outputs.items()}
    return {item.label: values[item.value].astype(item.dtype) for item in plan.gives}


def _finite(value: "Array") -> "Array":
    """What goes on to the device, with infinities as it has them."""
    if value.dtype.kind != "f" or not np.isinf(value).any():
        return value
    return np.where(np.isinf(value), np.copysign(np.float32(STAND_IN), value), value)


Sizes = tuple[int, ...]
_MOST: Final = (1 << 31) - 1


class Windows(NamedTuple):
    """Of an input whose dimensions in the order `perm` are [N, C, space...]: for each dimension of space the `sizes` of
    the window, its `strides`, where the first one begins (`starts`, negative outside) and how many there are
    (`counts`)."""

    perm: Sizes
    sizes: Sizes
    strides: Sizes
    starts: Sizes
    counts: Sizes

    def shape(self, given: Sizes) -> Sizes:
        """Of the result: [N, places..., what a window sees]."""
        batch, channels = (given[place] for place in self.perm[:2])
        return (batch, *self.counts, prod(self.sizes) * channels)

    def most(self, given: Sizes) -> int:
        """Elements of the largest array on the way to the result."""
        sizes = [given[place] for place in self.perm]
        found = [prod(sizes)]
        for size, count, have in zip(self.sizes, self.counts, sizes[2:], strict=True):
            found.append(found[-1] // have * size * count)
        return max(found)

    def apply(self, array: "Array") -> "Array":
        """`[N, places..., places in the window, then channels]`; zeros outside of the input."""
        rank = len(self.sizes)
        array = array.transpose(self.perm)
        for place, (size, stride, start, count) in enumerate(zip(*self[1:], strict=True)):
            axis = 2 + 2 * place
            index = start + np.arange(count)[:, None] * stride + np.arange(size)[None, :]
            inside = (index >= 0) & (index < array.shape[axis])
            found = np.take(array, np.where(inside, index, 0), axis)
            form = [1] * found.ndim
            form[axis], form[axis + 1] = index.shape
            array = np.where(inside.reshape(form), found, np.zeros((), array.dtype))
        places = range(2, 2 + 2 * rank, 2)
        seen = range(3, 3 + 2 * rank, 2)
        array = array.transpose(0, *places, *seen, 1)
        return array.reshape(array.shape[0], *self.counts, -1)


_lists: Final = listed(listed(whole(-_MOST, _MOST)), len(Windows._fields))


def windows(value: Any) -> Windows:
    """From five lists of integers. Raises FieldError for anything else."""
    found = Windows(*_lists(value))
    rank = len(found.sizes)
    if sorted(found.perm) != list(range(rank + 2)):
        raise FieldError(f"an order of {rank + 2} dimensions").below(0, list(found.perm))
    for place, (name, numbers) in enumerate(found._asdict().items()):
        if place and len(numbers) != rank:
            raise FieldError(f"{name} of {rank} dimensions of space").below(place, list(numbers))
        if name in ("sizes", "strides", "counts") and min(numbers, default=1) < 1:
            raise FieldError(f"{name} of 1 and more").below(place, list(numbers))
    return found
