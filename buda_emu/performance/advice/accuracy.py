"""What a change costs in accuracy: the ops that it touches, in the chip's arithmetic, against float32.

Operands are random, standard normal, positive for functions of positive numbers; each op computes one input by itself.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensix.registers import core_of
from buda_emu.emulator.op_errors.op_apart import ErrorSum
from buda_emu.emulator.op_errors.op_variants import Ideal, compute_op
from buda_emu.emulator.ops.base import serial
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.operands import run_relu
from buda_emu.emulator.runtime.graph.plan import build_plan, following_relu
from buda_emu.emulator.runtime.graph.steps import Run, topology
from buda_emu.netlist.model import Netlist, Op
from buda_emu.performance.advice.edits import Edit, edited
from buda_emu.spec.formats import is_integer, is_raw
from buda_emu.support.errors import BudaError

MOST_PRODUCTS: Final = 20_000  # tile products, or tiles, of an op that is computed to see
_LEAST: Final = 1 / 16


@dataclass(frozen=True, slots=True)
class Loss:
    """PCC of an op's result against float32, before and after; `error`: its relative root mean square error after.

    None: not defined, as where the result is constant.
    """

    op: str
    pcc_before: float | None
    pcc_after: float | None
    error: float | None
    reason: str = ""  # why it could not be computed

    @property
    def pcc_lost(self) -> float:
        """What the change costs; infinite where it is not known."""
        if self.reason:
            return float("inf")
        return max((self.pcc_before or 0.0) - (self.pcc_after or 0.0), 0.0)


@dataclass(slots=True)
class Accuracy:
    """Computes losses, each once. `seed`: of the operands."""

    seed: int = 0
    _known: dict[tuple[Op, tuple[Edit, ...]], Loss] = field(default_factory=dict[tuple[Op, tuple[Edit, ...]], Loss])

    def loss(self, netlist: Netlist, edits: Sequence[Edit]) -> Loss:
        """Of the op that loses most, among those whose fields the edits change."""
        after = edited(netlist, edits)
        names = dict.fromkeys(edit.name for edit in edits if edit.kind == "op" and edit.path != ("grid_loc",))
        losses = [self._of(netlist, after, name, edits) for name in names]
        return max(losses, key=lambda item: item.pcc_lost)

    def _of(self, before: Netlist, after: Netlist, name: str, edits: Sequence[Edit]) -> Loss:
        key = before.ops[name], tuple(edit for edit in edits if edit.name == name)
        known = self._known.get(key)
        if known is None:
            try:
                known = self._computed(before, after, name)
            except BudaError as error:
                known = Loss(op=name, pcc_before=None, pcc_after=None, error=None, reason=str(error).splitlines()[0])
            self._known[key] = known
        return known

    def _computed(self, before: Netlist, after: Netlist, name: str) -> Loss:
        op = before.ops[name]
        reason = _unfit(op)
        if reason:
            return Loss(op=name, pcc_before=None, pcc_after=None, error=None, reason=reason)
        old = _step(before, name)
        new = _step(after, name)
        operands = [Ideal(self._operand(before, op, place), by_host=False) for place in range(len(op.inputs))]
        expected = np.empty((1, op.blocking.t * op.blocking.rows * op.blocking.cols, 1024), np.float32)
        sources = [operand.values for operand in operands]
        run_relu(old.implementation, old.call, sources, following_relu(op), expected, serial)
        found: list[ErrorSum] = []
        for step in (old, new):
            assert step.device is not None
            total = ErrorSum(op)
            total.add(expected, compute_op(step.device, operands, KernelUnits(step.device.core), serial))
            found.append(total)
        first, second = (total.result() for total in found)
        return Loss(name, first.pcc, second.pcc, second.rms)

    def _operand(self, netlist: Netlist, op: Op, place: int) -> NDArray[np.float32]:
        """The source tensor of an input, before TMs: float32[1, tiles, 1024]."""
        name = op.inputs[place]
        blocking = (netlist.queues.get(name) or netlist.ops[name]).blocking
        made = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        values = made.standard_normal((1, blocking.t * blocking.rows * blocking.cols, 1024), np.float32)
        return np.abs(values) + np.float32(_LEAST) if op.has("takes positive numbers") else values


def _unfit(op: Op) -> str:
    """Why an op cannot be computed by itself on made-up operands; "" where it can."""
    if any(is_raw(df) or is_integer(df) for df in (*op.in_df, op.out_df)):
        return "its operands are integers"
    if op.gradient_op:
        return "it adds to the previous content"
    inner = max(op.attributes.m_k, 1) * max(op.attributes.u_kt, 1) * max(op.attributes.z, 1)
    if op.blocking.t * op.blocking.rows * op.blocking.cols * inner > MOST_PRODUCTS:
        return "it is too large to be computed to see"
    return ""


def _step(netlist: Netlist, name: str) -> Run:
    """The op as planned for the device."""
    labels = {queue.name: queue.df for queue in netlist.queues.values()}
    graph = netlist.ops[name].graph
    temporal = next(item for item in netlist.temporal_graphs if graph in item.graphs)
    plan = build_plan(netlist, topology(netlist, temporal), labels, True, core_of(netlist.arch_name))
    return next(step for step in plan.steps if isinstance(step, Run) and step.op.name == name)
