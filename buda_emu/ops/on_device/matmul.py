"""matmul, dense and identity (DEVICE_NUMERICS 2.2, 2.8, 6.2)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from buda_emu.numerics.bits import U32
from buda_emu.numerics.stored import TILE_ELEMENTS, Bits
from buda_emu.ops import sparse
from buda_emu.ops.on_device.accumulation import Accumulation, require_stored, tail_sources
from buda_emu.ops.on_device.base import DeviceCall, Job, Made, Maker, Packing, on_device, packed
from buda_emu.ops.on_device.operands import Stored
from buda_emu.ops.on_device.units import Index, Product, Words
from buda_emu.tensix.lanes import DstMode
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
        """See `DeviceOp`."""
        return matmul_maker(job)


def matmul_maker(job: Job) -> Maker:
    """What makes the tiles of a matmul, of its own or in a fused op."""
    call, registers, sources, units, parallel = job.call, job.registers, job.sources, job.units, job.parallel
    op, entries = call.op, job.entries
    bias, scale = tail_sources(call, sources, 3 if op.attributes.identity else 2)
    around = Accumulation(call, registers, units, bias, scale, job.previous)
    left, right = (require_stored(call, source) for source in sources[:2])
    dims = op.operands[1].tile_dim
    in0 = left.all_words(units, parallel, op.operands[0].tile_dim)
    in1 = right.all_words(units, parallel, (dims[1], dims[0]) if op.transpose else dims)
    faces = 1 if min(op.operands[0].tile_dim[1], dims[0]) <= 16 else 2
    if op.attributes.identity:
        encoding = sources[2]
        assert isinstance(encoding, Stored)
        return _Sparse(call, around, in0, in1, faces, registers.dst, entries).maker(encoding.bits)
    return _dense(call, around, in0, in1, faces, entries)


def _dense(
    call: DeviceCall, around: Accumulation, in0: Words, in1: Words, faces: int, entries: int
) -> Maker:  # fmt: skip
    op = call.op
    (t, rows, inner), cols = op.operands[0].map.shape, op.operands[1].map.shape[2]
    z = op.attributes.z if op.attributes.accumulate else 1
    product = Product(rows, inner, cols, faces, call.fidelity)
    dst = np.empty((entries, t // z * rows * cols, TILE_ELEMENTS), np.uint32)
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


def frozen(index: Index) -> Index:
    """A contiguous index array, read-only as those of tile maps: one compiled kernel serves both."""
    index = np.ascontiguousarray(index, np.int32).reshape(-1)
    index.flags.writeable = False
    return index


@dataclass(frozen=True, slots=True)
class _Sparse:
    """An identity matmul: the tile products of the encoding in its order, one inner tile each. Where a result tile's
    products come from several strips, it is spilled after each (6.2, inferred)."""

    call: DeviceCall
    around: Accumulation
    weights: Words
    acts: Words
    faces: int
    mode: DstMode
    entries: int

    def maker(self, encoding: Bits) -> Maker:
        """`encoding`: input 2, [w or 1, tiles]."""
        op = self.call.op
        operand = op.operands[2]
        values = operand.map.apply(encoding.values().reshape(len(encoding), *operand.map.source_shape, 32, 32))
        terms = [sparse.collect(op, entry) for entry in values]
        dst = np.empty((self.entries, op.blocking.rows * op.blocking.t * op.blocking.cols, TILE_ELEMENTS), np.uint32)
        cols = op.blocking.cols
        group_cols = cols // op.attributes.fracture_factor
        rows = dst.shape[1] // cols
        begins = [one.begin.tolist() for one in terms]

        of_entry = [(np.diff(one.begin, axis=1) > 0).T.reshape(-1) for one in terms]
        busy = np.concatenate(of_entry if len(terms) > 1 else of_entry * self.entries)

        def run(start: int, end: int) -> Made | Bits:
            """Neighbours that have the same terms."""
            entry, row = divmod(start // cols, rows)
            number, group = (entry if len(terms) > 1 else 0), start % cols // group_cols
            begin, after = begins[number][group][row : row + 2]
            return self._run(terms[number], slice(begin, after), dst, entry, row, start, end)

        def cut(start: int, stop: int) -> Iterator[tuple[int, int]]:
            """Rows of tiles, or the column groups of them."""
            while start < stop:
                end = min(stop, (start // group_cols + 1) * group_cols)
                yield start, end
                start = end

        def sums(start: int, stop: int) -> Made:
            """Where nothing follows the products they are in Dst, and most rows of tiles have none."""
            flat = dst.reshape(-1, TILE_ELEMENTS)
            flat[start:stop] = 0
            first, last = start // group_cols, (stop - 1) // group_cols + 1
            for number in (first + np.flatnonzero(busy[first:last])).tolist():
                run(max(start, number * group_cols), min(stop, (number + 1) * group_cols))
            return Made(flat[start:stop], self.mode)

        def tiles(start: int, stop: int) -> Made | Bits:
            return joined([run(*part) for part in cut(start, stop)], self._packed)

        return sums if self.around.sums_only else tiles

    def _packed(self, made: Made) -> Bits:
        packing = Packing(self.around.registers.integer, from_single=self.call.makes_output_of_single)
        return packed(self.around.units, made, self.call.op.out_df, packing)

    def _run(
        self, terms: sparse.Terms, own: slice, dst: U32, entry: int, row: int, start: int, stop: int
    ) -> Made | Bits:
        op, cols = self.call.op, self.call.op.blocking.cols
        begin, end = own.start, own.stop
        act_rows = terms.act_row[begin:end]
        in0 = _of_entry(self.weights, entry, self.weights.index[terms.weight[begin:end]])
        in1 = _of_entry(self.acts, entry, self.acts.index.reshape(-1, cols)[act_rows])
        product = Product(1, end - begin, cols, self.faces, self.call.fidelity)
        view = dst[entry : entry + 1, row * cols : (row + 1) * cols]
        first = start % cols

        strips = act_rows // op.attributes.u_kt
        ends = np.append(np.diff(strips) != 0, True)[: end - begin]
        blocks = self.around.blocks(in0, in1, product, ends)
        return self.around.run(blocks, view, first, first + stop - start, start)


def _of_entry(words: Words, entry: int, index: Index) -> Words:
    tiles = words.tiles if len(words.tiles) == 1 else words.tiles[entry : entry + 1]
    return replace(words, tiles=tiles, index=frozen(index))


def joined(made: Sequence[Made | Bits], pack: Callable[[Made], Bits]) -> Made | Bits:
    """Neighbours as one; where some have been summed up in L1, all are packed."""
    images = [part for part in made if isinstance(part, Made)]
    if len(images) == len(made):
        return Made(np.concatenate([part.image for part in images]), images[0].mode)
    parts = [pack(part) if isinstance(part, Made) else part for part in made]
    exponents = [part.exponents for part in parts if part.exponents is not None]
    datums = np.concatenate([part.datums for part in parts])
    return Bits(parts[0].df, datums, np.concatenate(exponents) if exponents else None)
