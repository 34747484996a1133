"""The model's own inputs and outputs of a compiled netlist: their shapes on the host, and their layout in queues.

An image of `buda-emu compile` has them under `buda_emu_model` in device.json; the vendor's transforms do not have the
model's names."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.element_places import ElementPlaces, read_element_places
from buda_emu.emulator.image.fields import (
    FieldError,
    flag,
    integer_between,
    list_of,
    natural,
    object_of,
    optional,
    optional_field,
    optional_map_field,
    positive,
    read_value,
    required_field,
    text,
)
from buda_emu.emulator.image.host_plan import HostPlan, Windows, dtype, read_windows
from buda_emu.emulator.image.index_range import NO_INDEX, IndexRange
from buda_emu.emulator.image.model_programs import ModelProgram, ModelState
from buda_emu.emulator.image.rules import Place
from buda_emu.emulator.image.shape_rules import DecidingInput, ShapeRule, deciding_inputs
from buda_emu.spec.precision import INFINITE, LARGEST, STAND_IN
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

KEY: Final = "buda_emu_model"


def _read_version(value: Any) -> int:
    """Return the schema version, which is 1. Raises FieldError for any other value."""
    if type(value) is not int or value != 1:
        raise FieldError("the schema_version that is known, which is 1")
    return value


def _read_share(value: Any) -> float:
    """Return a number from 0 to 1. Raises FieldError for any other value."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise FieldError("a number from 0 to 1")
    return float(value)


_extent: Final = list_of(positive, 3)


def replace_infinities(values: "Array", largest: float = LARGEST) -> "Array":
    """Return floats limited to `largest`, and infinities as the finite numbers that stand for them on the device: a
    move of elements is a product there, and 0 times an infinity would be NaN. NaN stays."""
    if not values.size or (values.min() >= -largest and values.max() <= largest):
        return values
    infinite = np.isinf(values)
    clipped = np.clip(values, -largest, largest)
    return np.where(infinite, np.copysign(np.float32(min(STAND_IN, largest)), values), clipped)


def _refuse_names(named: Iterable[str], labels: Sequence[str], by_position: Container[str], takes: str) -> None:
    """Raise HostError for a name in `named` that is none of the `labels`, or is that of an input given by position,
    too. `takes` says in words what the model takes."""
    for name in named:
        if name not in labels:
            hint = near(name, (*labels, "precision"))
            raise HostError(f"no input is called {name!r}{f'; {hint}' if hint else ''}; {takes}")
        if name in by_position:
            raise HostError(f"input {name}: given by position and by name")


def inputs_by_label(
    labels: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any], taker: str = "the model"
) -> dict[str, Any]:
    """Return inputs by the labels of a model, in its order, from those given by position and those given by name.
    Raises HostError if one is missing, given twice or unknown; `taker` names the model there."""
    takes = f"{taker} takes {len(labels)}: {', '.join(labels)}"
    if not named and len(inputs) != len(labels):
        raise HostError(f"{plural(len(inputs), 'input')}, {takes}")
    if len(inputs) > len(labels):
        raise HostError(f"{plural(len(inputs), 'input')} by position, {takes}")
    by_label = dict(zip(labels, inputs, strict=False))
    _refuse_names(named, labels, by_label, takes)
    by_label |= named
    missing = [label for label in labels if label not in by_label]
    if missing:
        raise HostError(f"no input {', '.join(missing)}; {takes}")
    return {label: by_label[label] for label in labels}


def check_input(array: Any, label: str, shape: tuple[int, ...], dtype: str) -> "Array":
    """Return an input of the model as a numpy array, of its own element type. Raises HostError for another shape than
    the model's, elements that are no numbers, and for a model of logical values or integers numbers that its type does
    not have."""
    refuse_masked_arrays(array, f"input {label}")
    tensor = np.asarray(array)
    if tensor.shape != shape:
        raise HostError(f"input {label}: shape {list(tensor.shape)}, the model takes {list(shape)}")
    kind = np.dtype(dtype)
    if tensor.dtype == kind:
        return tensor
    if not _holds_real_numbers(tensor.dtype):
        raise HostError(f"input {label}: elements of type {tensor.dtype}, the model takes {dtype}")
    if kind.kind == "f" or not tensor.size:
        return tensor
    unfit = tensor[~_are_values_of(tensor, kind)]
    if unfit.size:
        if kind.kind == "b":
            hint = " as True and False, or 1 and 0: compare with 0 (array != 0) if every other number is true"
        else:
            hint = ", whole numbers within its range"
        raise HostError(f"input {label}: an element {unfit.flat[0]}, the model takes {dtype}{hint}")
    return tensor


def _holds_real_numbers(kind: "np.dtype[Any]") -> bool:
    """Return whether an element type has real numbers or logical values as elements, also one that a package such as
    ml_dtypes defines."""
    if kind.kind == "V":
        return kind.names is None and kind.type is not np.void
    return kind.kind in "biuf"


def _are_values_of(tensor: "Array", kind: "np.dtype[Any]") -> "Array":
    """Return for each element whether it is a value of `kind`, a logical type (0 or 1) or an integer type (whole,
    within its range)."""
    if kind.kind == "b":
        return (tensor == 0) | (tensor == 1)
    bounds = np.iinfo(kind)
    if tensor.dtype.kind in "biu":
        return (tensor >= bounds.min) & (tensor <= bounds.max)
    numbers = tensor.astype(np.float64)
    return (np.rint(numbers) == numbers) & (numbers >= bounds.min) & (numbers <= bounds.max)


def inexact_integers(array: "Array") -> "Array":
    """Return those elements of an array of whole numbers that float32 cannot represent exactly, as a flat array; empty
    if it can all."""
    if not array.size or np.abs(array.astype(np.float64)).max() <= _ALL_EXACT:
        return array.reshape(-1)[:0]
    floats = array.astype(np.float32)
    has_place = (floats >= -(2.0**63)) & (floats < 2.0**63)
    return array[~has_place | (np.where(has_place, floats, 0).astype(np.int64) != array)]


_ALL_EXACT: Final = 1 << 24
"""The greatest magnitude up to which float32 has every integer."""


def check_rules(rules: Sequence[ShapeRule], arrays: Mapping[str, Any]) -> None:
    """Raise HostError for inputs, by label, whose values mean other shapes than the model was compiled for, and where
    `check_input` refuses an input that decides a shape. Inputs that are not given are not checked."""
    for label, entry in deciding_inputs(rules).items():
        if label in arrays:
            check_input(arrays[label], label, entry.shape, entry.dtype)
    for rule in rules:
        rule.check(arrays)


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A queue that one input of the model goes to.

    `extent` is [t, rows, columns] of the queue in elements, `view` the leading part of it that is filled. `windows` are
    laid side by side first; `gather` then picks elements of the flat input (empty: all). Integers are 0 up to `below`.
    Where `indices`, the entry holds words that index a table of `rows` rows (0 where the image does not say); negative
    ones count from its end if `from_end`, and index `zero` reads a row of zeros. `ranges`: the indices that the input
    holds for the device to compute with, such as labels; the host checks them."""

    queue: str = required_field(text)
    label: str = required_field(text)
    shape: tuple[int, ...] = required_field(list_of(positive))
    dtype: str = required_field(dtype)
    view: tuple[int, int, int] = required_field(_extent)
    extent: tuple[int, int, int] = required_field(_extent)
    indices: bool = optional_field(flag, False)
    gather: tuple[int, ...] = optional_field(list_of(natural), ())
    below: int = optional_field(positive, 2)
    windows: Windows | None = optional_field(optional(read_windows))
    rows: int = optional_field(natural, 0)
    from_end: bool = optional_field(flag, False)
    zero: int | None = optional_field(optional(integer_between(-(1 << 63), (1 << 63) - 1)))
    ranges: tuple[IndexRange, ...] = optional_field(list_of(object_of(IndexRange, closed=True)), ())

    @property
    def elements(self) -> int:
        """The number of elements that go to the queue, with windows laid out and `gather` applied."""
        return len(self.gather) or self.laid_out

    @property
    def laid_out(self) -> int:
        """The number of elements of the model's tensor with windows side by side, of which `gather` picks some."""
        return prod(self.windows.shape(self.shape) if self.windows else self.shape)

    @property
    def host_bytes(self) -> int:
        """Bytes that generating an input and laying it out takes: three copies at once of at most 8 bytes an
        element."""
        return 24 * (self.windows.most(self.shape) if self.windows else prod(self.shape))

    def entries(self, array: Any) -> "Array | None":
        """Return the queue's entries for the model's tensor, or for several tensors with a dimension for them in front;
        None for an array of another shape. Raises HostError as `to_queue`."""
        refuse_masked_arrays(array, f"input {self.label}")
        tensor = np.asarray(array)
        if tensor.shape == self.shape:
            return self.to_queue(tensor)
        if tensor.shape[1:] != self.shape or not tensor.ndim or not len(tensor):
            return None
        return np.concatenate([self.to_queue(sample) for sample in tensor])

    def made_up(self, stream: "np.random.Generator") -> "Array":
        """Return a random input of the model, drawn from `stream`: normal numbers for floats, else integers below the
        bound that the model states."""
        return made_up(stream, self.shape, self.dtype, self.below)

    def to_queue(self, array: Any) -> "Array":
        """Return the queue's entry [1, t, rows, columns] for the model's tensor: float32, or uint32 words where it
        holds indices. Raises HostError as `check_input`, for an index of no row, and for an integer that float32 does
        not have."""
        tensor = check_input(array, self.label, self.shape, self.dtype)
        for index_range in self.ranges:
            index_range.check(tensor, self.label)
        flat = (self.windows.apply(tensor) if self.windows else tensor).reshape(-1)
        if self.gather:
            flat = flat[list(self.gather)]
        if self.indices:
            words = np.full(prod(self.extent), NO_INDEX, np.uint32)
            words[: flat.size] = self._index_words(flat)
            return words.reshape(1, *self.extent)  # raw words stay in order (OPS 6.10)
        unfit = inexact_integers(flat) if np.dtype(self.dtype).kind in "iu" else flat[:0]
        if unfit.size:
            raise HostError(
                f"input {self.label}: the integer {unfit[0]} is not exact in float32, in which the device has integers"
            )
        entry = np.zeros((1, *self.extent), np.float32)
        with np.errstate(over="ignore"):  # what float32 has no number for is infinite
            numbers = replace_infinities(flat.astype(np.float32))
        entry[0, : self.view[0], : self.view[1], : self.view[2]] = numbers.reshape(self.view)
        return entry

    def _index_words(self, flat: "Array") -> "Array":
        """Return indices as words that count from the first row of the table; NO_INDEX for one that stands for no row.
        Raises HostError for an index out of range."""
        indices = flat.astype(np.int64)
        rows = IndexRange(self.rows, self.from_end, self.zero)
        rows.check(indices, self.label)
        words = np.where(indices < 0, indices + self.rows, indices)
        return np.where(rows.reads_zeros(indices), NO_INDEX, words).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """A queue that holds an output of the model in its leading `view` [t, rows, columns]. Where the columns lie in
    several `slices` along t, the view is that of the slices side by side."""

    queue: str = required_field(text)
    label: str = required_field(text)
    shape: tuple[int, ...] = required_field(list_of(positive))
    dtype: str = required_field(dtype)
    view: tuple[int, int, int] = required_field(_extent)
    slices: int = optional_field(positive, 1)

    def side_by_side(self, extent: tuple[int, ...]) -> tuple[int, int, int]:
        """Return [t, rows, columns] of an entry of that extent with its slices side by side."""
        t, rows, columns = extent
        return t // self.slices, rows, columns * self.slices

    def _join_slices(self, array: "Array") -> "Array":
        """Return entries [n, t, rows, columns] with their slices side by side."""
        entries, t, rows, columns = array.shape
        parts = array.reshape(entries, t // self.slices, self.slices, rows, columns).transpose(0, 1, 3, 2, 4)
        return parts.reshape(entries, *self.side_by_side((t, rows, columns)))

    def _split_slices(self, array: "Array", extent: tuple[int, ...]) -> "Array":
        """Return entries [n, *extent] from entries whose slices lie side by side; the inverse of `_join_slices`."""
        t, rows, columns = extent
        parts = array.reshape(len(array), t // self.slices, rows, self.slices, columns).transpose(0, 1, 3, 2, 4)
        return parts.reshape(len(array), *extent)

    def from_queue(self, array: "Array") -> "Array":
        """Return the model's tensor from one entry [1, t, rows, columns] of its queue; from several entries, with a
        dimension for them in front. Numbers that stand for infinities become infinite; integers are rounded."""
        t, rows, columns = self.view
        tensor = self._join_slices(array)[:, :t, :rows, :columns].reshape(-1, *self.shape)
        tensor = tensor[0] if len(array) == 1 else tensor
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            tensor = np.where(np.abs(tensor) >= np.float32(INFINITE), np.copysign(np.float32(np.inf), tensor), tensor)
            return tensor.astype(kind)
        rounded = np.rint(np.nan_to_num(tensor))
        if kind.kind == "b":
            return rounded != 0
        return rounded.astype(kind)

    def alone(self, array: "Array") -> "Array":
        """Return entries [n, t, rows, columns] with zeros in place of everything that is not part of the model's
        tensor, so that padding can be compared."""
        joined = self._join_slices(array)
        masked = np.zeros_like(joined)
        t, rows, columns = self.view
        masked[:, :t, :rows, :columns] = joined[:, :t, :rows, :columns]
        return self._split_slices(masked, array.shape[1:])

    def in_queue(self, array: "Array", extent: tuple[int, ...]) -> "Array | None":
        """Return the entries of the queue, of shape [n, *extent], that hold the model's tensor, or several with a
        dimension for them in front: the inverse of `from_queue`. None for an array of another shape."""
        if array.shape not in (self.shape, (len(array), *self.shape) if array.ndim else ()):
            return None
        entries = np.zeros((array.size // max(1, prod(self.shape)), *self.side_by_side(extent)), np.float32)
        t, rows, columns = self.view
        entries[:, :t, :rows, :columns] = array.reshape(-1, *self.view)
        return self._split_slices(entries, extent)


def made_up(stream: "np.random.Generator", shape: tuple[int, ...], dtype: str, below: int) -> "Array":
    """Draw a tensor: normal numbers for floats, else integers from 0 up to `below`."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        numbers = stream.standard_normal(shape)
    else:
        numbers = stream.integers(0, below, shape)
    return numbers.astype(kind)


def _as_json_value(tensor_io: Any) -> Any:
    """Return a label, input or output as JSON."""
    if isinstance(tensor_io, str):
        return tensor_io
    record = asdict(tensor_io)
    if not record.get("ranges", True):
        del record["ranges"]
    return record


@dataclass(frozen=True)
class ModelIo:
    """The inputs and outputs of a model. `labels` are the names of its inputs in its order, those that no queue takes
    included. `chip`: the chip of these queues, where several chips have a copy of the model. `host`: the host's plan
    between programs; then `inputs` and `outputs` are those of all programs, and their labels the plan's.
    `elements`: where the elements of the model lie in the results of ops, by op, for results that have padding and
    whose layout is known; `padding`: only the share that are none, in an image that an older version wrote. `programs`
    and `states`: the programs and caches of a model that keeps caches. `rules`: the shapes that inputs decide."""

    labels: tuple[str, ...] = required_field(list_of(text))
    inputs: tuple[ModelInput, ...] = required_field(list_of(object_of(ModelInput, closed=True)))
    outputs: tuple[ModelOutput, ...] = required_field(list_of(object_of(ModelOutput, closed=True)))
    chip: int | None = optional_field(optional(natural))
    host: HostPlan | None = optional_field(optional(object_of(HostPlan, closed=True)))
    elements: Mapping[str, ElementPlaces] = optional_map_field(read_element_places)
    padding: Mapping[str, float] = optional_map_field(_read_share)
    programs: tuple[ModelProgram, ...] = optional_field(list_of(object_of(ModelProgram, closed=True)), ())
    states: tuple[ModelState, ...] = optional_field(list_of(object_of(ModelState, closed=True)), ())
    rules: tuple[ShapeRule, ...] = optional_field(list_of(object_of(ShapeRule, closed=True)), ())
    schema_version: int = required_field(_read_version, default=1)

    @cached_property
    def input_of(self) -> Mapping[str, ModelInput]:
        """Inputs by the name of their queue."""
        return {model_input.queue: model_input for model_input in self.inputs}

    @cached_property
    def by_queue(self) -> Mapping[str, ModelOutput]:
        """Outputs by the name of their queue."""
        return {model_output.queue: model_output for model_output in self.outputs}

    @property
    def padding_shares(self) -> Mapping[str, float]:
        """The share of the numbers of ops' results that are no elements of the model, by op, as far as it is known."""
        return self.padding or {op: places.padding_share for op, places in self.elements.items()}

    def elements_of(self, op: str) -> "Array | None":
        """Return a mask [tiles, 1024] of the numbers in an op's result that are elements of the model. None where all
        are, and where their places are not known."""
        places = self.elements.get(op)
        if places is None:
            return None
        return places.mask

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON for device.json."""
        parts = {"labels": self.labels, "inputs": self.inputs, "outputs": self.outputs}
        chip = {} if self.chip is None else {"chip": self.chip}
        if self.host is None:
            host = {}
        else:
            host = {"host": self.host.as_json()}
        caches = {"programs": self.programs, "states": self.states} if self.programs else {}
        lists = {key: [_as_json_value(entry) for entry in value] for key, value in (*parts.items(), *caches.items())}
        places = {op: places.as_json() for op, places in self.elements.items()}
        elements = {"elements": places} if places else {}
        padding = {"padding": dict(self.padding)} if self.padding else {}
        rules = {"rules": [_as_json_value(rule) for rule in self.rules]} if self.rules else {}
        return {"schema_version": 1, **lists, **chip, **host, **elements, **padding, **rules}

    def of_copies(self, chips: Sequence[int]) -> "ModelIo":
        """Return the inputs and outputs of the copy on the first of the chips (NETLIST 1.7), and the places of elements
        in the results of the ops of all copies."""
        chip = chips[0]
        elements: dict[str, ElementPlaces] = {}
        for op, places in self.elements.items():
            elements |= {f"{op}.{number}": places for number in chips}
        return replace(
            self,
            inputs=tuple(replace(tensor_io, queue=f"{tensor_io.queue}.{chip}") for tensor_io in self.inputs),
            outputs=tuple(replace(tensor_io, queue=f"{tensor_io.queue}.{chip}") for tensor_io in self.outputs),
            states=tuple(replace(state, queue=f"{state.queue}.{chip}") for state in self.states),
            elements=elements,
            chip=chip,
        )

    @staticmethod
    def from_json(source: Any, place: Place) -> "ModelIo":
        """Read the record from device.json. Raises ImageError for a value that is none."""
        return read_value(object_of(ModelIo, closed=True), source, place)

    def queues(self, arrays: Mapping[str, Any]) -> "dict[str, Array]":
        """Return the entries to push, by queue, for the model's inputs by label. Raises HostError for missing and
        unknown labels, as `check_input`, and for inputs whose values mean other shapes than the model was compiled
        for."""
        missing = [
            label for label in dict.fromkeys(model_input.label for model_input in self.inputs) if label not in arrays
        ]
        unknown = [label for label in arrays if label not in self.labels]
        if missing or unknown:
            problems = [f"no {', '.join(missing)}"] if missing else []
            problems += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise HostError(f"inputs: {'; '.join(problems)}; the model takes {', '.join(self.labels)}")
        check_rules(self.rules, arrays)
        return {model_input.queue: model_input.to_queue(arrays[model_input.label]) for model_input in self.inputs}

    def of_labels(self, labels: Sequence[str]) -> tuple[ShapeRule, ...]:
        """Return those of the model's shape rules that are about these inputs alone."""
        return tuple(rule for rule in self.rules if all(entry.label in labels for entry in rule.inputs))

    @property
    def descriptions(self) -> Mapping[str, ModelInput | DecidingInput]:
        """Shape and element type of each input that a queue takes or that decides a shape, by label."""
        return deciding_inputs(self.rules) | {model_input.label: model_input for model_input in self.inputs}
