"""A loaded image: what it says, its netlist, its tensors, and a machine that holds them."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from buda_emu.emulator.image.archive import TOP, Archive
from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.checks import queues_by_name
from buda_emu.emulator.image.host_checks import output_groups
from buda_emu.emulator.image.host_plan import FOLDER
from buda_emu.emulator.image.metadata import NO_HOST_TM, NO_TRANSFORM, CompiledGraphState, DeviceMetadata, TensorEntry
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.variants import of_microbatch, on_one_chip
from buda_emu.netlist.yaml_reader import MAX_BYTES
from buda_emu.spec.formats import is_raw
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from buda_emu.emulator.image import tensors as host_transforms
    from buda_emu.emulator.image import tensors as image_tensors
    from buda_emu.emulator.image.host_plan import HostPlan
    from buda_emu.emulator.image.model_io import ModelIo
    from buda_emu.emulator.runtime.emulator import Emulator
    from buda_emu.spec.precision import Precision
else:
    image_tensors = lazy("buda_emu.emulator.image.tensors")
    host_transforms = lazy("buda_emu.emulator.image.tensors")

T = TypeVar("T")
_LARGE = 1 << 20
"""Bytes of a tensor from which on it is mapped, not read."""


@dataclass(frozen=True, slots=True)
class InitialTensor:
    """A tensor of the image for one queue: `array` [entries, t, rows, cols], a large one by reference; `slot` is the
    first one of a ram."""

    queue: str
    array: "Array"
    slot: int | None


class DeviceImage:
    """A `.tti` archive (NETLIST 8). Made by `load_image`; immutable. Tensors are read from the archive when asked for.

    `metadata` is device.json; `netlist` is for the image's architecture; `tensors` describes every constant and
    parameter by name; `runtime_config` is compile_and_runtime_config.json, which is data here: nothing of it is ever
    put into the environment. `findings` are warnings about the image; those about the netlist are in it.
    """

    def __init__(
        self,
        archive: Archive,
        metadata: DeviceMetadata,
        netlist: Netlist,
        runtime_config: Mapping[str, str],
        findings: tuple[Diagnostic, ...],
    ) -> None:
        self._archive = archive
        self.path = archive.place.archive
        self.metadata = metadata
        self.netlist = netlist
        self.runtime_config = runtime_config
        self.findings = findings
        self._by_name = queues_by_name(netlist)
        state = metadata.compiled_graph_state
        self.tensors: Mapping[str, TensorEntry] = state.tensors
        self._microbatch = max(1, state.microbatch)
        self._sets = 1
        inputs = state.ordered_input_names
        self._transforms = _by_name(inputs, state.ordered_input_runtime_tensor_transforms)
        self._broadcasts = _by_name(inputs, state.ordered_input_tile_broadcast_dims)
        self._shapes = _by_name(inputs, state.ordered_input_shapes)
        self._output_transforms = _by_name(state.ordered_output_names, state.ordered_output_runtime_tensor_transforms)
        self._output_shapes = _shapes_of_outputs(state)

    def __repr__(self) -> str:
        return f"DeviceImage({self.path!r}, {self.metadata.arch}, {plural(len(self.tensors), 'tensor')})"

    def tensor(self, name: str) -> "Array":
        """A constant or parameter: [entries, t, rows, cols].

        Host tensors have their own element type (bfloat16 as float32), tiles come as float32, or uint32 for RawUInt
        formats. Raises HostError for an unknown name, ImageError for a file that is not what the image says.
        """
        return self._read(name, self._queues(name)[0], to_push=False)

    def netlist_text(self) -> bytes:
        """The netlist as it stands in the archive. Raises ImageError."""
        return self._archive.read(f"{TOP}/{self.metadata.compiled_graph_state.netlist_filename}", MAX_BYTES)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the archive, in hexadecimal: what a snapshot knows it by. Raises ImageError."""
        return self._archive.digest()

    @property
    def held_queues(self) -> frozenset[str]:
        """Names of the queues that the image has data for, from the start on."""
        return frozenset(queue.name for name in self._begun_with() for queue in self._queues(name))

    def held(self) -> Iterator[InitialTensor]:
        """What a machine is initialised with: every constant and parameter, at slot 0 of a ram (NETLIST 8). Constants
        that stand for an input (ConstantInput) are not among them: they are pushed where the input would be.

        In the netlist's order of queues, which matters where rams share their memory (NETLIST 1.10).
        """
        names = {queue.name: name for name in self._begun_with() for queue in self._queues(name)}
        for queue in self.for_inputs.queues.values():
            name = names.get(queue.name)
            if name is not None:
                mapped = self._mapped(name, queue)
                array = (
                    mapped
                    if mapped is not None
                    else image_tensors.for_queue(
                        self._read(name, queue, to_push=True), self.tensors[name].format, queue
                    )
                )
                yield InitialTensor(queue.name, array, 0 if queue.is_ram else None)

    @property
    def lent_queues(self) -> frozenset[str]:
        """Names of the queues whose data may stay in the image while a machine runs: `held` gives it by reference."""
        names = {queue.name: name for name in self._begun_with() for queue in self._queues(name)}
        own = ((names[name], queue) for name, queue in self.for_inputs.queues.items() if name in names)
        return frozenset(queue.name for name, queue in own if self._is_mapped(name, queue))

    @property
    def between_queues(self) -> frozenset[str]:
        """Names of the queues that a model's ops fill for its later epochs, and that go with them: no outputs, though
        they may hold entries at the end. None of an image whose outputs are not known."""
        if self.model is None:
            return frozenset()
        queues = self.for_inputs.queues
        outputs = self.model.by_queue
        return frozenset(name for name in self.for_inputs.dynamic if not queues[name].host_fed and name not in outputs)

    def _is_mapped(self, name: str, queue: Queue) -> bool:
        """Whether a tensor is large, and lies in the archive as it is, in a format that is not words."""
        entry = self.tensors[name]
        known = entry.dump_format == "BACKEND_TILIZED" or entry.format in image_tensors.MAPPED
        return entry.file_bytes >= _LARGE and known and not is_raw(queue.df) and self._archive.is_plain(entry.member)

    def _mapped(self, name: str, queue: Queue) -> Any:
        """A tensor by reference; None where it is to be read."""
        if not self._is_mapped(name, queue):
            return None
        entry = self.tensors[name]
        data = self._archive.mapped(entry.member)
        place = self._archive.place.at(entry.member)
        check = self._archive.unchanged(entry.member)
        if entry.dump_format == "BACKEND":
            return image_tensors.mapped_raw(data, entry, place, check)
        return image_tensors.mapped_tiles(data, queue, self.netlist.arch.alignment, place, check)

    def of_sets(self, count: int) -> "DeviceImage":
        """The same image for so many inputs of the model in a round."""
        found = copy(self)
        found.__dict__.pop("for_inputs", None)
        found._sets = count
        return found

    @cached_property
    def for_inputs(self) -> Netlist:
        """The netlist to run: of an image that `buda-emu compile` wrote for one input of the model at a time, however
        many its netlist takes in a round (or see `of_sets`), and on how many chips there is a copy of it."""
        if self.model is None:
            return self.netlist
        single = of_microbatch(self.netlist, self._sets)
        return single if self.model.chip is None else on_one_chip(single, self.model.chip)

    def emulator(self, precision: "Precision" = "format", threads: int | None = None, **options: Any) -> "Emulator":
        """A machine with every constant and parameter pushed; `options` are those of Emulator. Raises HostError."""
        from buda_emu.emulator.runtime.emulator import Emulator

        emulator = Emulator(self.for_inputs, precision, threads, **options)
        try:
            for held in self.held():
                emulator.push(held.queue, held.array, held.slot)
        except BaseException:
            emulator.close()
            raise
        return emulator

    def host_input(self, name: str, array: "Array") -> "Array":
        """An input tensor as [entries, t, rows, cols] of its queue: as it is when it has that shape, from the shape of
        the model that `buda-emu compile` read, else through the image's runtime transform. The constant that stands for
        an input (ConstantInput) takes its place, as often as it has entries. Raises HostError, UnsupportedError naming
        a transform that inputs cannot have."""
        queue = self._queues(name)[0]
        shape = queue.blocking.element_shape
        transform = _of(self._transforms, queue, NO_TRANSFORM)
        if transform.type == "ConstantInput":
            return self._constant(name, queue, len(array))
        if array.ndim == 4 and array.shape[1:] == shape:
            return array
        own = self.model.input_of.get(name) if self.model is not None else None
        entries = own.entries(array) if own is not None else None
        if entries is not None:
            return entries
        state = host_transforms.InputState(transform, _of(self._shapes, queue, None), _of(self._broadcasts, queue, ()))
        result = host_transforms.host_to_queue(name, array, state, queue, self._microbatch)
        if result.shape[1:] != shape:
            raise HostError(
                f"{name}: shape {list(array.shape)} gives {list(result.shape)}, "
                f"queue {name} takes [entries, {', '.join(map(str, shape))}]"
            )
        return result

    def host_output(self, name: str, array: "Array") -> "Array":
        """One output [entries, t, rows, cols] as the host gets it: stacked (output_host_tms), then through the image's
        runtime transform. What is to be concatenated with others comes by itself here. Raises HostError,
        UnsupportedError naming a transform that outputs cannot have."""
        own = self.model.by_queue.get(name) if self.model is not None else None
        return own.from_queue(array) if own is not None else self._from_queue(name, self._folded(name, array))

    def host_outputs(self, arrays: "Mapping[str, Array]") -> "dict[str, Array]":
        """All outputs by queue as the host gets them: as `host_output`, but those of one group are concatenated under
        the name of the group's first. Raises HostError, UnsupportedError."""
        if self.model is not None:
            return {name: self.host_output(name, array) for name, array in arrays.items()}
        folded = {name: self._folded(name, array) for name, array in arrays.items()}
        transforms = {name: _of(self._output_transforms, self._queues(name)[0], NO_TRANSFORM) for name in arrays}
        joined = host_transforms.concatenated(folded, transforms, self._microbatch)
        return {name: self._from_queue(name, array) for name, array in joined.items()}

    @property
    def plan(self) -> "HostPlan | None":
        """What the host does between programs, of an image whose model does not run on the device alone."""
        return self.model.host if self.model is not None else None

    def host_file(self, name: str) -> bytes:
        """A file that the plan names. Raises ImageError."""
        return self._archive.read(f"{TOP}/{FOLDER}/{name}")

    @property
    def model(self) -> "ModelIo | None":
        """The model's own inputs and outputs, of an image that `buda-emu compile` wrote."""
        return self.metadata.model

    def names_of(self, queue: str) -> tuple[str, ...]:
        """Names under which the host may give the data of a queue: its own, and that of the model's input."""
        own = self.model.input_of.get(queue) if self.model is not None else None
        return (queue,) if own is None else tuple(dict.fromkeys((queue, own.label)))

    def check_outputs(self) -> None:
        """Raise UnsupportedError for an output that `host_output` could not give."""
        for name, transform in self._output_transforms.items():
            host_transforms.check_supported(name, transform)

    def _begun_with(self) -> Iterator[str]:
        """Names of the tensors that are there from the start."""
        constant = {name for name, transform in self._transforms.items() if transform.type == "ConstantInput"}
        return (name for name in self.tensors if name not in constant)

    def _constant(self, name: str, queue: Queue, entries: int) -> "Array":
        """`entries` entries of the constant that stands for an input."""
        array = image_tensors.for_queue(self._read(name, queue, to_push=True), self.tensors[name].format, queue)
        return np.resize(array, (entries, *array.shape[1:]))  # from the first on, again and again

    def _folded(self, name: str, array: "Array") -> "Array":
        queue = self._queues(name)[0]
        producer = self.netlist.ops.get(queue.input)
        tms = self.metadata.compiled_graph_state.output_host_tms
        return host_transforms.folded(
            array, _of(tms, queue, NO_HOST_TM), producer is not None and producer.untilize_output
        )

    def _from_queue(self, name: str, array: "Array") -> "Array":
        queue = self._queues(name)[0]
        transform = _of(self._output_transforms, queue, NO_TRANSFORM)
        return host_transforms.queue_to_host(name, array, transform, _of(self._output_shapes, queue, None))

    def _queues(self, name: str) -> Sequence[Queue]:
        queues = self._by_name.get(name)
        if queues is None:
            raise HostError(f"{self.path}: no queue {short_line(name)!r}; tensors: {', '.join(self.tensors) or 'none'}")
        return queues

    def _read(self, name: str, queue: Queue, *, to_push: bool) -> "Array":
        entry = self.tensors.get(name)
        if entry is None:
            raise HostError(f"{self.path}: no tensor {name!r}; tensors: {', '.join(self.tensors) or 'none'}")
        data = self._archive.read(entry.member)
        place = self._archive.place.at(entry.member)
        if entry.dump_format == "BACKEND":
            return image_tensors.raw_tensor(data, entry)
        if entry.dump_format == "BACKEND_TILIZED":
            return image_tensors.tilized_tensor(data, queue, self.netlist.arch.alignment, place, to_push=to_push)
        return image_tensors.pickled_tensor(data, place)


def _by_name(names: tuple[str, ...], items: tuple[T, ...]) -> Mapping[str, T]:
    return dict(zip(names, items, strict=False))


def _shapes_of_outputs(state: CompiledGraphState) -> Mapping[str, tuple[int, ...]]:
    """The host's shape of each output, where it is stated: of outputs that are concatenated under the first's name."""
    names = state.ordered_output_names
    shapes = state.ordered_output_shapes
    groups = output_groups(names, state.ordered_output_runtime_tensor_transforms)
    return dict(zip((names[places[0]] for places in groups), shapes, strict=True)) if len(groups) == len(shapes) else {}


def _of(items: Mapping[str, T], queue: Queue, default: T) -> T:
    """Of a queue that stands for several chips, every copy has the same (NETLIST 1.7)."""
    return items.get(queue.name, items.get(queue.written_name, default))
