"""Layouts: relayout and unrelayout are inverse and do what plain loops do, and rules D076 to D080 agree with loops."""

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import dequantize, idl, relayout, to_device, unrelayout
from buda_emu.foreign.darwinn.layouts import host_shape
from buda_emu.foreign.darwinn.rules.places import Budget, examine
from buda_emu.support.errors import HostError, PackageError, UnsupportedError

TYPES = sorted(idl.ELEMENT_TYPES)


@st.composite
def tiled(draw, kinds=TYPES):
    """An output of random tiles: rows and columns in groups, in any order, with gaps."""
    y, x, z = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    assume(y * x > 1)
    rows, columns = (draw(st.lists(st.integers(1, 3), min_size=1, max_size=n)) for n in (y, x))
    ys = [i for i, n in enumerate(rows) for _ in range(n)][:y]
    xs = [i for i, n in enumerate(columns) for _ in range(n)][:x]
    ys += [ys[-1]] * (y - len(ys))
    xs += [xs[-1]] * (x - len(xs))
    per_row = max(xs) + 1
    cell = z + draw(st.integers(0, 3))
    local_y = [ys[:i].count(t) for i, t in enumerate(ys)]
    order = {t: draw(st.permutations(range(xs.count(t)))) for t in set(xs)}
    local_x = [order[t][xs[:i].count(t)] * cell for i, t in enumerate(xs)]
    size = {t: xs.count(t) * cell for t in set(xs)}
    offsets, at = {}, draw(st.integers(0, 4))
    for tile in draw(st.permutations([(a, b) for a in sorted(set(ys)) for b in sorted(set(xs))])):
        offsets[tile[0] * per_row + tile[1]] = at
        at += ys.count(tile[0]) * size[tile[1]] + draw(st.integers(0, 4))
    kind = draw(st.sampled_from(kinds))
    element = idl.ELEMENT_TYPES[kind]
    layout = idl.OutputLayout(
        tuple(t * per_row for t in ys),
        tuple(xs),
        tuple(offsets.get(t, 0) for t in range(max(offsets) + 1)),
        tuple(local_x),
        tuple(local_y),
        tuple(size[t] for t in xs),
    )
    return idl.Layer(
        "out",
        at * element.size + draw(st.integers(0, 3)),
        y,
        x,
        z,
        idl.NumericsConstants(3, 0.5),
        kind,
        1,
        idl.OutputLayer(layout),
    )


def plain_index(layer, y, x, z):
    """The definition, for one element (DARWINN 7)."""
    m = layer.any_layer.layout
    tile = m.y_coordinate_to_linear_tile_id_map[y] + m.x_coordinate_to_linear_tile_id_map[x]
    row = m.y_coordinate_to_local_y_offset[y] * m.x_coordinate_to_local_y_row_size[x]
    return m.linearized_tile_byte_offset[tile] + row + m.x_coordinate_to_local_byte_offset[x] + z


def everywhere(layer):
    return [
        ((y, x, z), plain_index(layer, y, x, z))
        for y in range(layer.y_dim)
        for x in range(layer.x_dim)
        for z in range(layer.z_dim)
    ]


def random_bytes(count, seed=1):
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8).tobytes()


@settings(deadline=None)
@given(tiled())
def test_an_array_is_what_the_maps_say(layer):
    raw = random_bytes(layer.size_bytes)
    size = layer.element.size
    words = np.frombuffer(raw[: len(raw) - len(raw) % size], f"<u{size}")
    array = relayout(layer, raw).view(f"<u{size}")
    sign = 1 << (8 * size - 1) if layer.element.signed else 0
    for (y, x, z), index in everywhere(layer):
        assert array[y, x, z] == words[index] ^ words.dtype.type(sign)


@settings(deadline=None)
@given(tiled(), st.integers(0, 255))
def test_unrelayout_is_the_inverse(layer, fill):
    raw = random_bytes(layer.size_bytes)
    array = relayout(layer, raw)
    back = unrelayout(layer, array, fill)
    assert relayout(layer, back).tobytes() == array.tobytes()
    size = layer.element.size
    used = {index * size + byte for _, index in everywhere(layer) for byte in range(size)}
    assert all(back[i] == (raw[i] if i in used else fill) for i in range(len(raw)))


def rules_of(layer, budget=None):
    found = examine([("", "", layer)], budget)
    return {problem[0] for _, _, _, problems in found for problem in problems}


@settings(deadline=None)
@given(tiled())
def test_tiles_are_injective_and_inside(layer):
    places = [index for _, index in everywhere(layer)]
    assert len(set(places)) == len(places)
    assert not rules_of(layer) & {"D076", "D077", "D078"}


@st.composite
def muddled(draw):
    """A layout with a few numbers of its maps changed, which may put elements on others or outside."""
    layer = draw(tiled([0, 1, 8]))
    names = list(idl.OutputLayout.__dataclass_fields__)
    maps = {name: list(getattr(layer.any_layer.layout, name)) for name in names if name != "at"}
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(maps)))
        place = draw(st.integers(0, len(maps[name]) - 1))
        maps[name][place] += draw(st.integers(-4, 8))
    layout = idl.OutputLayout(**{name: tuple(values) for name, values in maps.items()})
    return idl.Layer(
        "out",
        layer.size_bytes,
        layer.y_dim,
        layer.x_dim,
        layer.z_dim,
        layer.numerics,
        layer.data_type,
        1,
        idl.OutputLayer(layout),
    )


@settings(deadline=None, max_examples=300)
@given(muddled())
def test_the_rules_find_what_a_loop_finds(layer):
    m = layer.any_layer.layout
    assume(layer.size_bytes >= layer.y_dim * layer.x_dim * layer.z_dim * layer.element.size)
    tiles = [
        a + b
        for a in m.y_coordinate_to_linear_tile_id_map[: layer.y_dim]
        for b in m.x_coordinate_to_linear_tile_id_map[: layer.x_dim]
    ]
    if not all(0 <= tile < len(m.linearized_tile_byte_offset) for tile in tiles):
        assert rules_of(layer) == {"D077"}
        return
    places = [index for _, index in everywhere(layer)]
    room = layer.size_bytes // layer.element.size
    if min(places) < 0 or max(places) >= room:
        assert rules_of(layer) == {"D077"}
        with pytest.raises(PackageError, match="D077"):
            relayout(layer, bytes(layer.size_bytes))
        return
    found = rules_of(layer)
    assert ("D078" in found) == (len(set(places)) < len(places))
    assert ("D079" in found) == (driver_walk(layer) != places)


def driver_walk(layer):
    """Where the driver reads each element from, in elements, step by step as the facts say (DARWINN 7)."""
    m = layer.any_layer.layout
    xtile, size = m.x_coordinate_to_linear_tile_id_map, layer.element.size
    index = lambda y, x: plain_index(layer, y, x, 0)  # noqa: E731
    whole = layer.z_dim * size
    step = ((index(0, 1) if layer.x_dim > 1 else index(1, 0)) - index(0, 0)) * size
    if whole != step and whole in (1, 3):
        step = 4
    starts = [x for x in range(layer.x_dim) if not x or xtile[x] != xtile[x - 1]]
    ytile = m.y_coordinate_to_linear_tile_id_map
    if whole == step and len(starts) == 1 and ytile[0] == ytile[layer.y_dim - 1]:
        return [index(0, 0) + i for i in range(layer.y_dim * layer.x_dim * layer.z_dim)]
    found = []
    for y in range(layer.y_dim):
        for x in range(layer.x_dim):
            start = max(s for s in starts if s <= x)
            at = index(y, start) * size + (x - start) * step
            found += [at / size + z for z in range(layer.z_dim)]
    return found


def test_a_layout_too_large_to_judge_is_said_to_be():
    side = 3000
    layout = idl.OutputLayout(
        tuple(range(side)), (0,) * side, (0,) * side, tuple(range(side)), (0,) * side, tuple(range(side))
    )
    layer = idl.Layer("out", 1 << 30, side, side, 1, idl.NumericsConstants(0, 1.0), 0, 1, idl.OutputLayer(layout))
    assert rules_of(layer, Budget(100_000)) == {"D077"}


def one_d(kind=0, z=10, size=24, executions=1):
    return idl.Layer("v", size, 1, 1, z, idl.NumericsConstants(0, 1.0), kind, 1, idl.OutputLayer(), executions)


def test_a_vector_needs_no_layout_and_repeats_for_executions():
    raw = bytes(range(72))
    assert relayout(one_d(), raw[:24]).tolist() == [[list(range(10))]]
    array = relayout(one_d(executions=3), raw)
    assert array.shape == (3, 1, 1, 10)
    assert array[2, 0, 0].tolist() == list(range(48, 58))
    assert unrelayout(one_d(executions=3), array, 255)[24:36] == bytes(range(24, 34)) + b"\xff\xff"


def layer_in(kind=0, z=6, executions=1, size=None):
    width = idl.ELEMENT_TYPES[kind].size
    return idl.Layer(
        "in", size or z * width, 1, 1, z, idl.NumericsConstants(128, 0.5), kind, 2, idl.InputLayer(), executions
    )


def test_inputs_are_padded_and_flipped():
    assert to_device(layer_in(size=8), bytes(range(6))) == bytes([0, 1, 2, 3, 4, 5, 0, 0])
    assert to_device(layer_in(executions=2, size=8), bytes(range(12)))[8:] == bytes([6, 7, 8, 9, 10, 11, 0, 0])
    assert to_device(layer_in(8), np.array([-128, -1, 0, 1, 2, 127], np.int8)) == bytes([0, 127, 128, 129, 130, 255])
    values = np.array([-32768, 0, 1, 2, 3, 32767], np.int16)
    assert np.frombuffer(to_device(layer_in(9), values), np.uint16).tolist() == [0, 32768, 32769, 32770, 32771, 65535]


def test_real_values_are_differences_in_integers():
    assert dequantize(one_d(), np.array([0, 255], np.uint8)).tolist() == [0, 255]
    signed = idl.Layer("v", 4, 1, 1, 2, idl.NumericsConstants(128, 0.5), 8, 1, idl.OutputLayer())
    assert dequantize(signed, np.array([-128, 0, 127], np.int8)).tolist() == [-64, 0, 63.5]
    bfloat = idl.Layer("v", 4, 1, 1, 2, idl.NumericsConstants(0, 2.0), 3, 1, idl.OutputLayer())
    assert dequantize(bfloat, np.array([0x3F80, 0xBF80], np.uint16)).tolist() == [2, -2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: relayout(one_d(), bytes(23)), HostError),
        (lambda: unrelayout(one_d(), bytes(9)), HostError),
        (lambda: to_device(layer_in(), bytes(5)), HostError),
        (lambda: relayout(one_d(kind=7), bytes(24)), PackageError),
        (lambda: relayout(one_d(size=8), bytes(8)), PackageError),
        (lambda: relayout(one_d(executions=0), b""), PackageError),
        (lambda: relayout(idl.Layer("a", 8, 2, 2, 2, None, 0, 1, idl.OutputLayer()), bytes(8)), PackageError),
        (lambda: relayout(idl.Layer("a", 1 << 30, 1 << 15, 1 << 15, 4, None, 0, 2), b""), UnsupportedError),
        (lambda: relayout(idl.Layer("a", 8, 2, 2, 2, None, 0, 1, idl.OutputLayer(), 2), bytes(16)), UnsupportedError),
        (lambda: dequantize(idl.Layer("a", 8, 1, 1, 8), bytes(8)), PackageError),
    ],
)
def test_what_cannot_be_laid_out_is_refused(call, error):
    with pytest.raises(error):
        call()


@st.composite
def sliced(draw):
    """A tensor cut along one dimension, each slice with strides of its own."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axis = draw(st.integers(0, len(lengths) - 1))
    lows = [draw(st.integers(-2, 2)) for _ in lengths]
    cuts = sorted({0, lengths[axis], *draw(st.lists(st.integers(0, lengths[axis]), max_size=2))})
    kind = draw(st.sampled_from(TYPES))
    size = idl.ELEMENT_TYPES[kind].size
    layouts, offsets, at = [], [], 0
    for first, last in pairwise(cuts):
        own = list(lengths)
        own[axis] = last - first
        stride = [1] * len(own)
        stride[-1] = draw(st.integers(1, 2))
        for i in range(len(own) - 2, -1, -1):
            stride[i] = stride[i + 1] * own[i + 1] + draw(st.integers(0, 2))
        box = tuple(
            (low + (first if i == axis else 0), low + (last if i == axis else n) - 1)
            for i, (low, n) in enumerate(zip(lows, lengths, strict=True))
        )
        layouts.append(idl.TensorLayout(idl.TensorShape(box), tuple(stride)))
        offsets.append(at * size)
        at += sum(s * (n - 1) for s, n in zip(stride, own, strict=True)) + 1 + draw(st.integers(0, 2))
    shape = idl.TensorShape(tuple((low, low + n - 1) for low, n in zip(lows, lengths, strict=True)))
    info = idl.OutputShapeInfo(tuple(layouts), tuple(offsets))
    return idl.Layer(
        "out",
        at * size,
        1,
        1,
        prod(lengths),
        idl.NumericsConstants(0, 1.0),
        kind,
        1,
        idl.OutputLayer(shape_info=info),
        shape=shape,
    )


@settings(deadline=None)
@given(sliced())
def test_slices_are_boxes(layer):
    assert rules_of(layer) == set()
    raw = random_bytes(layer.size_bytes)
    array = relayout(layer, raw)
    assert array.shape == host_shape(layer)
    assert relayout(layer, unrelayout(layer, array)).tobytes() == array.tobytes()
    size = layer.element.size
    bits = array.view(f"<u{size}")
    sign = 1 << (8 * size - 1) if layer.element.signed else 0
    words = np.frombuffer(raw, f"<u{size}")
    lows = [low for low, _ in layer.shape.dimension]
    for part, offset in zip(layer.slices.slice_layout, layer.slices.slice_offset, strict=True):
        box = part.shape.dimension
        for where in np.ndindex(*[end - start + 1 for start, end in box]):
            index = offset // size + sum(i * s for i, s in zip(where, part.stride, strict=True))
            place = tuple(i + start - low for i, (start, _), low in zip(where, box, lows, strict=True))
            assert bits[place] == words[index] ^ words.dtype.type(sign)
