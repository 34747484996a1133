"""The model's own inputs and outputs of a compiled netlist: what the host holds, and what its queues hold.

An image of `buda-emu compile` says it under `buda_emu_model` in device.json; the vendor's transforms know no names.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import (
    FieldError,
    flag,
    listed,
    natural,
    needed,
    optional,
    positive,
    read_value,
    shaped,
    text,
    wanted,
    whole,
)
from buda_emu.emulator.image.host_plan import HostPlan, Windows, dtype, windows
from buda_emu.emulator.image.rules import Place
from buda_emu.spec.precision import INFINITE
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

KEY: Final = "buda_emu_model"
NO_INDEX = 0xFFFFFFFF
"""Reads a row of zeros (OPS 6.9)."""


def _version(value: Any) -> int:
    if type(value) is not int or value != 1:
        raise FieldError("the schema_version that is known, which is 1")
    return value


_extent: Final = listed(positive, 3)


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A queue that one input of the model goes to. `extent` [t, rows, columns] of the queue in elements, `view` the
    leading part of it that is filled; `gather`: of the flat input, where not all of it; `indices`: words; `below`:
    integers that the model takes are 0 up to this; `windows`: what is laid side by side first. Indices are those of a
    table of so many `rows` (0 where an image does not say), negative ones counted `from_end`, if at all; index `zero`
    reads a row of zeros."""

    queue: str = needed(text)
    label: str = needed(text)
    shape: tuple[int, ...] = needed(listed(positive))
    dtype: str = needed(dtype)
    view: tuple[int, int, int] = needed(_extent)
    extent: tuple[int, int, int] = needed(_extent)
    indices: bool = wanted(flag, False)
    gather: tuple[int, ...] = wanted(listed(natural), ())
    below: int = wanted(positive, 2)
    windows: Windows | None = wanted(optional(windows))
    rows: int = wanted(natural, 0)
    from_end: bool = wanted(flag, False)
    zero: int | None = wanted(optional(whole(-(1 << 63), (1 << 63) - 1)))

    @property
    def elements(self) -> int:
        """How many of the model's elements go to the queue, windows and all."""
        return len(self.gather) or self.laid_out

    @property
    def laid_out(self) -> int:
        """Elements of the model's tensor, windows side by side, of which `gather` picks some."""
        return prod(self.windows.shape(self.shape) if self.windows else self.shape)

    @property
    def host_bytes(self) -> int:
        """What making one up and laying it out takes: three copies at once of at most 8 bytes an element."""
        return 24 * (self.windows.most(self.shape) if self.windows else prod(self.shape))

    def entries(self, array: Any) -> "Array | None":
        """Entries of the queue from the model's tensor, or from several with a dimension for them in front; None for an
        array of another shape."""
        refuse_masked_arrays(array, f"input {self.label}")
        given = np.asarray(array)
        if given.shape == self.shape:
            return self.to_queue(given)
        if given.shape[1:] != self.shape or not given.ndim or not len(given):
            return None
        return np.concatenate([self.to_queue(item) for item in given])

    def made_up(self, stream: "np.random.Generator") -> "Array":
        """An input of the model: see `made_up`."""
        return made_up(stream, self.shape, self.dtype, self.below)

    def to_queue(self, array: Any) -> "Array":
        """One entry, [1, t, rows, columns]. Raises HostError for another shape than the model's."""
        refuse_masked_arrays(array, f"input {self.label}")
        given = np.asarray(array)
        if given.shape != self.shape:
            raise HostError(f"input {self.label}: shape {list(given.shape)}, the model takes {list(self.shape)}")
        flat = (self.windows.apply(given) if self.windows else given).reshape(-1)
        if self.gather:
            flat = flat[list(self.gather)]
        if self.indices:
            words = np.full(prod(self.extent), NO_INDEX, np.uint32)
            words[: flat.size] = self._index_words(flat)
            return words.reshape(1, *self.extent)  # raw words stay in order (OPS 6.10)
        held = np.zeros((1, *self.extent), np.float32)
        with np.errstate(over="ignore"):  # what float32 has no number for is infinite
            held[0, : self.view[0], : self.view[1], : self.view[2]] = flat.astype(np.float32).reshape(self.view)
        return held

    def _index_words(self, flat: "Array") -> "Array":
        """Return indices as words, counted from the first row of the table. Raises HostError for one of no row: the
        device would read zeros for it, or what lies behind the table."""
        indices = flat.astype(np.int64)
        reads_zeros = np.zeros(indices.shape, bool) if self.zero is None else indices == self.zero
        lowest = -self.rows if self.from_end else 0
        unfit = indices[~reads_zeros & ((indices < lowest) | (indices >= (self.rows or NO_INDEX)))]
        if unfit.size:
            hint = "; add the number of rows to an index that is counted from the end" if lowest == 0 > unfit[0] else ""
            raise HostError(f"input {self.label}: index {unfit[0]}: {self._fit_indices(lowest)}{hint}")
        words = np.where(indices < 0, indices + self.rows, indices)
        return np.where(reads_zeros, NO_INDEX, words).astype(np.uint32)

    def _fit_indices(self, lowest: int) -> str:
        """Return which indices the model takes, for a message."""
        most = f" to {self.rows - 1}" if self.rows else " on"
        ignored = "" if self.zero is None else f", and {self.zero} for none"
        return f"the model takes indices from {lowest}{most}{ignored}"


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """A queue that holds an output of the model in its leading `view` [t, rows, columns]; where its columns lie in
    several `slices` along t, in that of the slices side by side."""

    queue: str = needed(text)
    label: str = needed(text)
    shape: tuple[int, ...] = needed(listed(positive))
    dtype: str = needed(dtype)
    view: tuple[int, int, int] = needed(_extent)
    slices: int = wanted(positive, 1)

    def side_by_side(self, extent: tuple[int, ...]) -> tuple[int, int, int]:
        """[t, rows, columns] of an entry of such extent, its slices side by side."""
        t, rows, columns = extent
        return t // self.slices, rows, columns * self.slices

    def _joined(self, array: "Array") -> "Array":
        """Entries [n, t, rows, columns] with their slices side by side."""
        entries, t, rows, columns = array.shape
        parts = array.reshape(entries, t // self.slices, self.slices, rows, columns).transpose(0, 1, 3, 2, 4)
        return parts.reshape(entries, *self.side_by_side((t, rows, columns)))

    def _sliced(self, array: "Array", extent: tuple[int, ...]) -> "Array":
        """The inverse: entries of such extent."""
        t, rows, columns = extent
        parts = array.reshape(len(array), t // self.slices, rows, self.slices, columns).transpose(0, 1, 3, 2, 4)
        return parts.reshape(len(array), *extent)

    def from_queue(self, array: "Array") -> "Array":
        """The model's tensor of one entry [1, t, rows, columns]; of several, with a dimension for them in front."""
        t, rows, columns = self.view
        held = self._joined(array)[:, :t, :rows, :columns].reshape(-1, *self.shape)
        held = held[0] if len(array) == 1 else held
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            held = np.where(np.abs(held) >= np.float32(INFINITE), np.copysign(np.float32(np.inf), held), held)
            return held.astype(kind)
        whole = np.rint(np.nan_to_num(held))
        return whole != 0 if kind.kind == "b" else whole.astype(kind)

    def alone(self, array: "Array") -> "Array":
        """Entries [n, t, rows, columns] with zeros where nothing of the model is."""
        joined = self._joined(array)
        held = np.zeros_like(joined)
        t, rows, columns = self.view
        held[:, :t, :rows, :columns] = joined[:, :t, :rows, :columns]
        return self._sliced(held, array.shape[1:])

    def in_queue(self, array: "Array", extent: tuple[int, ...]) -> "Array | None":
        """The model's tensor, or several with a dimension for them in front, as entries of its queue; None for an
        array of another shape."""
        if array.shape not in (self.shape, (len(array), *self.shape) if array.ndim else ()):
            return None
        held = np.zeros((array.size // max(1, prod(self.shape)), *self.side_by_side(extent)), np.float32)
        t, rows, columns = self.view
        held[:, :t, :rows, :columns] = array.reshape(-1, *self.view)
        return self._sliced(held, extent)


def made_up(stream: "np.random.Generator", shape: tuple[int, ...], dtype: str, below: int) -> "Array":
    """Normal numbers for floats, else integers from 0 up to `below`."""
    kind = np.dtype(dtype)
    found = stream.standard_normal(shape) if kind.kind == "f" else stream.integers(0, below, shape)
    return found.astype(kind)


def _plain(item: Any) -> Any:
    return item if isinstance(item, str) else asdict(item)


@dataclass(frozen=True)
class ModelIo:
    """`labels`: names of the model's inputs in its order, those that no queue takes included. `chip`: where several
    have a copy of the model, the one of these queues. `host`: what the host does between programs; then `inputs` and
    `outputs` are those of all programs, and their labels the plan's."""

    labels: tuple[str, ...] = needed(listed(text))
    inputs: tuple[ModelInput, ...] = needed(listed(shaped(ModelInput, closed=True)))
    outputs: tuple[ModelOutput, ...] = needed(listed(shaped(ModelOutput, closed=True)))
    chip: int | None = wanted(optional(natural))
    host: HostPlan | None = wanted(optional(shaped(HostPlan, closed=True)))
    schema_version: int = needed(_version, default=1)

    @cached_property
    def input_of(self) -> Mapping[str, ModelInput]:
        """Inputs by the name of their queue."""
        return {item.queue: item for item in self.inputs}

    @cached_property
    def by_queue(self) -> Mapping[str, ModelOutput]:
        """Outputs by the name of their queue."""
        return {item.queue: item for item in self.outputs}

    def as_json(self) -> dict[str, Any]:
        """For device.json."""
        parts = {"labels": self.labels, "inputs": self.inputs, "outputs": self.outputs}
        chip = {} if self.chip is None else {"chip": self.chip}
        host = {} if self.host is None else {"host": self.host.as_json()}
        lists = {key: [_plain(item) for item in value] for key, value in parts.items()}
        return {"schema_version": 1, **lists, **chip, **host}

    def on_chip(self, chip: int) -> "ModelIo":
        """The same of the copy on a chip (NETLIST 1.7)."""
        return ModelIo(
            self.labels,
            tuple(replace(item, queue=f"{item.queue}.{chip}") for item in self.inputs),
            tuple(replace(item, queue=f"{item.queue}.{chip}") for item in self.outputs),
            chip,
        )

    @staticmethod
    def from_json(source: Any, place: Place) -> "ModelIo":
        """From what device.json has at a place. Raises ImageError for what is none."""
        return read_value(shaped(ModelIo, closed=True), source, place)

    def queues(self, arrays: Mapping[str, Any]) -> "dict[str, Array]":
        """What to push, by queue, for inputs by name. Raises HostError for names that are missing or not known."""
        missing = [label for label in dict.fromkeys(item.label for item in self.inputs) if label not in arrays]
        unknown = [label for label in arrays if label not in self.labels]
        if missing or unknown:
            what = [f"no {', '.join(missing)}"] if missing else []
            what += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise HostError(f"inputs: {'; '.join(what)}; the model takes {', '.join(self.labels)}")
        return {item.queue: item.to_queue(arrays[item.label]) for item in self.inputs}
