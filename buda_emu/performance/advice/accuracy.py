"""The loss of accuracy of a change: the ops that it touches are computed in the chip's arithmetic and compared with
float32.

Operands are random, standard normal, positive for functions of positive numbers. Each op computes one input by
itself.
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
from buda_emu.performance.advice.edits import Edit, apply_edits
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import is_integer, is_raw
from buda_emu.support.errors import BudaError

MOST_PRODUCTS: Final = 20_000  # tile products, or tiles, of an op that is computed to see
_LEAST: Final = 1 / 16  # of operands where the function is steep, or has no value, at 0


@dataclass(frozen=True, slots=True)
class Loss:
    """PCC of an op's result against float32, before and after a change, and its relative root mean square error after
    it.

    A figure is None if it is not defined, for example for a constant result. `reason` says why the op could not be
    computed.
    """

    op: str
    pcc_before: float | None
    pcc_after: float | None
    error: float | None
    reason: str = ""  # why it could not be computed

    @property
    def pcc_lost(self) -> float:
        """Return the PCC that the change costs; infinite if the op could not be computed."""
        if self.reason:
            return float("inf")
        return max((self.pcc_before or 0.0) - (self.pcc_after or 0.0), 0.0)


@dataclass(slots=True)
class Accuracy:
    """Computes losses, each once. `seed` is that of the operands."""

    seed: int = 0
    _known: dict[tuple[Op, tuple[Edit, ...]], Loss] = field(default_factory=dict[tuple[Op, tuple[Edit, ...]], Loss])

    def loss(self, netlist: Netlist, edits: Sequence[Edit]) -> Loss:
        """Return the loss of the op that loses most, among the ops whose fields the edits change. Edits that only move
        an op (grid_loc) do not count; raises ValueError if no other edit is of an op."""
        after = apply_edits(netlist, edits)
        names = dict.fromkeys(edit.name for edit in edits if edit.kind == "op" and edit.path != ("grid_loc",))
        losses = [self._loss_of_op(netlist, after, name, edits) for name in names]
        return max(losses, key=lambda loss: loss.pcc_lost)

    def _loss_of_op(self, before: Netlist, after: Netlist, name: str, edits: Sequence[Edit]) -> Loss:
        """Return the loss of the op `name` by its own edits, from the cache if it was computed before. If it cannot be
        computed, the loss has the error's first line as its reason."""
        key = before.ops[name], tuple(edit for edit in edits if edit.name == name)
        loss = self._known.get(key)
        if loss is None:
            try:
                loss = self._compute_loss(before, after, name)
            except BudaError as error:
                loss = Loss(op=name, pcc_before=None, pcc_after=None, error=None, reason=str(error).splitlines()[0])
            self._known[key] = loss
        return loss

    def _compute_loss(self, before: Netlist, after: Netlist, name: str) -> Loss:
        """Compute the op `name` with and without the edits on equal operands, and return its loss against float32; for
        an op that cannot be measured on random operands, a loss that only has the reason. Raises BudaError if a plan
        cannot be made."""
        op = before.ops[name]
        reason = _unfit(op)
        if reason:
            return Loss(op=name, pcc_before=None, pcc_after=None, error=None, reason=reason)
        old = _plan_step(before, name)
        new = _plan_step(after, name)
        operands = [Ideal(self._operand(before, op, place), by_host=False) for place in range(len(op.inputs))]
        expected = np.empty((1, op.blocking.t * op.blocking.rows * op.blocking.cols, TILE_ELEMENTS), np.float32)
        sources = [operand.values for operand in operands]
        run_relu(old.implementation, old.call, sources, following_relu(op), expected, serial)
        totals: list[ErrorSum] = []
        for step in (old, new):
            assert step.device is not None
            total = ErrorSum(op)
            total.add(expected, compute_op(step.device, operands, KernelUnits(step.device.core), serial))
            totals.append(total)
        first, second = (total.result() for total in totals)
        return Loss(name, first.pcc, second.pcc, second.rms)

    def _operand(self, netlist: Netlist, op: Op, place: int) -> NDArray[np.float32]:
        """Return random values of the source tensor of input `place`, before TMs: float32[1, tiles, 1024]. Equal
        sources get equal values."""
        name = op.inputs[place]
        blocking = (netlist.queues.get(name) or netlist.ops[name]).blocking
        random = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        values = random.standard_normal((1, blocking.t * blocking.rows * blocking.cols, TILE_ELEMENTS), np.float32)
        if op.has("takes positive numbers"):
            return np.abs(values) + np.float32(_LEAST)
        return values


def _unfit(op: Op) -> str:
    """Return why the accuracy of an op is not measured on random operands: integers or raw words, sums into earlier
    content, or too many products; "" if it is."""
    if any(is_raw(df) or is_integer(df) for df in (*op.in_df, op.out_df)):
        return "its operands are integers"
    if op.gradient_op:
        return "it adds to the previous content"
    inner = max(op.attributes.m_k, 1) * max(op.attributes.u_kt, 1) * max(op.attributes.z, 1)
    if op.blocking.t * op.blocking.rows * op.blocking.cols * inner > MOST_PRODUCTS:
        return "it is too large to be computed to see"
    return ""


def _plan_step(netlist: Netlist, name: str) -> Run:
    """Return the step that runs the op `name` in a plan of its temporal graph for the device."""
    labels = {queue.name: queue.df for queue in netlist.queues.values()}
    graph = netlist.ops[name].graph
    temporal = next(candidate for candidate in netlist.temporal_graphs if graph in candidate.graphs)
    plan = build_plan(netlist, topology(netlist, temporal), labels, True, core_of(netlist.arch_name))
    return next(step for step in plan.steps if isinstance(step, Run) and step.op.name == name)
