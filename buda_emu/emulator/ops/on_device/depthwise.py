"""depthwise: m_k blocks of one inner tile each (DEVICE_NUMERICS 2.8)."""

from dataclasses import replace

import numpy as np

from buda_emu.emulator.ops.on_device.accumulation import Accumulation, require_in_l1, tail_sources
from buda_emu.emulator.ops.on_device.base import DeviceOp, Job, Maker, on_device
from buda_emu.emulator.ops.on_device.operands import frozen
from buda_emu.emulator.ops.on_device.units import Product
from buda_emu.spec.blocking import FULL_TILE


@on_device("depthwise")
class Depthwise(DeviceOp):
    """A matmul whose tile (r, c) has the inner tiles in0[r][c + b * C] and in1[b][c]."""

    def maker(self, job: Job) -> Maker:
        """Return the maker of a matmul of one row and column per tile, whose m_k inner tiles are spilled after each.
        Raises UnsupportedError."""
        call = job.call
        registers = job.registers
        sources = job.sources
        units = job.units
        op = call.op
        entries = job.entries
        parallel = job.parallel
        bias, _ = tail_sources(call, sources, 2)
        around = Accumulation(call=call, registers=registers, units=units, bias=bias, scale=None, previous=job.previous)
        in0, in1 = (require_in_l1(call, source).product_words(units, parallel, FULL_TILE) for source in sources[:2])
        t, rows, width = op.operands[0].map.shape
        m_k = op.attributes.m_k
        cols = op.operands[1].map.shape[2]
        data = in0.index.reshape(t, rows, m_k, cols).transpose(0, 1, 3, 2)
        weights = in1.index[: t * m_k * cols].reshape(t, 1, m_k, cols).transpose(0, 1, 3, 2)
        in0 = replace(in0, index=frozen(data))
        in1 = replace(in1, index=frozen(np.broadcast_to(weights, data.shape)))
        product = Product(rows=1, inner=m_k, cols=1, faces=2, fidelity=call.fidelity)
        dst = job.units.room(entries, t * rows * width // m_k)

        blocks = around.blocks(in0, in1, product, np.ones(m_k, np.bool_))
        return lambda start, stop: around.run(blocks, dst, start, stop)
