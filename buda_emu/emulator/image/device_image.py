"""A loaded device image: its metadata, netlist and tensors, and the machine that is initialised with them."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from buda_emu.emulator.image.archive import TOP, Archive
from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.checks import queues_by_name
from buda_emu.emulator.image.host_checks import output_groups
from buda_emu.emulator.image.host_plan import FOLDER, SOURCE
from buda_emu.emulator.image.metadata import NO_HOST_TM, NO_TRANSFORM, CompiledGraphState, DeviceMetadata, TensorEntry
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.variants import resize_microbatch, restrict_to_chip
from buda_emu.netlist.yaml_reader import MAX_BYTES
from buda_emu.spec.formats import is_raw
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from buda_emu.emulator.image import tensors as image_tensors
    from buda_emu.emulator.image.host_plan import HostPlan
    from buda_emu.emulator.image.model_io import ModelIo
    from buda_emu.emulator.runtime.emulator import Emulator
    from buda_emu.spec.precision import Precision
else:
    image_tensors = lazy("buda_emu.emulator.image.tensors")

T = TypeVar("T")
_LARGE = 1 << 20
"""Tensors of at least so many bytes are mapped instead of read."""


@dataclass(frozen=True, slots=True)
class InitialTensor:
    """A tensor of the image for one queue: `array` [entries, t, rows, cols], a large one by reference; `slot` is the
    first one of a ram."""

    queue: str
    array: "Array"
    slot: int | None


SOURCE_BYTES: Final = 1 << 30
"""The most bytes of one file of the model that an image was compiled from; a larger value lets an archive of a few
bytes unpack to more."""


class DeviceImage:
    """A `.tti` archive (NETLIST 8), immutable, made by `load_image`. Tensors are read from the archive when asked for.

    `metadata` is device.json; `netlist` is for the image's architecture; `tensors` describes every constant and
    parameter by name; `runtime_config` is compile_and_runtime_config.json, which is data here: nothing of it is ever
    put into the environment. `findings` are warnings about the image; warnings about the netlist are in the netlist."""

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
        """Read a constant or parameter as [entries, t, rows, cols]. Host tensors have their own element type (bfloat16
        as float32), tiles come as float32, or uint32 for RawUInt formats. Raises HostError for an unknown name,
        ImageError for a file that is not what the image states."""
        return self._read_tensor(name, self._queues_of_name(name)[0], to_push=False)

    def netlist_text(self) -> bytes:
        """Return the bytes of the netlist's file in the archive. Raises ImageError."""
        return self._archive.read(f"{TOP}/{self.metadata.compiled_graph_state.netlist_filename}", MAX_BYTES)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the archive in hexadecimal, by which a snapshot recognises the image. Raises ImageError."""
        return self._archive.digest()

    @property
    def held_queues(self) -> frozenset[str]:
        """Names of the queues that the image has initial data for: its constants and parameters, except those that
        stand for an input."""
        return frozenset(self._tensors_by_queue())

    def initial_tensors(self) -> Iterator[InitialTensor]:
        """Yield what a machine is initialised with: every constant and parameter, at slot 0 of a ram (NETLIST 8).
        Constants that stand for an input (ConstantInput) are not among them: they are pushed where the input would be.

        They come in the netlist's order of queues, which matters where rams share their memory (NETLIST 1.10)."""
        names = self._tensors_by_queue()
        for queue in self.for_inputs.queues.values():
            name = names.get(queue.name)
            if name is not None:
                mapped = self._map_tensor(name, queue)
                if mapped is not None:
                    array = mapped
                else:
                    array = image_tensors.array_to_push(
                        self._read_tensor(name, queue, to_push=True), self.tensors[name].format, queue
                    )
                yield InitialTensor(queue.name, array, 0 if queue.is_ram else None)

    @property
    def lent_queues(self) -> frozenset[str]:
        """Names of the queues whose data may stay in the image's file while a machine runs: `initial_tensors` yields
        these tensors by reference to the file."""
        names = self._tensors_by_queue()
        initial = ((names[name], queue) for name, queue in self.for_inputs.queues.items() if name in names)
        return frozenset(queue.name for name, queue in initial if self._can_stay_in_file(name, queue))

    @property
    def between_queues(self) -> frozenset[str]:
        """Names of the queues that ops fill for later epochs of the model. They are no outputs, though they may hold
        entries at the end. Empty for an image whose outputs are not known."""
        if self.model is None:
            return frozenset()
        queues = self.for_inputs.queues
        outputs = self.model.by_queue
        return frozenset(name for name in self.for_inputs.dynamic if not queues[name].host_fed and name not in outputs)

    def _can_stay_in_file(self, name: str, queue: Queue) -> bool:
        """Return whether the tensor `name` need not be read into memory for its queue: it is large, lies in the archive
        uncompressed, and has elements that can be decoded from the file."""
        entry = self.tensors[name]
        is_mappable = entry.dump_format == "BACKEND_TILIZED" or entry.format in image_tensors.MAPPED
        return (
            entry.file_bytes >= _LARGE and is_mappable and not is_raw(queue.df) and self._archive.is_plain(entry.member)
        )

    def _map_tensor(self, name: str, queue: Queue) -> Any:
        """Return a tensor by reference to the image's file, None where it has to be read into memory. Raises
        ImageError."""
        if not self._can_stay_in_file(name, queue):
            return None
        entry = self.tensors[name]
        data = self._archive.map_member(entry.member)
        place = self._archive.place.at(entry.member)
        check = self._archive.change_check(entry.member)
        if entry.dump_format == "BACKEND":
            return image_tensors.map_raw(data, entry, place, check)
        return image_tensors.map_tiles(data, queue, self.netlist.arch.alignment, place, check)

    def with_sets(self, count: int) -> "DeviceImage":
        """Return the same image for `count` sets of the model's inputs in a round."""
        image = copy(self)
        image.__dict__.pop("for_inputs", None)
        image._sets = count
        return image

    @cached_property
    def for_inputs(self) -> Netlist:
        """The netlist to run. Where `buda-emu compile` wrote the image, the netlist takes one input of the model at a
        time (or as many as `with_sets` says) and keeps one of the copies on several chips."""
        if self.model is None:
            return self.netlist
        single = resize_microbatch(self.netlist, self._sets)
        if self.model.chip is None:
            return single
        return restrict_to_chip(single, self.model.chip)

    def emulator(self, precision: "Precision" = "format", threads: int | None = None, **options: Any) -> "Emulator":
        """Return a new machine with every constant and parameter pushed; the caller closes it. `options` are those of
        Emulator. Raises HostError, ImageError."""
        from buda_emu.emulator.runtime.emulator import Emulator

        emulator = Emulator(self.for_inputs, precision, threads, **options)
        try:
            for tensor in self.initial_tensors():
                emulator.push(tensor.queue, tensor.array, tensor.slot)
        except BaseException:
            emulator.close()
            raise
        return emulator

    def host_input(self, name: str, array: "Array") -> "Array":
        """Convert an input tensor to [entries, t, rows, cols] of its queue.

        An array of that shape is returned as it is; one of the shape of the model that `buda-emu compile` read is laid
        out for the queue; any other goes through the image's runtime transform. For a ConstantInput the image's
        constant is returned, repeated to as many entries as `array` has. Raises HostError, UnsupportedError naming a
        transform that inputs cannot have."""
        queue = self._queues_of_name(name)[0]
        shape = queue.blocking.element_shape
        transform = _metadata_of(queue, self._transforms, NO_TRANSFORM)
        if transform.type == "ConstantInput":
            return self._input_constant(name, queue, len(array))
        if array.ndim == 4 and array.shape[1:] == shape:
            return array
        model_input = None
        if self.model is not None:
            model_input = self.model.input_of.get(name)
        entries = None
        if model_input is not None:
            entries = model_input.entries(array)
        if entries is not None:
            return entries
        state = image_tensors.InputState(
            transform, _metadata_of(queue, self._shapes, None), _metadata_of(queue, self._broadcasts, ())
        )
        result = image_tensors.host_to_queue(name, array, state, queue, self._microbatch)
        if result.shape[1:] != shape:
            raise HostError(
                f"{name}: shape {list(array.shape)} gives {list(result.shape)}, "
                f"queue {name} takes [entries, {', '.join(map(str, shape))}]"
            )
        return result

    def host_output(self, name: str, array: "Array") -> "Array":
        """Convert one output [entries, t, rows, cols] to the form in which the host gets it: stacked (output_host_tms),
        then through the image's runtime transform. An output that is to be concatenated with others is returned by
        itself. Raises HostError, UnsupportedError naming a transform that outputs cannot have."""
        model_output = None
        if self.model is not None:
            model_output = self.model.by_queue.get(name)
        if model_output is not None:
            return model_output.from_queue(array)
        return self._transform_output(name, self._fold_output(name, array))

    def host_outputs(self, arrays: "Mapping[str, Array]") -> "dict[str, Array]":
        """Convert all outputs, by queue, as `host_output` does; those of one group are concatenated under the name of
        the group's first. Raises HostError, UnsupportedError."""
        if self.model is not None:
            return {name: self.host_output(name, array) for name, array in arrays.items()}
        folded = {name: self._fold_output(name, array) for name, array in arrays.items()}
        transforms = {
            name: _metadata_of(self._queues_of_name(name)[0], self._output_transforms, NO_TRANSFORM) for name in arrays
        }
        joined = image_tensors.concatenate_outputs(folded, transforms, self._microbatch)
        return {name: self._transform_output(name, array) for name, array in joined.items()}

    @property
    def plan(self) -> "HostPlan | None":
        """The host's work between programs, of an image whose model does not run on the device alone; else None."""
        return self.model.host if self.model is not None else None

    def host_file(self, name: str) -> bytes:
        """Read the file `name` that the host's plan names. Raises ImageError where there is none."""
        return self._archive.read(f"{TOP}/{FOLDER}/{name}")

    @property
    def has_source(self) -> bool:
        """True if the image holds the model that it was compiled from (`compiler.image_source`)."""
        return bool(self.source_names())

    def source_names(self, folder: str = "") -> list[str]:
        """Return the names of the files of the model that the image was compiled from, only those below `folder` if
        that is given; empty where the image has none."""
        top = f"{TOP}/{SOURCE}/"
        names = [name.removeprefix(top) for name in self._archive.members if name.startswith(top)]
        return [name for name in names if name.startswith(folder) and self._archive.has(f"{top}{name}")]

    def source_file(self, name: str) -> bytes:
        """Read a file of the model that the image was compiled from. Raises ImageError."""
        return self._archive.read(f"{TOP}/{SOURCE}/{name}", SOURCE_BYTES)

    @property
    def model(self) -> "ModelIo | None":
        """The model's own inputs and outputs, of an image that `buda-emu compile` wrote; else None."""
        return self.metadata.model

    def names_of(self, queue: str) -> tuple[str, ...]:
        """Return the names under which a caller may give the data of a queue: the queue's own, then that of the model's
        input that it takes, if any."""
        model_input = None
        if self.model is not None:
            model_input = self.model.input_of.get(queue)
        if model_input is None:
            return (queue,)
        return tuple(dict.fromkeys((queue, model_input.label)))

    def check_outputs(self) -> None:
        """Raise UnsupportedError where an output has a runtime transform that `host_output` cannot apply, so that a run
        can fail before its work."""
        for name, transform in self._output_transforms.items():
            image_tensors.check_output_transform(name, transform)

    def _initial_names(self) -> Iterator[str]:
        """Return the names of the tensors that are pushed before the first program: all but those that stand for an
        input."""
        constant = {name for name, transform in self._transforms.items() if transform.type == "ConstantInput"}
        return (name for name in self.tensors if name not in constant)

    def _tensors_by_queue(self) -> dict[str, str]:
        """Return, by queue, the name of the tensor that it is initialised with."""
        tensors: dict[str, str] = {}
        for name in self._initial_names():
            tensors.update((queue.name, name) for queue in self._queues_of_name(name))
        return tensors

    def _input_constant(self, name: str, queue: Queue, entries: int) -> "Array":
        """Return `entries` entries of the constant that the image pushes in place of the input `name`, repeated as
        often as needed."""
        array = image_tensors.array_to_push(
            self._read_tensor(name, queue, to_push=True), self.tensors[name].format, queue
        )
        return np.resize(array, (entries, *array.shape[1:]))  # from the first on, again and again

    def _fold_output(self, name: str, array: "Array") -> "Array":
        """Return an output's entries stacked as the host reads them, by the TMs that the image states for its queue
        (output_host_tms)."""
        queue = self._queues_of_name(name)[0]
        producer = self.netlist.ops.get(queue.input)
        tms = self.metadata.compiled_graph_state.output_host_tms
        return image_tensors.fold_output(
            array, _metadata_of(queue, tms, NO_HOST_TM), producer is not None and producer.untilize_output
        )

    def _transform_output(self, name: str, array: "Array") -> "Array":
        """Return a folded output after the image's runtime transform. Raises HostError, UnsupportedError."""
        queue = self._queues_of_name(name)[0]
        transform = _metadata_of(queue, self._output_transforms, NO_TRANSFORM)
        return image_tensors.queue_to_host(name, array, transform, _metadata_of(queue, self._output_shapes, None))

    def _queues_of_name(self, name: str) -> Sequence[Queue]:
        """Return the queues of a name, at least one: several where a queue has copies on several chips. Raises
        HostError for an unknown name."""
        queues = self._by_name.get(name)
        if queues is None:
            raise HostError(f"{self.path}: no queue {short_line(name)!r}; tensors: {', '.join(self.tensors) or 'none'}")
        return queues

    def _read_tensor(self, name: str, queue: Queue, *, to_push: bool) -> "Array":
        """Read a tensor from its file, by the kind of file. `to_push`: as the machine takes it, not as the host would.
        Raises HostError for an unknown name, ImageError."""
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
    """Return values by the names that they stand beside in a parallel list; names beyond the last value are left
    out."""
    return dict(zip(names, items, strict=False))


def _shapes_of_outputs(state: CompiledGraphState) -> Mapping[str, tuple[int, ...]]:
    """Return the shape on the host of each output for which the image states it, of concatenated outputs under the
    first name of their group; empty where the image does not state as many shapes."""
    names = state.ordered_output_names
    shapes = state.ordered_output_shapes
    groups = output_groups(names, state.ordered_output_runtime_tensor_transforms)
    if len(groups) == len(shapes):
        return dict(zip((names[places[0]] for places in groups), shapes, strict=True))
    return {}


def _metadata_of(queue: Queue, values: Mapping[str, T], default: T) -> T:
    """Return what a table of the image's metadata holds for a queue, such as its shape on the host. It is under the
    queue's name, or under the one name that its copies on several chips have in the netlist's text (NETLIST 1.7);
    `default` where it is under neither."""
    return values.get(queue.name, values.get(queue.written_name, default))
