"""The inputs of a run of a device image: tensors of the image, inputs of its model by name, and generated ones."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from buda_emu.emulator.image.shape_rules import ShapeRule, fill_by_rules
from buda_emu.emulator.inputs.default import InputBlock, default_inputs
from buda_emu.emulator.inputs.entries import entries_read
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.program.parameters import parameter_names
from buda_emu.netlist.test_config import TestConfig
from buda_emu.netlist.variants import LOOP
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.image.model_io import ModelInput, ModelIo


@dataclass(frozen=True, slots=True)
class ImageQueues:
    """Names of an image's queues that a run treats differently. `filled` have the image's constants and parameters from
    the start. `lent` are those of them that stay in the image's file as far as they take more than their share of the
    limit, of which two are in memory at a time. `between` are not read out."""

    filled: frozenset[str] = frozenset()
    lent: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()


NO_IMAGE_QUEUES: Final = ImageQueues()
"""The queues of a netlist without an image: none is treated differently."""


NPZ = ".npz"


def is_archive_of_inputs(path: "Path") -> bool:
    """Return whether `--inputs` names one .npz file instead of a folder."""
    return path.suffix.lower() == NPZ and not path.is_dir()


def image_args(image: "DeviceImage | None") -> dict[str, str]:
    """Return the test-args that an image implies; a netlist's own test-args take precedence."""
    if image is None:
        return {}
    metadata = image.metadata
    return {"microbatch_count": str(metadata.microbatch_count), "microbatch_size": str(metadata.microbatch_size)}


def _shapes_of_inputs(image: "DeviceImage", model: "ModelIo", inputs: "Path") -> dict[str, tuple[int, ...]]:
    """Return the shapes of the model's inputs that an .npz file or the .npy files of a folder hold, by the model's
    labels. Files that cannot be read are left out here, as the function that reads their data reports them."""
    from buda_emu.emulator.inputs.numpy_files import npy_header, npz_headers

    shapes: dict[str, tuple[int, ...]] = {}
    with suppress(HostError, OSError):
        if is_archive_of_inputs(inputs):
            shapes = {name: header.shape for name, header in npz_headers(inputs).items()}
        for model_input in model.inputs if not shapes else ():
            for name in image.names_of(model_input.queue):
                if (path := inputs / f"{name}.npy").is_file():
                    shapes[model_input.label] = npy_header(path).shape
    return shapes


def fit_image_to_inputs(image: "DeviceImage", inputs: "Path", parameters: Mapping[str, str]) -> "DeviceImage":
    """Return the image with as many sets of inputs per round as the input files hold in all, divided by the rounds.
    Returns the image itself where it has no model, host parts, several programs or no loop parameter, and where the
    files do not hold a multiple of the rounds. Raises HostError where inputs hold different numbers of sets."""
    model = image.model
    programs = tuple(image.netlist.programs.values())
    if model is None or image.plan is not None or len(programs) != 1 or LOOP not in parameter_names(programs):
        return image
    from buda_emu.emulator.image.sets import count_sets

    shapes = _shapes_of_inputs(image, model, inputs)
    sets = count_sets(model, shapes)
    rounds = parameters.get(LOOP, "1")
    is_even = rounds.isdecimal() and int(rounds) > 0 and sets % int(rounds) == 0
    if is_even and sets > int(rounds):
        return image.with_sets(sets // int(rounds))
    return image


def host_copies(image: "DeviceImage | None") -> int:
    """Return the bytes that the largest input of the image's model takes on the host while it is laid out for its
    queue; 0 without an image or model."""
    model = image.model if image is not None else None
    if model is not None:
        return max((model_input.host_bytes for model_input in model.inputs), default=0)
    return 0


def image_queues(image: "DeviceImage | None", *, all_read: bool = False) -> ImageQueues:
    """Return the names of an image's queues that a run treats differently; none without an image. `all_read`: queues
    between epochs are read out as other outputs are."""
    if image is None:
        return NO_IMAGE_QUEUES
    return ImageQueues(image.held_queues, image.lent_queues, frozenset() if all_read else image.between_queues)


def initial_blocks(image: "DeviceImage | None") -> Iterator[InputBlock]:
    """Yield the constants and parameters of an image, to be pushed before the first program; nothing without an
    image."""
    for tensor in image.initial_tensors() if image is not None else ():
        yield InputBlock(tensor.queue, tensor.array, tensor.slot, "image")


def _refuse_host_parts(image: "DeviceImage | None") -> None:
    """Raise UnsupportedError for an image in which the host computes the inputs of later programs."""
    if image is not None and image.plan is not None:
        raise UnsupportedError(
            f"{image.path}: the host computes between its programs: such an image can be checked, run, tested and timed"
        )


def in_queues(image: "DeviceImage | None", blocks: Iterator[InputBlock]) -> Iterator[InputBlock]:
    """Yield blocks whose arrays are converted from the shapes of the model's inputs to those of the queues; unchanged
    without an image. Raises HostError for an array that fits neither, UnsupportedError for an image with host parts."""
    _refuse_host_parts(image)
    for block in blocks:
        yield block if image is None else replace(block, array=image.host_input(block.queue, block.array))


def _read_inputs(path: "Path") -> bytes:
    """Return the bytes of a file of inputs. Raises HostError if it is not there or cannot be read."""
    try:
        if path.is_file():
            return path.read_bytes()
    except OSError as error:
        raise HostError(f"inputs: {path}: {error.strerror or error}") from None
    raise HostError(f"inputs: {path}: no such file")


def archive_blocks(
    netlist: Netlist, path: "Path", image: "DeviceImage | None", byte_limit: int
) -> Iterator[InputBlock]:
    """Yield the arrays of an .npz file, one block for each queue that it names. For an image that `buda-emu compile`
    wrote, the file has the model's own input names and shapes. `byte_limit` bounds the bytes that it unpacks to. Raises
    HostError, also for a name that is no queue."""
    from buda_emu.emulator.inputs.numpy_files import npz_of

    _refuse_host_parts(image)
    data = _read_inputs(path)
    arrays = npz_of(f"inputs: {path}", data, byte_limit)
    if image is not None and image.model is not None:
        from buda_emu.emulator.image.sets import queues_of

        arrays = queues_of(image.model, arrays)
    for name in arrays:
        if name not in netlist.queues:
            raise HostError(f"inputs: {path} holds {name}, which is not a queue of {netlist.path}")
    for name in netlist.queues:
        if name in arrays:
            yield InputBlock(name, arrays[name], None, str(path))


def made_up_blocks(
    netlist: Netlist,
    config: TestConfig,
    programs: Sequence[Program],
    parameters: Mapping[str, str],
    seed: int,
    image: "DeviceImage | None" = None,
    *,
    excluded: Container[str] = frozenset(),
    needed: Mapping[str, int] | None = None,
) -> Iterator[InputBlock]:
    """Yield generated inputs as `default_inputs` does. Inputs of a model that `buda-emu compile` wrote are generated in
    the model's shapes, so that the padding around them is what the compiler expects. Raises UnsupportedError for an
    image with host parts."""
    _refuse_host_parts(image)
    if image is None:
        yield from default_inputs(netlist, config, programs, parameters, seed, excluded=excluded, needed=needed)
        return
    if needed is None:
        needed = entries_read(netlist, programs, parameters)
    model_inputs: dict[str, ModelInput] = {}
    if image.model:
        model_inputs = {
            model_input.queue: model_input for model_input in image.model.inputs if model_input.queue not in excluded
        }
        yield from _made_up_inputs(model_inputs, image.model.rules, seed, needed)
    others = {name for name in netlist.queues if name in excluded or name in model_inputs}
    yield from in_queues(
        image, default_inputs(netlist, config, programs, parameters, seed, excluded=others, needed=needed)
    )


def _made_up_inputs(
    model_inputs: "Mapping[str, ModelInput]", rules: Sequence[ShapeRule], seed: int, needed: Mapping[str, int]
) -> Iterator[InputBlock]:
    """Yield generated inputs of a model, by the queues that take them, as many as `needed` says for each queue.
    Elements that decide a shape have the values that the model's `rules` ask for."""
    for name, model_input in model_inputs.items():
        stream = generator(seed, model_input.label)  # queues of one input get parts of the same array
        for _ in range(needed.get(name, 0)):
            array = fill_by_rules(rules, model_input.label, model_input.made_up(stream))
            yield InputBlock(name, model_input.to_queue(array), None, "made-up inputs of the model")
