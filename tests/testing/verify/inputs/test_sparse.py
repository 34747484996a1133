"""Sparse encodings (NETLIST 5.2), held against an independent reading of the stream as OPS 6.2 describes it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.emulator.inputs.sparse import SparseShape, bits, encoding_tiles, sparse_shape, sparse_tiles
from buda_emu.emulator.inputs.stimulus import generator
from buda_emu.netlist.load import load
from buda_emu.netlist.model import Queue
from buda_emu.netlist.test_config import read_test_config
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.errors import NetlistError

SHAPE = SparseShape("op", 2, 1, 4, 2, 3, 2, 2, 5, 4, 6, 6)


def queue(rows, columns, df="RawUInt32"):
    return Queue(name="q", input="HOST", df=df, blocking=Blocking((rows, 1), 1, (1, columns), (1, 1), "r", (32, 32)))


def strips(words, shape):
    """[(index, last of t, [(ublock, [(unique tile, row, column)])])] of one grid row's words."""
    stream = words.view("<u2")
    position_bits, position, found, finished = 16 - shape.pointer_bits, 0, [], 0
    while finished < shape.t:
        low, high, count = (int(stream[position + i]) for i in range(3))
        at, ublocks = position + 3, []
        for _ in range(count):
            header = int(stream[at])
            tiles = header >> shape.ublock_bits or 1 << (16 - shape.ublock_bits)
            entries = [int(word) for word in stream[at + 1 : at + 1 + tiles]]
            at += 1 + tiles
            places = [
                (word >> position_bits, *divmod(word & ((1 << position_bits) - 1), 1 << shape.column_bits))
                for word in entries
            ]
            ublocks.append((header & ((1 << shape.ublock_bits) - 1), places))
        last_of_t, last_in_tile = bool(high & 0x4000), bool(high & 0x8000)
        found.append(((high << 16 | low) & 0x3FFFFFFF, last_of_t, ublocks))
        finished += last_of_t
        position = (position // 2048 + 1) * 2048 if last_in_tile else at
    return found


def encoded(shape, stimulus, seed=0, columns=4):
    data = encoding_tiles(shape, stimulus, queue(shape.grid_rows, columns), generator(seed, "q"))
    return [strips(row, shape) for row in data.reshape(shape.grid_rows, -1)]


def check_well_formed(shape, rows):
    """What a reader of the stream relies on: everything in range, and sorted."""
    for row in rows:
        assert sum(last for _, last, _ in row) == shape.t
        t = 0
        for index, last_of_t, ublocks in row:
            slices = shape.m_k * (1 if shape.act_t == 1 else shape.t)
            assert 0 <= index < slices
            numbers = [ublock for ublock, _ in ublocks]
            assert numbers == sorted(set(numbers))
            assert all(ublock < shape.mblock_m for ublock in numbers)
            for _, tiles in ublocks:
                places = [(r, c) for _, r, c in tiles]
                assert places == sorted(set(places))
                assert all(u < shape.sparse_tiles and r < shape.ublock_rt and c < shape.u_kt for u, r, c in tiles)
            t += last_of_t


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_bits(count, expected):
    assert bits(count) == expected


def test_without_a_stimulus_every_t_has_one_tile():
    for row in encoded(SHAPE, None):
        assert row == [(0, True, [(0, [(1, 0, 0)])]), (1, True, [(0, [(2, 0, 0)])])]


@given(st.integers(0, 1 << 16), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_drawn_encodings_are_well_formed(seed, strip_frequency, ublock_frequency, tile_frequency, per_t):
    shape = replace(SHAPE, act_t=SHAPE.t if per_t else 1)
    stimulus = Stimulus(
        "sparse_encoding",
        zero_strip_freq=strip_frequency,
        zero_ublock_freq=ublock_frequency,
        zero_tile_freq=tile_frequency,
    )
    check_well_formed(shape, encoded(shape, stimulus, seed))


def test_a_frequency_of_0_keeps_all_and_of_1_drops_all_it_may():
    stimulus = Stimulus("sparse_encoding")
    full = encoded(SHAPE, stimulus)[0]
    assert [index for index, *_ in full] == [0, 1, 1, 2, 3]  # t 1 may begin with the last strip of t 0
    assert all([ublock for ublock, _ in ublocks] == [0, 1, 2] for *_, ublocks in full)
    assert all(len(tiles) == 4 for *_, ublocks in full for _, tiles in ublocks)
    nothing = encoded(SHAPE, replace(stimulus, zero_strip_freq=1.0))[0]
    assert nothing == [(0, True, []), (0, True, [])]
    least = encoded(SHAPE, replace(stimulus, zero_ublock_freq=1.0, zero_tile_freq=1.0))[0]
    assert all(len(ublocks) == 1 and len(ublocks[0][1]) == 1 for *_, ublocks in least)


@given(st.data())
def test_counted_encodings_have_their_counts(data):
    t = data.draw(st.integers(1, 4))
    shape = replace(SHAPE, t=t, m_k=data.draw(st.integers(1, 6)))
    strip_count = data.draw(st.integers(t, shape.m_k + t - 1))
    ublock_count = data.draw(st.integers(strip_count, strip_count * shape.mblock_m))
    tile_count = data.draw(st.integers(ublock_count, ublock_count * shape.ublock_rt * shape.u_kt))
    stimulus = Stimulus(
        "sparse_encoding_nz_counts", nz_strips=strip_count, nz_ublocks=ublock_count, nz_tiles=tile_count
    )
    rows = encoded(shape, stimulus)
    check_well_formed(shape, rows)
    for row in rows:
        assert len(row) == strip_count
        assert sum(len(ublocks) for *_, ublocks in row) == ublock_count
        assert sum(len(tiles) for *_, ublocks in row for _, tiles in ublocks) == tile_count


def test_unique_tiles_are_taken_in_turn():
    stimulus = Stimulus("sparse_encoding_nz_counts", nz_strips=2, nz_ublocks=3, nz_tiles=12)
    row = encoded(SHAPE, stimulus)[0]
    unique = [tile for *_, ublocks in row for _, tiles in ublocks for tile, *_ in tiles]
    assert unique == [1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2]


def test_strips_are_cut_at_tile_ends():
    shape = replace(SHAPE, mblock_m=20, ublock_rt=4, u_kt=8, m_k=8, pointer_bits=6, ublock_bits=6, t=1)
    stimulus = Stimulus("sparse_encoding")
    data = encoding_tiles(shape, stimulus, queue(2, 4), generator(0, "q"))
    row = strips(data.reshape(2, -1)[0], shape)
    assert [index for index, *_ in row] == list(range(8))  # 1326 bytes each: three to a tile of 4096
    check_well_formed(shape, [row])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"act_t": 3}, "act_t 3 is neither t 2 nor 1"),
        ({"mblock_m": 64}, "mblock_m 64 does not fit 6 ublock bits"),
        ({"sparse_tiles": 64}, "64 sparse tiles do not fit 6 pointer bits"),
        ({"ublock_rt": 64, "u_kt": 32}, "tile"),
        ({"pointer_bits": 15}, "tile positions do not fit"),
    ],
)
def test_what_cannot_be_encoded_is_refused(change, message):
    with pytest.raises(NetlistError, match=message):
        encoded(replace(SHAPE, **change), None)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(NetlistError, match="nz_strips 9"):
        encoded(SHAPE, Stimulus("sparse_encoding_nz_counts", nz_strips=9, nz_ublocks=9, nz_tiles=9))


def test_too_few_index_tiles_are_refused():
    shape = replace(SHAPE, mblock_m=20, ublock_rt=4, u_kt=8, m_k=8, index_tiles=2)
    with pytest.raises(NetlistError, match="num_index_tiles is 2"):
        encoded(shape, Stimulus("sparse_encoding"))


def test_sparse_tiles_have_one_1_in_every_row():
    data = sparse_tiles(SHAPE, queue(2, 6, "Bfp2_b"), generator(0, "q"))
    assert data.shape == (1, 1, 64, 192)
    rows = data.reshape(64, 6, 32).sum(axis=2)
    tiles = rows.reshape(2, 32, 6).sum(axis=1).reshape(-1)
    assert tiles.tolist() == [32.0] * 10 + [0.0] * 2  # 2 grid rows of 5 tiles, one after the other
    assert set(np.unique(data)) == {0.0, 1.0}


def test_counted_encoding_is_the_references(corpus):
    """Count mode draws nothing, so the stored encoding of a public vector comes out word for word."""
    name = "verif/op_tests/netlists/netlist_matmul_ident_op_nz_counts"
    vector = json.loads((corpus / f"vectors/{name}.json").read_text())
    stored = np.load(corpus / f"vectors/{name}.npz")["input2_encoding"]
    netlist = load(corpus / f"netlists/{name}.yaml", vector["arch"])
    op = next(op for op in netlist.ops.values() if op.attributes.identity)
    shape = sparse_shape(op, netlist.queues[op.inputs[1]].blocking.t)
    stimulus = read_test_config(netlist.path, netlist.sections).named_stimulus("input2_encoding")
    made = encoding_tiles(shape, stimulus, netlist.queues["input2_encoding"], generator(0, "q"))
    assert np.array_equal(made, stored)
