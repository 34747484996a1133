"""matmul, dense and identity (DEVICE_NUMERICS 2.2, 2.8, 6.2)."""

from dataclasses import replace

import numpy as np

from buda_emu.ops.matmul.sparse_device import identity_maker
from buda_emu.ops.on_device.accumulation import Accumulation, require_stored, tail_sources
from buda_emu.ops.on_device.base import DeviceCall, Job, Maker, on_device
from buda_emu.ops.on_device.operands import Stored, frozen
from buda_emu.ops.on_device.units import Product, Words
from buda_emu.tensix.registers import OpRegisters


@on_device("matmul")
class Matmul:
    """Input 1 in SrcA, input 0 in SrcB; m_k blocks of u_kt inner tiles, z times as many with accumulate."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Of all operands but the encoding of an identity matmul, which no unit reads."""
        if not call.op.attributes.identity:
            return call.registers()
        numbers = [n for n in range(len(call.dfs)) if n != 2]
        found = call.registers(numbers)
        return replace(found, inputs=(*found.inputs[:2], "", *found.inputs[2:]))

    def maker(self, job: Job) -> Maker:
        return matmul_maker(job)


def matmul_maker(job: Job) -> Maker:
    """What makes the tiles of a matmul, of its own or in a fused op."""
    call, registers, sources, units, parallel = job.call, job.registers, job.sources, job.units, job.parallel
    op, entries = call.op, job.entries
    bias, scale = tail_sources(call, sources, 3 if op.attributes.identity else 2)
    around = Accumulation(call, registers, units, bias, scale, job.previous)
    left, right = (require_stored(call, source) for source in sources[:2])
    dims = op.operands[1].tile_dim
    if op.attributes.identity:
        encoding = sources[2]
        assert isinstance(encoding, Stored)
        return identity_maker(job, around, left, right, encoding.bits)
    in0 = left.product_words(units, parallel, op.operands[0].tile_dim)
    in1 = right.product_words(units, parallel, (dims[1], dims[0]) if op.transpose else dims)
    faces = 1 if min(op.operands[0].tile_dim[1], dims[0]) <= 16 else 2
    return _dense(call, around, in0, in1, faces, entries)


def _dense(call: DeviceCall, around: Accumulation, in0: Words, in1: Words, faces: int, entries: int) -> Maker:
    op = call.op
    (t, rows, inner), cols = op.operands[0].map.shape, op.operands[1].map.shape[2]
    z = op.attributes.z if op.attributes.accumulate else 1
    product = Product(rows, inner, cols, faces, call.fidelity)
    dst = around.units.room(entries, t // z * rows * cols)
    ends = np.arange(1, inner + 1) % op.attributes.u_kt == 0
    blocks = [
        block
        for s in range(z)
        for block in around.blocks(
            _every(in0, t, rows * inner, s, z), _every(in1, t, inner * cols, s, z), product, ends
        )
    ]
    return lambda start, stop: around.run(blocks, dst, start, stop)


def _every(words: Words, t: int, per_slice: int, first: int, step: int) -> Words:
    """The operand with only the t slices first, first + step, ... of `t`; it may have more."""
    if step == 1:
        return words
    return replace(words, index=frozen(words.index[: t * per_slice].reshape(t, per_slice)[first::step]))
