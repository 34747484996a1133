"""Copies the state of a machine in memory, between two instructions of a program, and restores it, for debuggers.

Memory that programs cannot change is not copied: `Contents` holds only memory that an op writes or that settings zero,
in blocks, and a block that did not change since another checkpoint is shared with it."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.store import Arrays, TileStore
from buda_emu.emulator.runtime.graph.epochs import Epochs, EpochsState
from buda_emu.emulator.runtime.machine.listeners import QueueTraffic
from buda_emu.emulator.runtime.snapshots.entries import Tensor, changing_stores, own_labels, stores
from buda_emu.emulator.runtime.snapshots.state import Machine, pointers_of, set_pointers
from buda_emu.netlist.program.interpreter import Standing
from buda_emu.netlist.program.settings import Kind
from buda_emu.support.records import dataclass

_BLOCK_BYTES: Final = 1 << 20  # a block is shared with the checkpoint before if nothing in it has changed


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of one store: a label for each slice asked for so far, and blocks of `per_block` slices, None where
    nothing in a block was ever written."""

    labels: tuple[str, ...]
    per_block: int
    blocks: tuple[Arrays | None, ...]

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield all arrays of the contents, so that their bytes can be counted."""
        for block in self.blocks:
            yield from block or ()


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The state of a machine. `standing` is None between programs; `contents` are by the name of the store."""

    standing: Standing | None
    steps_left: int
    epochs: EpochsState
    contents: dict[str, Contents]
    view_labels: Mapping[str, Mapping[int, str]]
    pointers: Mapping[str, Mapping[str, Any]]
    flat: Mapping[str, Mapping[int, Tensor]]
    allocated: tuple[str, ...]
    variables: Mapping[str, tuple[dict[str, int], dict[str, Kind], dict[str, str]]]
    gradients: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    journal: Mapping[str, QueueTraffic] = field(default_factory=dict[str, QueueTraffic])
    executed: Mapping[str, int] = field(default_factory=dict[str, int])

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield all arrays of the checkpoint; those that it shares with another checkpoint are in both."""
        for contents in self.contents.values():
            yield from contents.pieces()


def contents_of(store: TileStore, before: Contents | None) -> Contents:
    """Copy the written slices of a store in blocks; a block that equals that of `before` (None: nothing to compare) is
    shared with it."""
    labels = store.labels
    arrays = store.arrays()
    per_block = max(1, _BLOCK_BYTES // max(1, store.slice_bytes(1)))
    if before is not None and before.per_block == per_block:
        earlier_blocks = before.blocks
    else:
        earlier_blocks = ()
    blocks: list[Arrays | None] = []
    for number, first in enumerate(range(0, len(labels), per_block)):
        last = min(first + per_block, len(labels))
        if not any(labels[first:last]):
            blocks.append(None)
            continue
        block = tuple(array[first:last] for array in arrays)
        old = None
        if number < len(earlier_blocks):
            old = earlier_blocks[number]
        same = old is not None and all(map(_equal_bits, old, block))
        blocks.append(old if same else tuple(array.copy() for array in block))
    return Contents(tuple(labels), per_block, tuple(blocks))


def _equal_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether two arrays are equal bit for bit: a NaN equals itself, 0 differs from -0."""
    return a.shape == b.shape and bool(np.array_equal(a.view(_unsigned_dtype(a)), b.view(_unsigned_dtype(b))))


def _unsigned_dtype(array: NDArray[Any]) -> np.dtype[Any]:
    """Return the unsigned integer type of the same size as an array's elements."""
    return np.dtype(f"u{array.dtype.itemsize}")


def put_contents(store: TileStore, contents: Contents) -> None:
    """Make a store hold exactly these contents; slices that they lack are no longer written."""
    arrays = store.fresh(len(contents.labels))
    for number, block in enumerate(contents.blocks):
        if block is not None:
            first = number * contents.per_block
            for array, piece in zip(arrays, block, strict=True):
                array[first : first + len(piece)] = piece
    store.replace(arrays, contents.labels)


class Checkpoints:
    """Takes checkpoints of one machine and restores them. Not to be used while a chunk of inputs computes."""

    def __init__(self, machine: Machine, epochs: Epochs) -> None:
        self._machine = machine
        self._epochs = epochs
        self._changing = changing_stores(machine.netlist, machine.memory)

    def take(self, before: Checkpoint | None, *, running: bool) -> Checkpoint:
        """Return the state at this moment. `running`: an instruction of a program is about to run, at which `back_to`
        and `Emulator.resume` go on. `before`: another checkpoint, None or one whose unchanged blocks are shared."""
        machine = self._machine
        memory = machine.memory
        programs = machine.programs
        earlier = before.contents if before is not None else {}
        return Checkpoint(
            standing=programs.standing if running else None,
            steps_left=programs.steps.left + running,  # the instruction is counted again
            epochs=self._epochs.state(),
            contents={
                name: contents_of(store, earlier.get(name))
                for name, store in stores(memory, written_only=False).items()
                if name in self._changing
            },
            view_labels={name: dict(labels) for name, labels in own_labels(memory).items()},
            pointers={name: pointers_of(channel) for name, channel in memory.channels.items()},
            flat={name: dict(channel.flat) for name, channel in memory.channels.items() if channel.flat is not None},
            allocated=tuple(memory.allocated),
            variables={name: programs.interpreter(name).variables.state() for name in programs.known},
            gradients=dict(machine.gradients),
            journal={name: machine.journal.of(name).copy() for name in memory.channels},
            executed=dict(machine.journal.executed),
        )

    def keep_before_write(self, checkpoint: Checkpoint, store: TileStore, contents: Contents | None) -> Contents | None:
        """Add to a checkpoint the contents of a store that programs do not change, because the host is about to write
        it; does nothing if the checkpoint has it. `contents`: a copy already made for another checkpoint, None to make
        one. Returns the copy, so that the caller can pass it for further checkpoints."""
        if store.name in checkpoint.contents:
            return contents
        contents = contents or contents_of(store, None)
        checkpoint.contents[store.name] = contents
        return contents

    def back_to(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint: memory, pointers, variables and journal. No program may run; the rest of
        one that ran then is run by `Emulator.resume`."""
        machine = self._machine
        memory = machine.memory
        programs = machine.programs
        for name, store in stores(memory, written_only=False).items():
            if name in checkpoint.contents:
                put_contents(store, checkpoint.contents[name])
        for name, labels in own_labels(memory).items():
            labels.clear()
            labels.update(checkpoint.view_labels[name])
        for name, channel in memory.channels.items():
            set_pointers(channel, checkpoint.pointers[name])
            if channel.flat is not None:
                channel.flat.clear()
                channel.flat.update(checkpoint.flat[name])
        memory.replace_allocations(checkpoint.allocated)
        programs.forget()
        for name, (values, kinds, params) in checkpoint.variables.items():
            programs.interpreter(name).variables.set_state(values, kinds, params)
        machine.gradients.clear()
        machine.gradients.update(checkpoint.gradients)
        machine.journal.replace({name: entry.copy() for name, entry in checkpoint.journal.items()}, checkpoint.executed)
        self._epochs.set_state(checkpoint.epochs)
        programs.steps.left = checkpoint.steps_left
