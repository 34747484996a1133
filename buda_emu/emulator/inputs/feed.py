"""The inputs of a run: tensors from files first, the rest generated; and their push into a machine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from buda_emu.emulator.inputs.default import InputBlock
from buda_emu.emulator.inputs.entries import entries_read
from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.emulator.inputs.of_image import archive_blocks, in_queues, initial_blocks, made_up_blocks
from buda_emu.emulator.inputs.reference import Files, Tensors, tensors, whole_array
from buda_emu.emulator.memory.host import default_memory_limit
from buda_emu.netlist.model import Netlist, Program, Queue
from buda_emu.netlist.test_config import TestConfig
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.emulator.distributed.machines import Machines
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.runtime.emulator import Emulator


@dataclass(frozen=True, slots=True)
class Feed:
    """A source of the same inputs as often as they are asked for, without keeping them. `reference` has tensors from
    outside; `archive` is an .npz file of inputs, which unpacks to at most `limit` bytes; `image` is the one that
    the netlist is of."""

    netlist: Netlist
    config: TestConfig
    programs: Sequence[Program]
    parameters: Mapping[str, str]
    seed: int
    reference: Files | None
    archive: "Path | None" = None
    image: "DeviceImage | None" = None
    limit: int | None = None

    def blocks(self) -> Iterator[InputBlock]:
        """Yield every entry to push before the first program, queue by queue: constants of the image, data from files,
        then generated data for the queues left. Raises HostError, NetlistError, ProgramError, UnsupportedError."""
        if self.image is not None:
            held = self.image.held_queues
        else:
            held = frozenset[str]()
        yield from initial_blocks(self.image)
        filled = set(held)
        for block in in_queues(self.image, self._file_blocks()):
            if block.queue in held:
                raise HostError(f"inputs: the image holds the tensor of queue {block.queue}: take it out")
            filled.add(block.queue)
            yield block
        yield from made_up_blocks(
            self.netlist, self.config, self.programs, self.parameters, self.seed, self.image, excluded=filled
        )

    def _file_blocks(self) -> Iterator[InputBlock]:
        """Yield the entries that the input files hold for queues and rams: those of the archive, then those of the
        folder, queue by queue. Raises HostError for files that do not fit their queue."""
        if self.archive is not None:
            yield from archive_blocks(self.netlist, self.archive, self.image, self.limit or default_memory_limit())
        if self.reference is None:
            return
        needed = entries_read(self.netlist, self.programs, self.parameters)
        for queue in self.netlist.queues.values():
            tensors = self._tensors_of(self.reference, queue)
            if tensors is not None:
                if queue.is_ram:
                    count = queue.entries
                else:
                    count = needed.get(queue.name, 0)
                yield _input_block(queue, tensors, count)

    def _tensors_of(self, files: Files, queue: Queue) -> Tensors | None:
        """Return the tensors that files hold for a queue, None where they hold none. With an image, a file may be named
        for the model's input and have the shape of the host's tensor."""
        if self.image is None or not queue.host_fed:
            return initial_tensors(files, queue)
        arrays = (whole_array(files, name) for name in self.image.names_of(queue.name))
        array = next((candidate for candidate in arrays if candidate is not None), None)
        if array is None:
            return initial_tensors(files, queue)
        return Tensors(self.image.host_input(queue.name, array.array), array.source)


def initial_tensors(files: Files, queue: Queue) -> Tensors | None:
    """Return the tensors that files hold for a queue that the host fills, or (under the name "<queue>.init") for a ram
    that ops write; None where there are none, and for other queues."""
    if queue.host_fed:
        return tensors(files, queue.name, queue.df, queue.blocking.element_shape)
    if queue.is_ram:
        return tensors(files, f"{queue.name}.init", queue.df, queue.blocking.element_shape)
    return None


def _input_block(queue: Queue, tensors: Tensors, count: int) -> InputBlock:
    """Return the first `count` entries of tensors from files as a block. Raises HostError where a queue (not a ram) has
    fewer."""
    entries = tensors.array.shape[0]
    if entries < count and not queue.is_ram:
        has = f"{tensors.source} has {plural(entries, 'entry')} of queue {queue.name}"
        raise HostError(f"{has}, the programs read {count}")
    return InputBlock(queue.name, tensors.array[:count], 0 if queue.is_ram else None, tensors.source)


def push(
    emulator: "Emulator | Machines", blocks: Iterable[InputBlock], progress: Report = do_nothing
) -> tuple[InputUsed, ...]:
    """Push all blocks into a machine, and return a record of the data of each queue that was pushed to. `progress` is
    called before each block. Raises HostError as `Emulator.push`."""
    queues = emulator.netlist.queues
    pushed: dict[str, InputUsed] = {}
    for block in blocks:
        progress(Activity(f"input {block.queue}", "inputs", len(pushed)))
        emulator.push(block.queue, block.array, block.slot)
        before = pushed.get(block.queue)
        entries = (before.shape[0] if before else 0) + block.array.shape[0]
        shape = (entries, *block.array.shape[1:])
        pushed[block.queue] = InputUsed(block.queue, queues[block.queue].df, shape, block.source)
        del block  # before the next is made
    return tuple(pushed.values())


def seed_of(seed: int, number: int) -> int:
    """Return the seed of case `number` of a series that begins with `seed`; it does not depend on how many cases there
    are."""
    return seed * 1_000_003 + number
