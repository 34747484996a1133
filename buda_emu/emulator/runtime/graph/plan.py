"""Plans a temporal graph as numbered steps on numbered tensors, once for each set of source labels (DESIGN: plan).

Labels (OPS 3.1) decide conversions, so the plan is made for the labels that the sources carry."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.tensor.tilemap import TileMap, TmError, require_tiles
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand, PlannedOp
from buda_emu.emulator.ops.common import passes_on
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run, Same, Step, Topology, reads_of, uses
from buda_emu.netlist.model import Netlist, Op, Pad, Tm
from buda_emu.spec.blocking import Shape
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import ProgramError, UnsupportedError

if TYPE_CHECKING:  # what only precision "device" needs is loaded when a plan for it is made
    from buda_emu.arithmetic.tensix.registers import Core

FORWARD = "<forward>"  # in place of a label: the entry read is the one that the graph has just pushed
_TRUNCATED_INPUTS = ("Bfp4", "Bfp4_b", "Bfp2", "Bfp2_b")  # OPS 3 steps 5 and 9


def following_relu(op: Op) -> tuple[str, float] | None:
    """Return mode and threshold of the relu that follows an op, None without one. A fused op has its relu inside."""
    if op.has("sub-ops"):
        return None
    return op.attributes.relu


def build_plan(
    netlist: Netlist, topology: Topology, labels: Mapping[str, str], quantised: bool, core: "Core | None" = None
) -> Plan:
    """Plan a temporal graph for sources that carry `labels` (a format name, or FORWARD for a local queue). `core` is
    the one whose arithmetic the ops have in precision "device", where a label is the format of the bits.

    Raises ProgramError where the reference would abort on shapes, UnsupportedError for what is not emulated."""
    return _Builder(netlist, topology, labels, quantised, core).build()


class _Builder:
    def __init__(
        self, netlist: Netlist, topology: Topology, labels: Mapping[str, str], quantised: bool, core: "Core | None"
    ) -> None:
        self._netlist = netlist
        self._topology = topology
        self._labels = labels
        self._quantised = quantised and core is None  # on the device no operand is converted before the op
        self._core: Core | None = core
        self._steps: list[Step | Push] = []
        self._shapes: list[Shape] = []
        self._value_labels: list[str] = []
        self._values: dict[tuple[str, bool], int] = {}  # (queue or op name, flat) -> tensor
        self._converted: dict[tuple[int, str], int] = {}

    def build(self) -> Plan:
        """Return the plan for these labels: its steps, what each of them frees, and the most tiles that are alive at
        once."""
        self._add_steps()
        tiles = tuple(t * r * c for t, r, c in self._shapes)
        releases = self._releases()
        read_values: set[int] = set()
        for step in self._steps:
            read_values.update(reads_of(step))
        pushes = tuple(step for step in self._steps if isinstance(step, Push))
        direct = tuple(push for push in pushes if push.map is None and not self._netlist.queues[push.queue].is_ram)
        reads = tuple(step for step in self._steps if isinstance(step, Read))
        in_queues = {step.value for step in reads} | {push.value for push in direct}
        intermediate_tiles = tuple(0 if n in in_queues else count for n, count in enumerate(tiles))
        steps = [(step, freed) for step, freed in zip(self._steps, releases, strict=True) if not isinstance(step, Push)]
        return Plan(
            steps=tuple(step for step, _ in steps),
            reads=reads,
            pushes=pushes,
            tiles=tiles,
            releases=tuple(freed for _, freed in steps),
            only_pushed=tuple(value not in read_values for value in range(len(tiles))),
            direct=direct,
            peak_tiles=_peak_tiles(self._steps, tiles, releases),
            own_tiles=_peak_tiles(self._steps, intermediate_tiles, releases),
            labels=tuple(self._value_labels),
        )

    def _add_steps(self) -> None:
        """Append the reads of queues, then the ops with their conversions and pushes. Raises ProgramError naming queue
        or op, UnsupportedError."""
        for name in self._topology.reads:
            try:
                self._read(name, flat=False)
            except TmError as error:
                raise ProgramError(f"queue {name}: {error}", kind="op", queue=name) from None
        for op in self._topology.ops:
            try:
                self._add_op(op)
            except TmError as error:
                raise ProgramError(f"op {op.name}: {error}", kind="op", op=op.name) from None
            except ProgramError as error:
                error.belongs_to(op.name)
                raise

    def _add_tensor(self, shape: Shape, label: str) -> int:
        """Add a tensor of this shape in tiles and this label to the plan, and return its number. Raises TmError where
        it is empty or too large."""
        require_tiles(shape)
        self._shapes.append(shape)
        self._value_labels.append(label)
        return len(self._shapes) - 1

    def _read(self, queue: str, flat: bool) -> int:
        """Return the tensor of a queue's entries; at the first request this appends the step that reads them. `flat`:
        the row-major host data instead of tiles."""
        key = (queue, flat)
        if key not in self._values:
            value = self._add_tensor(self._netlist.queues[queue].blocking.shape, self._labels[queue])
            self._steps.append(Read(queue, value, flat))
            self._values[key] = value
        return self._values[key]

    def _input_tensor(self, name: str, op: Op) -> int:
        """Return the tensor of an op's input, `name`; appends a read where a queue that the graph also feeds is first
        read here. Raises ProgramError for an input that is not part of the temporal graph."""
        if (name, False) in self._values:
            return self._values[name, False]
        if name in self._topology.local:
            return self._read(name, flat=False)  # stored entry of a queue that the graph also feeds
        raise ProgramError(f"op {op.name}: input {name} is not part of temporal graph {self._topology.graphs}")

    def _add_op(self, op: Op) -> None:
        """Append the steps of an op: conversions of its inputs, the op, and the pushes of its result. Raises
        ProgramError, UnsupportedError, TmError."""
        queues = self._netlist.queues
        declared = OP_TYPES[op.type]
        inputs: list[int] = []
        operands: list[Operand] = []
        for position, name in enumerate(op.inputs):
            value = self._input_tensor(name, op)
            operand = self._operand(op, position, value)
            if declared.has("reads what was pushed"):
                # OPS 6.10: takes the unquantised row-major data as pushed; 12 (3.1): the label is that of any operand
                if name not in queues or queues[name].layout != "flat":
                    problem = f"{op.type} reads {name}, which is not a queue with layout flat"
                    raise UnsupportedError(f"op {op.name}: {problem}")
                label = self._input_format(operand.label) or operand.label
                operand = replace(operand, tile_dim=queues[name].blocking.tile_dim, label=label)
                if self._core is None:
                    value = self._read(name, flat=True)
            else:
                value, operand = self._truncate(value, operand)
            inputs.append(value)
            operands.append(operand)
        fused = None
        if declared.has("sub-ops"):
            fused = self._netlist.fused_ops[op.attributes.fused_op_id]
        call = PlannedOp(
            name=op.name,
            type=op.type,
            attributes=op.attributes,
            blocking=op.blocking,
            operands=tuple(operands),
            transpose=op.transpose,
            vector=op.vector,
            out_df=op.out_df,
            intermed_df=op.intermed_df,
            acc_df=op.acc_df,
            undefined_is_nan=self._netlist.undefined_is_nan,
            fused=fused,
        )
        implementation = ops.implementation(op.type)
        shape = implementation.shape(call)
        fed = self._topology.sinks.get(op.name, ())
        if self._core is not None:
            from buda_emu.emulator.ops.on_device.base import device_call

            device = device_call(call, op, self._core)
            value = self._add_tensor(shape, op.out_df)
            self._add(
                Run(
                    op=op,
                    call=call,
                    implementation=implementation,
                    inputs=tuple(inputs),
                    value=value,
                    relu=None,
                    output_format="",
                    fed=fed,
                    device=device,
                )
            )
            return
        output_format = self._output_format(op)
        relu = following_relu(op)
        if passes_on(call) and relu is None and not output_format and self._may_share(op, inputs[0]):
            self._add(Same(op, inputs[0]))
            return
        value = self._add_tensor(shape, output_format or implementation.label(call))
        self._add(
            Run(
                op=op,
                call=call,
                implementation=implementation,
                inputs=tuple(inputs),
                value=value,
                relu=relu,
                output_format=output_format,
                fed=fed,
            )
        )

    def _may_share(self, op: Op, value: int) -> bool:
        """Return whether an op that changes nothing may give its input, the tensor `value`, as its result, without a
        copy. Not if its results are summed up; nor if its result is pushed and the tensor is the memory of a queue,
        which another push may overwrite first."""
        if op.gradient_op:
            return False
        pushed = op.name in self._topology.sinks
        return not (pushed and any(isinstance(step, Read) and step.value == value for step in self._steps))

    def _add(self, step: Run | Same) -> None:
        """Append an op's step, make its tensor the result of the op, and append pushes into the queues that the op
        feeds."""
        self._steps.append(step)
        self._values[step.op.name, False] = step.value
        for queue in self._topology.sinks.get(step.op.name, ()):
            self._push(queue, step.value)

    def _operand(self, op: Op, position: int, value: int) -> Operand:
        """Return an op's input at `position`, the tensor `value`, with unpad, TMs and pad folded into one tile map (OPS
        3 steps 2-4). For an entry that the same graph has just pushed, the TMs of its queue come first (NETLIST 4.7).
        Raises TmError."""
        tile_map = TileMap.identity(self._shapes[value])
        name = op.inputs[position]
        for tm in self._netlist.queues[name].input_tms if self._labels.get(name) == FORWARD else ():
            tile_map = apply_tm(tile_map, tm)
        unpad = _pad_at(op.input_unpad, position)
        pad = _pad_at(op.input_pad, position)
        if unpad.rt or unpad.ct:
            tile_map = tile_map.unpad(unpad.rt, unpad.ct)
        for tm in op.input_tms[position] if position < len(op.input_tms) else ():
            tile_map = apply_tm(tile_map, tm)
        if pad.rt or pad.ct:
            tile_map = tile_map.pad(pad.rt, pad.ct, pad.value)
        return Operand(tile_map, op.input_tile_dims[position], self._value_labels[value])

    def _truncate(self, value: int, operand: Operand) -> tuple[int, Operand]:
        """Return tensor and operand after the conversion to the operand's input format (OPS 3 step 5); appends that
        step once for each tensor and format, none where the format needs no conversion. It works on source tiles: TMs
        move whole tiles, so the order does not matter."""
        target = self._input_format(operand.label)
        if not target:
            return value, operand
        key = (value, target)
        if key not in self._converted:
            converted = self._add_tensor(self._shapes[value], target)
            self._steps.append(Convert(value, converted, target))
            self._converted[key] = converted
        pad_tile = np.full((1, 32, 32), operand.map.pad_value, np.float32)
        pad_value = float(quantise(target, pad_tile, rounding="truncate")[0, 0, 0])
        return self._converted[key], replace(operand, map=replace(operand.map, pad_value=pad_value), label=target)

    def _input_format(self, label: str) -> str:
        """Return the format that an operand of this label is truncated to before an op (OPS 3 step 5), "" for none."""
        if self._quantised and label == "Float32" and self._netlist.arch.tf32_inputs:
            return "Tf32"
        if self._quantised and label in _TRUNCATED_INPUTS:
            return label
        return ""

    def _output_format(self, op: Op) -> str:
        """Return the format that an op's result is converted to (OPS 3 step 9), "" for none."""
        spec = FORMATS[op.out_df]
        integer = op.out_df in ("Int8", "Int32")
        narrow_block = self._quantised and spec.name in _TRUNCATED_INPUTS
        if not (integer or narrow_block):
            return ""
        if op.has("rounds to Int8") or op.attributes.requant:
            return "Int8"
        return op.out_df

    def _push(self, queue: str, value: int) -> None:
        """Append the push of a tensor into a queue, through the queue's TMs. Raises ProgramError where its dims are not
        those of the entries, UnsupportedError in precision "device" where its format is not the queue's."""
        spec = self._netlist.queues[queue]
        tile_map = None
        if spec.input_tms:
            tile_map = TileMap.identity(self._shapes[value])
            for tm in spec.input_tms:
                tile_map = apply_tm(tile_map, tm)
        if tile_map is None:
            shape = self._shapes[value]
        else:
            shape = tile_map.shape
        if shape != spec.blocking.shape:
            raise ProgramError(
                f"op {spec.input} writes {_dims_text(shape)} into {spec.type} {queue}, "
                f"whose entries are {_dims_text(spec.blocking.shape)}"
            )
        label = self._value_labels[value]
        if self._core is not None and label != spec.df:
            raise UnsupportedError(
                f"op {spec.input} writes {label} into {spec.type} {queue} of {spec.df}: precision device does not read "
                "the bits of one format as another (V079)",
                rule="V079",
            )
        self._steps.append(Push(queue, value, tile_map, label))
        if self._labels.get(queue) == FORWARD:
            self._values[queue, False] = value

    def _releases(self) -> tuple[tuple[int, ...], ...]:
        """Return, for each step, the tensors whose last use it is. Pushed tensors are in none: they live until the
        chunk's end."""
        last: dict[int, int] = {}
        pushed = {step.value for step in self._steps if isinstance(step, Push)}
        for index, step in enumerate(self._steps):
            for value in uses(step):
                last[value] = index
        freed: list[list[int]] = [[] for _ in self._steps]
        for value, index in last.items():
            if value not in pushed:
                freed[index].append(value)
        return tuple(tuple(values) for values in freed)


def apply_tm(tile_map: TileMap, tm: Tm) -> TileMap:
    """Return a map with one TM of the netlist applied after it (OPS 7). Raises TmError where the shape does not allow
    it."""
    match tm.name:
        case "broadcast":
            return tile_map.broadcast(str(tm.args[0]), int(tm.args[1]))
        case "hslice":
            return tile_map.hslice(int(tm.args[0]))
        case "vslice":
            return tile_map.vslice(int(tm.args[0]))
        case "hstack":
            return tile_map.hstack(int(tm.args[0]))
        case "vstack":
            return tile_map.vstack(int(tm.args[0]))
        case "transpose":
            return tile_map.transpose()
        case "pad":
            return tile_map.pad(int(tm.args[0]), int(tm.args[1]), float(tm.args[2]))
        case _:
            raise TmError(f"TM {tm.name} is not legal here")


def _pad_at(pads: tuple[Pad, ...], position: int) -> Pad:
    """Return the pad at a position, an empty one where the list ends before."""
    return pads[position] if position < len(pads) else Pad()


def _dims_text(shape: Shape) -> str:
    """Return a shape in words for messages."""
    return f"t={shape[0]} {shape[1]}x{shape[2]} tiles"


def _peak_tiles(steps: list[Step | Push], tiles: tuple[int, ...], releases: tuple[tuple[int, ...], ...]) -> int:
    """Return the most tiles alive at once for one input. `tiles`: the count for each tensor; `releases`: the tensors
    freed after each step."""
    alive = peak = 0
    seen: set[int] = set()
    for step, freed in zip(steps, releases, strict=True):
        for value in uses(step):
            if value not in seen:
                seen.add(value)
                alive += tiles[value]
        peak = max(peak, alive)
        alive -= sum(tiles[value] for value in freed)
    return peak
