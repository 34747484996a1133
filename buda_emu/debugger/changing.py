"""Changes that a user makes to a run: variables, entries of queues and rams, results of ops."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from buda_emu.checker.suggest import near
from buda_emu.debugger.expressions.parse import tensor
from buda_emu.debugger.filled import filled
from buda_emu.debugger.lookup import Lookup
from buda_emu.debugger.machine.position import STORED
from buda_emu.debugger.machine.steps import Change, Steps
from buda_emu.debugger.tensors import Found, newest
from buda_emu.errors import HostError
from buda_emu.netlist.model import Op


class Changing(Lookup):
    """What a session changes; going back before a change undoes it."""

    changes: list[Change]

    @property
    def changed(self) -> list[str]:
        """What was changed before here, in words."""
        return [change.text for change in self.changes if change.position <= self.stop.position]

    def set_variable(self, name: str, value: int) -> None:
        """Of the running program, as a varinst: queue settings that name it follow."""
        engine = self.engine
        if engine.variables is None:
            raise HostError("no program runs: a variable is set between two instructions of one")
        text = name if name.startswith("$") else f"${name}"
        known = engine.call(engine.variables.snapshot)
        if text not in known:
            raise HostError(f"no variable {text} ({near(text, known) or ', '.join(known) or 'there is none'})")
        self._change(f"{text} set to {value}", lambda machine: machine.set_variable(text, value))

    def write(self, target: str, values: object, tile: tuple[int, int, int] | None = None) -> None:
        """Change an entry of a queue or ram, or what the op gave that has just run: `values` an array [t, rows,
        columns] or a number for every element; `tile`: (t, row, column) of one tile alone."""
        which = tensor(target)
        item = self._known(which)
        found = self._find(which, ideal=False) if tile is not None or isinstance(item, Op) else None
        where = f" tile {','.join(map(str, tile))}" if tile is not None else ""
        if isinstance(item, Op):
            assert found is not None
            self._write_op(item, found, values, tile, where)
            return
        slot = which.slot
        if slot is None:
            slot = self.engine.call(lambda: newest(self.engine, item.name))
        shape = item.blocking.element_shape
        array = filled(values, shape, found, tile, item)
        text = f"{item.name}[{slot}]{where} written"

        def make(machine: Steps) -> None:
            machine.history.before_write(machine.channels[item.name].view.store, position)
            machine.emulator.put(item.name, array[np.newaxis], slot)

        position = self.stop.position
        self._change(text, make)

    def read_bytes(self, target: str) -> bytes:
        """An entry of a queue or ram as it lies in the device's memory, all buffers of its grid one after the other; of
        what an op gave the float32 tiles."""
        found, emulator = self.tensor(target), self.engine.emulator
        name, slot = found.of.name, found.slot
        if slot is None:
            return found.tiles.astype("<f4").tobytes()
        return b"".join(image.tobytes() for image in self.engine.call(lambda: emulator.memory_image(name, slot)))

    def write_bytes(self, target: str, offset: int, data: bytes) -> None:
        """Change some of the bytes that `read_bytes` gives, of an op right after it ran."""
        found = self.tensor(target)
        if isinstance(found.of, Op):
            whole = bytearray(self.read_bytes(target))
            if not 0 <= offset <= offset + len(data) <= len(whole):
                raise HostError(f"what op {found.name} gave has bytes 0..{len(whole) - 1}")
            whole[offset : offset + len(data)] = data
            changed = replace(found, tiles=np.frombuffer(whole, "<f4").astype(np.float32).reshape(found.tiles.shape))
            self._write_op(found.of, found, changed.values(), None, f" at byte {offset}")
            return
        name, slot, position = found.of.name, found.slot, self.stop.position
        assert slot is not None

        def make(machine: Steps) -> None:
            machine.history.before_write(machine.channels[name].view.store, position)
            machine.emulator.put_bytes(name, slot, offset, data)

        self._change(f"{found.name} written at byte {offset}", make)

    def _write_op(self, op: Op, found: Found, values: object, tile: tuple[int, int, int] | None, where: str) -> None:
        position = self.stop.position
        if position.step % 2 == 0 or self.engine.op_now is None or self.engine.op_now.name != op.name:
            raise HostError(f"what op {op.name} gave can be changed right after it ran: break if, on its result")
        if self.engine.put is None:
            raise HostError(f"op {op.name} passes its operand on, or adds to a sum: write its queue instead")
        t, rows, columns = found.shape
        height, width = found.tile_dim
        if (height, width) != (32, 32):
            raise HostError(f"op {op.name} has tiles of {height} x {width}: write its queue instead")
        array = filled(values, (t, rows * 32, columns * 32), found, tile, op)
        tiles = array.reshape(t, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(1, -1, 1024)

        def make(machine: Steps) -> None:
            assert machine.put is not None
            machine.put(tiles.astype(np.float32))

        self._change(f"result of op {op.name}{where} written", make)

    def skip(self) -> str:
        """Do not run the op that is about to run: its result is zero. Returns its name."""
        op, position = self.engine.op_now, self.stop.position
        if op is None or position.step % 2 or position.step == STORED:
            raise HostError("skip: no op is about to run; `next` or `break` goes to one")
        if op.gradient_op:
            raise HostError(f"op {op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        self._change(f"op {op.name} skipped in input {position.input + 1}", lambda machine: machine.skip())
        return op.name

    def _change(self, text: str, make: Callable[[Steps], None]) -> None:
        change = Change(self.stop.position, text, make)
        self.engine.change(change)
        if self._shadow is not None:
            self._shadow.changed(change.position)
