"""Trace of one tile through the units of a core, for an op of the epoch in which a session stands (precision "device"):
what is unpacked, each phase of a product, Dst before and after a spill, the vector unit, the packer.

The op runs once more on the units of plain numpy, which define the precision, for this one tile, and each unit's result
is recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import queue_entry, shape_of
from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix import elementwise, products
from buda_emu.arithmetic.tensix.elementwise import Dim
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.registers import REGISTERS, core_of
from buda_emu.emulator.ops.base import serial
from buda_emu.emulator.ops.on_device import base, device_op
from buda_emu.emulator.ops.on_device.operands import blank_words
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits, tile_of
from buda_emu.emulator.ops.on_device.units import PackedAs, ProductBlock, float_family, tiles_of
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.netlist.model import Op, Queue
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.precision import PHASES
from buda_emu.support.errors import HostError, UnsupportedError

MAX_STEPS: Final = 4096  # of one tile, to bound the memory of what is written down


@dataclass(frozen=True, slots=True)
class UnitStep:
    """The result of one unit. `words` are uint32[32, 32], as the unit left them in the register file or in L1;
    `exponents` are those of a block format, one byte for each 16 neighbours of a row."""

    unit: str
    what: str
    format: str
    words: U32
    exponents: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the step as plain data, words as rows of hexadecimal text."""
        rows = [[f"{word:x}" for word in row] for row in self.words.tolist()]
        data = {"unit": self.unit, "what": self.what, "format": self.format, "words": rows, "exponents": None}
        if self.exponents is not None:
            data["exponents"] = self.exponents.tolist()
        return data


@dataclass(frozen=True)
class RecordingUnits(ReferenceUnits):
    """The reference units, which also record what each unit gave. An operand that is unpacked whole is recorded as it
    is used."""

    steps: list[UnitStep] = field(default_factory=list[UnitStep])

    def _note(self, unit: str, action: str, format: str, image: U32) -> None:
        """Record the image of one tile as a step; several tiles are left out. Raises UnsupportedError beyond
        MAX_STEPS."""
        if len(self.steps) >= MAX_STEPS:
            raise UnsupportedError(f"more than {MAX_STEPS} steps in one tile: they are not all written down")
        tile = image.reshape(-1, TILE_ELEMENTS)
        if len(tile) == 1:
            self.steps.append(UnitStep(unit, action, format, tile[0].reshape(32, 32).astype(np.uint32)))

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        """Unpack tiles as the base class does, and record what arrives in the register."""
        words = super().unpack(tiles, register, out)
        self._note("unpacker", f"{tiles.df} from L1 to {register}", register, words)
        return words

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """Copy to Dst as the base class does, and record the new contents of Dst."""
        image = super().copy(words, register, mode)
        self._note("matrix unit", "copied to Dst", mode, image)
        return image

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """Add or subtract on the matrix unit as the base class does, and record the new contents of Dst."""
        image = super().add(a, b, register, mode, subtract, dst)
        instruction = "ELWSUB" if subtract else "ELWADD"
        self._note("matrix unit", f"{instruction} into Dst", mode, image)
        return image

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Multiply element by element, to the bits of the base class but phase by phase, and record each phase."""
        if REGISTERS[register] is None:
            image = super().multiply(a, b, register, mode, fidelity, dst)
            self._note("matrix unit", f"ELWMUL, all phases of {fidelity}", mode, image)
            return image
        result = np.zeros_like(a) if dst is None else dst
        for phase in PHASES[fidelity]:
            result = elementwise.elwmul(result, a, b, phase, float_family(register), mode, self.core)
            self._note("matrix unit", f"ELWMUL, phase {phase} of {fidelity}", mode, result)
        return result

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Multiply the tiles of Dst numbered `items`, to the bits of the base class but inner tile by inner tile, and
        phase by phase on chips that run phases one after the other; record operands and sums. A product with spills is
        recorded as a whole by the base class."""
        operands, product, mode, k, spill, fresh = block
        if spill is not None or REGISTERS[operands[0].register] is None:
            super().matmul(dst, items, block)
            if spill is None:
                self._note_tiles(dst, items, f"MVMUL of inner tiles {k.start}..{k.stop - 1}", mode)
            return
        if fresh:
            tiles_of(dst)[items.start : items.stop] = 0
        phases = PHASES[product.fidelity]
        family = float_family(operands[0].register)
        apart = [phases] if self.core == "grayskull" else [(phase,) for phase in phases]
        rows = slice(0, 16 * product.faces)
        for n in k:
            for some in apart:
                for number in items:
                    entry, tile = divmod(number, dst.shape[1])
                    row, col = divmod(tile, product.cols)
                    left = tile_of(operands[0], entry, row * product.inner + n)
                    b = tile_of(operands[1], entry, (row // product.rows * product.inner + n) * product.cols + col)
                    a = left[:, rows]
                    if some is apart[0]:
                        self._note("unpacker", f"input 0, inner tile {n}, in SrcB", operands[0].register, left)
                        self._note("unpacker", f"input 1, inner tile {n}, in SrcA", operands[1].register, b)
                    flat = dst.reshape(-1, 32, 32)
                    flat[number] = products.tile_matmul(
                        flat[number], a[np.newaxis], b[rows][np.newaxis], some, family, mode, self.core
                    )
                action = f"phase {some[0]}" if len(some) == 1 else "all phases"
                self._note_tiles(dst, items, f"MVMUL of inner tile {n}, {action} of {product.fidelity}", mode)

    def _note_tiles(self, dst: U32, items: range, action: str, mode: DstMode) -> None:
        """Record each of the numbered tiles of Dst."""
        for image in tiles_of(dst)[items.start : items.stop]:
            self._note("matrix unit", action, mode, image)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Evaluate a function on the SFPU as the base class does, and record its result."""
        image = super().function(bound, mode, *images, vector=vector)
        self._note("SFPU", bound.function.name, bound.modes(mode)[1], image)
        return image

    def pool(self, source: Any, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Pool as the base class does, and record each tile of Dst from `start` to `stop` (exclusive)."""
        super().pool(source, dst, start, stop, dim, mode)
        for image in tiles_of(dst)[start:stop]:
            self._note("matrix unit", f"GMPOOL over {dim}", mode, image)

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Move Dst to a Src register as the base class does, and record what arrives there."""
        words = super().to_src(dst, mode, register)
        self._note("matrix unit", "Dst moved to a Src register", register, words)
        return words

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Pack as the base class does, and record Dst as the packer finds it and the tile that it leaves in L1."""
        self._note("Dst", "as the packer reads it", to.mode, dst)
        packed = super().pack(dst, to, out)
        relu = " with relu" if to.relu else ""
        self._note_pack(f"{to.mode} to {to.df}{relu}", packed)
        return packed

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """Accumulate in L1 as the base class does, and record the sum."""
        total = super().add_in_l1(old, new)
        self._note_pack("added to what is in L1", total)
        return total

    def _note_pack(self, action: str, bits: Bits) -> None:
        """Record one packed tile with its shared exponents (of block formats) as a step; several tiles are left out."""
        rows = bits.rows()
        if len(rows) == 1:
            words = rows.datums[0].reshape(32, 32).astype(np.uint32)
            exponents = None
            if rows.exponents is not None:
                exponents = rows.exponents[0].reshape(32, 2).copy()
            self.steps.append(UnitStep(unit="packer", what=action, format=bits.df, words=words, exponents=exponents))


def trace_tile(run: Run, operands: Sequence[Bits], tile: int) -> tuple[list[UnitStep], Bits]:
    """Return the steps of tile number `tile` of an op's result, and the packed tile: Bits [1].

    `operands` are Bits [1, tiles] each, before their TMs. There are no steps for an op that copies tiles from L1 to L1
    unchanged. Raises UnsupportedError for what is not emulated, HostError for an op that adds to a sum.
    """
    call = run.device
    if call is None:
        raise HostError("the steps inside an op are those of precision device: debug --precision device")
    op: Op = run.op
    if op.gradient_op:
        raise HostError(f"op {op.name} adds to a sum that was there before: its steps cannot be run once more")
    units = RecordingUnits(call.core)
    behaviour = device_op(call.op.type)
    registers = behaviour.registers(call)
    sources = [
        base.stored_operand(bits, call, n, register, registers.dst, base.arrangement(call.op, n))
        for n, (bits, register) in enumerate(zip(operands, registers.inputs, strict=True))
    ]
    maker = behaviour.maker(base.Job(call, registers, sources, None, 1, units, serial))
    out = Bits.empty(op.out_df, 1)
    if isinstance(maker, base.Filler):
        maker.fill(tile, tile + 1, out)
        return units.steps, out
    product = maker(tile, tile + 1)
    if isinstance(product, Bits):
        out.assign(slice(None), product)
    else:
        dims = base.result_dims(call)
        dst = base.DstTiles(blank_words(product.image, dims), product.mode)
        base.pack_tiles(units, dst, op.out_df, base.packing_of(call, registers), out)
    return units.steps, out


def trace_inside_op(run: Session, name: str, tile: tuple[int, int, int]) -> tuple[list[UnitStep], bool | None]:
    """Return the unit steps of one tile (t, row, column) of an op's result in the running input, and whether the tile
    that they pack equals that of the run bit for bit (None where the op has not run yet). Raises HostError,
    UnsupportedError."""
    op = run.names.op(name)
    engine = run.engine
    if run.precision != "device":
        raise HostError("the steps inside an op are those of precision device: debug --precision device")
    if op.graph not in engine.graphs:
        raise HostError(f"op {name} is not in the epoch that runs: break op {name}, continue")
    topo = engine.topology(op.graph)
    labels = {queue.name: queue.df for queue in run.netlist.queues.values()}
    plan = build_plan(run.netlist, topo, labels, True, core_of(run.netlist.arch_name))
    step = next(candidate for candidate in plan.steps if isinstance(candidate, Run) and candidate.op.name == name)
    operands = [_operand_bits(run, source) for source in op.inputs]
    number = _tile_number(op, plan.tiles[step.value], tile)
    steps, packed = engine.call(lambda: trace_tile(step, operands, number))
    result = engine.values.get(name)
    if result is None:
        return steps, None
    return steps, packed.values()[0].tobytes() == result[0, number].tobytes()


def _tile_number(op: Op, tiles: int, tile: tuple[int, int, int]) -> int:
    """Return the index of a tile (t, row, column) in an op's result, which has `tiles` tiles. Raises HostError for a
    tile that does not exist."""
    t, rows, columns = shape_of(op, tiles)
    at, row, column = tile
    if not (0 <= at < t and 0 <= row < rows and 0 <= column < columns):
        raise HostError(f"op {op.name} gives t {t}, {rows} x {columns} tiles: no tile {at},{row},{column}")
    return (at * rows + row) * columns + column


def _operand_bits(run: Session, name: str) -> Bits:
    """Return an operand of an op (a queue or op by name) as the machine has it in the running input: Bits [1, tiles].
    Raises HostError for an op that has not run yet in this input."""
    values = run.engine.values.get(name)
    source: object = run.netlist.queues.get(name)
    if values is None and isinstance(source, Queue) and not source.host_fed:  # what the epoch has just pushed
        values = run.engine.values.get(source.input)
    if values is not None:
        df = source.df if isinstance(source, Queue) else run.names.op(name).out_df
        return Bits.encode(df, values)
    if isinstance(source, Queue):
        entry = run.engine.call(lambda: queue_entry(run.engine, source, None))
        assert entry.bits is not None
        return entry.bits[None]
    raise HostError(f"{name}, which the op reads, has not run in this input yet: go on to the op first")
