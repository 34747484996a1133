"""The steps of matmul, dense and identity, on the device (DEVICE_NUMERICS 2.2, 2.8, 6.2), and of depthwise, a matmul of
m_k blocks of one inner tile each (2.8)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tensix.picks import Picks
from buda_emu.arithmetic.kernels.tiles.tile_memory import TRANSPOSE
from buda_emu.arithmetic.tensix.registers import OpRegisters
from buda_emu.emulator.ops import matmul_sparse
from buda_emu.emulator.ops.base import PlannedOp
from buda_emu.emulator.ops.on_device.accumulation import Accumulation, Block, require_in_l1, tail_sources
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DeviceOp,
    DstTiles,
    Job,
    Maker,
    Packing,
    on_device,
    pack_tiles,
)
from buda_emu.emulator.ops.on_device.operands import Stored, frozen
from buda_emu.emulator.ops.on_device.units import Index, Picking, Product, Words
from buda_emu.spec.blocking import FULL_TILE, TILE_EDGE, TILE_ELEMENTS
from buda_emu.spec.single import INFINITY

Pick = Callable[[U32, int, int], None]
"""A function that adds the products of tiles start..stop to images[stop - start, 1024]."""

_NONE: Final = np.zeros(0, np.bool_)


def identity_maker(job: Job, around: Accumulation, weights: Stored, acts: Stored, encoding: Bits) -> Maker:
    """Return the function that makes tiles of an identity (sparse) matmul. Where each line of a weight tile has at most
    one element, a product only picks lines of activations; result rows with such products alone are made by picks,
    which is faster, the others by tile products. `around`: the steps around the blocks; `weights`, `acts`: inputs 0 and
    1; `encoding`: input 2, [w or 1, tiles]. Raises UnsupportedError, ProgramError for a bad encoding."""
    first, second = (operand.tile_dim for operand in job.call.op.operands[:2])
    in0 = weights.all_words(job.units, job.parallel, first)
    listed = _decode_encodings(job.call.op, encoding, in0)
    full_tiles = first == second == FULL_TILE
    faces = 1 if min(first[1], second[0]) <= 16 else 2
    product = _Identity(job, around, listed.terms, in0, acts, faces)
    if listed.picks is None or not (full_tiles and around.begins_empty):
        return product.maker()
    picked = listed.picked
    spill = None
    pad = acts.pad(job.units)
    transposed = acts.arrange == TRANSPOSE
    picking = Picking(listed.picks, acts.bits, acts.index, pad, transposed, acts.register, *product.columns)
    if around.all_in_l1 and picked.all() and job.call.op.blocking.tile_dim == FULL_TILE:
        df = job.call.op.out_df
        add_up = job.units.l1_picker(picking, job.call.fidelity, job.registers.dst, df)
        if add_up is not None:
            return _l1_maker(df, add_up)
    if job.call.op.attributes.l1_acc:
        picked = picked & ~listed.spilled  # with l1_acc spilled rows are added up in L1, not by picks
    elif listed.spilled.any():
        spill = around.spill(listed.picks.ends)
    return product.maker(job.units.picker(picking, job.call.fidelity, job.registers.dst, spill), picked)


def _l1_maker(df: str, add_up: Callable[[Bits, int, int], None]) -> Maker:
    """Return the function that makes tiles of format `df` by the L1 picker `add_up`."""

    def tiles(start: int, stop: int) -> Bits:
        """Make tiles start..stop."""
        out = Bits.empty(df, stop - start)
        add_up(out, start, stop)
        return out

    return tiles


class EncodedTerms(NamedTuple):
    """The decoded encodings of an op. `terms` has an element for each entry of the encoding. `picks` is None unless
    both encoding and weights have one entry. `picked` and `spilled`, bool[groups * rows], mark the rows of tiles whose
    terms are all picks, and those that are spilled between two strips."""

    encoding: Bits
    weights: U32
    terms: list[matmul_sparse.Terms]
    picks: Picks | None
    picked: NDArray[np.bool_]
    spilled: NDArray[np.bool_]


def _decode_encodings(op: PlannedOp, encoding: Bits, weights: Words) -> EncodedTerms:
    """Return the decoded encodings of an op. The op remembers the result, and it is used again while encoding and
    weights have the same bits, as they nearly always do. Raises ProgramError for a bad encoding."""
    remembered: EncodedTerms | None = op.memo.get("listed")
    if (
        remembered is not None
        and _equal_arrays(remembered.encoding.datums, encoding.datums)
        and _equal_arrays(remembered.weights, weights.tiles)
    ):
        return remembered
    operand = op.operands[2]
    values = operand.map.apply(encoding.values().reshape(len(encoding), *operand.map.source_shape, 32, 32))
    terms = [matmul_sparse.collect(op, entry) for entry in values]
    common_fields = encoding.copy(), weights.tiles.copy(), terms
    if len(terms) == len(weights.tiles) == 1:
        result = EncodedTerms(*common_fields, *_find_picks(terms[0], weights, op.attributes.u_kt))
    else:
        result = EncodedTerms(*common_fields, None, _NONE, _NONE)
    op.memo["listed"] = result
    return result


def _equal_arrays(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    """Return whether two arrays have the same type and values."""
    return a.dtype == b.dtype and np.array_equal(a, b)


def _find_picks(
    terms: matmul_sparse.Terms, weights: Words, u_kt: int
) -> tuple[Picks, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the picks of the terms, which result rows have picks alone, and which are spilled between strips (the last
    three fields of `EncodedTerms`). `u_kt`: inner tiles of a strip."""
    words = weights.tiles[0].view(np.int32)
    tile, place = np.nonzero(words & INFINITY)
    line = place // TILE_EDGE
    begin_of = np.append(np.searchsorted(tile, np.arange(len(words) + 1)), len(tile))  # the last: a pad
    full = np.zeros(len(words) + 1, np.bool_)  # tiles with more than one element in a line
    full[tile[1:][(np.diff(tile) == 0) & (np.diff(line) == 0)]] = True
    full[-1] = bool(weights.pad)
    weight = np.asarray(weights.index, np.int64)[terms.weight]
    weight = np.where(weight < 0, len(words), weight)
    row = np.repeat(np.arange(terms.begin[:, 1:].size), np.diff(terms.begin).reshape(-1))
    picked = np.ones(terms.begin[:, 1:].size, np.bool_)
    picked[row[full[weight]]] = False
    same_row = np.diff(row) == 0
    ends = np.append(same_row & (np.diff(terms.act_row // u_kt) != 0), False)[: len(row)]
    picks = Picks(
        begin=terms.begin,
        weight=weight,
        act_row=terms.act_row,
        ends=ends,
        begin_of=begin_of,
        line=line,
        column=place % TILE_EDGE,
        word=words[tile, place],
    )
    spilled = np.zeros_like(picked)
    spilled[row[ends]] = True
    return picks, picked, spilled


@dataclass(frozen=True)
class _Identity:
    """The tile products in the order of the encoding, one inner tile each. Where a result tile's products come from
    several strips, it is spilled after each (6.2, inferred)."""

    job: Job
    around: Accumulation
    terms: Sequence[matmul_sparse.Terms]
    weights: Words
    acts: Stored
    faces: int
    _loaded: list[Words] = field(default_factory=list[Words])
    _lock: Lock = field(default_factory=Lock)

    @property
    def call(self) -> DeviceCall:
        """The op that is run."""
        return self.job.call

    @property
    def columns(self) -> tuple[int, int]:
        """The number of columns in a row of result tiles, and in one of its groups, each of which has its own terms."""
        cols = self.call.op.blocking.cols
        return cols, cols // self.call.op.attributes.fracture_factor

    def load(self) -> Words:
        """Return the activations as register words, which the first call converts. Call it first outside of the work of
        threads, so that all threads take part in the conversion."""
        with self._lock:
            if not self._loaded:
                height, width = self.call.op.operands[1].tile_dim
                if self.call.op.transpose:
                    dims = (width, height)
                else:
                    dims = (height, width)
                self._loaded.append(self.acts.all_words(self.job.units, self.job.parallel, dims))
            return self._loaded[0]

    def maker(self, pick: Pick | None = None, picked: NDArray[np.bool_] = _NONE) -> Maker:
        """Return the function that makes tiles of the result. `pick` makes tiles of the rows marked in `picked`, the
        others come from tile products."""
        if pick is None or not picked.all():
            self.load()
        groups = self.call.op.attributes.fracture_factor
        if pick is None:
            by_pick = np.zeros(self.terms[0].begin[:, 1:].size, np.bool_)
        else:
            by_pick = picked
        by_pick = by_pick.reshape(groups, -1).T.reshape(-1)  # in the order of the result

        def part(begin: int, end: int, add: Pick | None) -> DstTiles | Bits:
            """Make the tiles begin..end, which have the same terms or are all picked: by `add` if it is given, else
            from the terms."""
            images = np.empty((end - begin, TILE_ELEMENTS), np.uint32)
            if add is not None:

                def block(dst: U32, first: int, last: int, fresh: bool) -> None:
                    """Add the terms begin..end to images first..last of dst, which are cleared if `fresh`."""
                    if fresh:
                        dst[first:last] = 0
                    add(dst[first:last], begin, end)

                return self.around.run([block], images, 0, end - begin, begin)
            if self.around.sums_only and not self._terms_of(begin)[2]:
                images[...] = 0  # most rows of tiles have no terms
                return DstTiles(images, self.job.registers.dst)
            return self._run(begin, end)

        def tiles(start: int, stop: int) -> DstTiles | Bits:
            """Make tiles start..stop, part by part."""
            pieces = [
                part(begin, end, pick if is_picked else None)
                for begin, end, is_picked in self._split_range(start, stop, by_pick)
            ]
            return join_tiles(pieces, self._pack)

        return tiles

    def _split_range(self, start: int, stop: int, by_pick: NDArray[np.bool_]) -> Iterator[tuple[int, int, bool]]:
        """Yield the range start..stop in parts (begin, end, is_picked). A part is a row of tiles, or one column group
        of it; neighbours that are all picked are joined. `by_pick`: which of them are picked, in the order of the
        result."""
        _, group_cols = self.columns
        first = start // group_cols
        last = (stop - 1) // group_cols + 1
        picked = by_pick[np.arange(first, last) % by_pick.size]
        begins = first + np.flatnonzero(np.append(True, ~(picked[1:] & picked[:-1])))
        for begin, end in pairwise([*begins.tolist(), last]):
            yield max(start, begin * group_cols), min(stop, end * group_cols), bool(picked[begin - first])

    def _terms_of(self, start: int) -> tuple[int, int, int]:
        """Return the entry, the first term and the number of terms of result tile `start`, which is counted over all
        entries."""
        cols, group_cols = self.columns
        rows = self.call.op.blocking.rows * self.call.op.blocking.t
        entry, row = divmod(start // cols, rows)
        begin = self.terms[entry if len(self.terms) > 1 else 0].begin[start % cols // group_cols]
        return entry, int(begin[row]), int(begin[row + 1] - begin[row])

    def _run(self, start: int, stop: int) -> DstTiles | Bits:
        """Compute the result tiles start..stop, which must have the same terms, as a product of one row of tiles."""
        op = self.call.op
        (cols, _) = self.columns
        entry, begin, count = self._terms_of(start)
        terms = self.terms[entry if len(self.terms) > 1 else 0]
        term_range = slice(begin, begin + count)
        act_rows = terms.act_row[term_range]
        acts = self.load()
        in0 = _words_of_entry(self.weights, entry, self.weights.index[terms.weight[term_range]])
        in1 = _words_of_entry(acts, entry, acts.index.reshape(-1, cols)[act_rows])
        product = Product(rows=1, inner=count, cols=cols, faces=self.faces, fidelity=self.call.fidelity)
        dst = np.empty((1, cols, TILE_ELEMENTS), np.uint32)
        first = start % cols

        ends = np.append(np.diff(act_rows // op.attributes.u_kt) != 0, True)[:count]
        blocks = self.around.blocks(in0, in1, product, ends)
        return self.around.run(blocks, dst, first, first + stop - start, start)

    def _pack(self, tiles: DstTiles) -> Bits:
        """Pack tiles of Dst in the op's output format, so that they can be joined with tiles that were added up in
        L1."""
        packing = Packing(self.around.registers.integer, from_single=self.call.makes_output_of_single)
        return pack_tiles(self.around.units, tiles, self.call.op.out_df, packing)


def _words_of_entry(words: Words, entry: int, index: Index) -> Words:
    """Return the operand for one entry, read through `index`; an operand with a single entry has that for all."""
    if len(words.tiles) == 1:
        tiles = words.tiles
    else:
        tiles = words.tiles[entry : entry + 1]
    return replace(words, tiles=tiles, index=frozen(index))


def join_tiles(pieces: Sequence[DstTiles | Bits], pack: Callable[[DstTiles], Bits]) -> DstTiles | Bits:
    """Join consecutive pieces of a range of tiles. If some are packed already, as they were added up in L1, the others
    are packed by `pack`."""
    if len(pieces) == 1:
        return pieces[0]
    images = [part for part in pieces if isinstance(part, DstTiles)]
    if len(images) == len(pieces):
        return DstTiles(np.concatenate([part.image for part in images]), images[0].mode)
    parts = [pack(part) if isinstance(part, DstTiles) else part for part in pieces]
    exponents = [part.exponents for part in parts if part.exponents is not None]
    datums = np.concatenate([part.datums for part in parts])
    return Bits(parts[0].df, datums, np.concatenate(exponents) if exponents else None)


@on_device("matmul")
class Matmul:
    """A matmul, with input 1 in SrcA and input 0 in SrcB: m_k blocks of u_kt inner tiles, and with accumulate as many
    for each of the z slices."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return the register formats of all operands but the encoding of an identity matmul, which no unit reads."""
        if not call.op.attributes.identity:
            return call.registers()
        numbers = [n for n in range(len(call.dfs)) if n != 2]
        registers = call.registers(numbers)
        return replace(registers, inputs=(*registers.inputs[:2], "", *registers.inputs[2:]))

    def maker(self, job: Job) -> Maker:
        """Return the function that makes tiles of the op's result. Raises UnsupportedError, ProgramError for a bad
        encoding."""
        return matmul_maker(job)


def matmul_maker(job: Job) -> Maker:
    """Return the function that makes tiles of a matmul, dense or identity, stand-alone or in a fused op. Raises
    UnsupportedError, ProgramError for a bad encoding."""
    call = job.call
    registers = job.registers
    sources = job.sources
    units = job.units
    parallel = job.parallel
    op = call.op
    entries = job.entries
    bias, scale = tail_sources(call, sources, 3 if op.attributes.identity else 2)
    around = Accumulation(call=call, registers=registers, units=units, bias=bias, scale=scale, previous=job.previous)
    left, right = (require_in_l1(call, source) for source in sources[:2])
    dims = op.operands[1].tile_dim
    if op.attributes.identity:
        encoding = sources[2]
        assert isinstance(encoding, Stored)
        return identity_maker(job, around, left, right, encoding.bits)
    in0 = left.product_words(units, parallel, op.operands[0].tile_dim)
    in1 = right.product_words(units, parallel, (dims[1], dims[0]) if op.transpose else dims)
    faces = 2
    if min(op.operands[0].tile_dim[1], dims[0]) <= 16:
        faces = 1
    return _dense_maker(call, around, in0, in1, faces, entries)


def _dense_maker(call: DeviceCall, around: Accumulation, in0: Words, in1: Words, faces: int, entries: int) -> Maker:
    """Return the function that makes tiles of a dense product: blocks of u_kt inner tiles, with `accumulate` those of
    all z slices. `around`: the steps around the blocks; `faces`: 16-element faces of the inner tile dimension, 1 or 2;
    `entries`: inputs that run together."""
    op = call.op
    (t, rows, inner) = op.operands[0].map.shape
    cols = op.operands[1].map.shape[2]
    z = op.attributes.z if op.attributes.accumulate else 1
    product = Product(rows=rows, inner=inner, cols=cols, faces=faces, fidelity=call.fidelity)
    dst = around.units.room(entries, t // z * rows * cols)
    ends = np.arange(1, inner + 1) % op.attributes.u_kt == 0
    blocks: list[Block] = []
    for s in range(z):
        blocks += around.blocks(
            _select_slices(in0, t, rows * inner, s, z), _select_slices(in1, t, inner * cols, s, z), product, ends
        )
    return lambda start, stop: around.run(blocks, dst, start, stop)


def _select_slices(words: Words, t: int, per_slice: int, first: int, step: int) -> Words:
    """Return the operand with only the slices first, first + step, ... of its `t` slices, each of `per_slice` tiles."""
    if step == 1:
        return words
    return replace(words, index=frozen(words.index[: t * per_slice].reshape(t, per_slice)[first::step]))


@on_device("depthwise")
class Depthwise(DeviceOp):
    """A matmul whose tile (r, c) has the inner tiles in0[r][c + b * C] and in1[b][c]."""

    def maker(self, job: Job) -> Maker:
        """Return the function that makes tiles of the op: a matmul of one row and one column for each tile, with m_k
        inner tiles and a spill after each. Raises UnsupportedError."""
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
