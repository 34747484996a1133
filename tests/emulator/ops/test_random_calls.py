"""Kernel and reference on calls whose dims, maps and attributes are drawn at random."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.emulator.ops.base import Operand
from buda_emu.spec.blocking import LEGAL_TILE_DIMS, Blocking
from op_examples.encoding import random_encodings
from op_examples.example import VALUES, Example, assert_kernel_equals_reference, make_call, operand
from op_examples.matmul import identity_call

SMALL = st.integers(1, 3)
SEEDS = st.one_of(st.none(), st.integers(0, 1000))
TILE_DIMS = st.sampled_from(LEGAL_TILE_DIMS)
few = settings(deadline=None, max_examples=20, derandomize=True)


def mapped(shape, seed, tile_dim=(32, 32)):
    return Operand(operand(shape, seed, None if seed is None else seed / 7).map, tile_dim)


@few
@given(st.data())
def test_matmul(data):
    runs, rows, inner, cols, z = (data.draw(st.integers(1, 2)) for _ in range(5))
    t = runs * z
    accumulate = t > 1 and data.draw(st.booleans())
    operands = [
        mapped((t, rows, inner), data.draw(SEEDS), data.draw(TILE_DIMS)),
        mapped((t + data.draw(st.integers(0, 1)), inner, cols), data.draw(SEEDS), data.draw(TILE_DIMS)),
    ]
    attributes = {"m_k": inner, "u_kt": 1, "accumulate": accumulate, "z": z, "bias": data.draw(st.booleans())}
    if attributes["bias"]:
        operands.append(mapped((runs if accumulate else t, rows, cols), data.draw(SEEDS)))
    transpose = data.draw(st.booleans())
    call = make_call("matmul", operands, data.draw(TILE_DIMS), attributes=attributes, transpose=transpose)
    example = Example("drawn", call, ("adversarial",) * len(operands))
    assert_kernel_equals_reference(
        example, data.draw(st.sampled_from([(1,), (2,), (1, 2)])), data.draw(st.integers(0, 99))
    )


@few
@given(SMALL, SMALL, SMALL, SMALL, SEEDS, SEEDS, TILE_DIMS)
def test_depthwise(t, rows, cols, kernel_size, first, second, tile_dim):
    operands = [mapped((t, rows, kernel_size * cols), first, tile_dim), mapped((t, kernel_size, cols), second)]
    call = make_call("depthwise", operands, attributes={"m_k": kernel_size, "u_kt": 1})
    assert_kernel_equals_reference(Example("drawn", call, ("adversarial",) * 2))


@few
@given(st.data())
def test_identity_matmul(data):
    grid_rows, groups, in_group, t = (data.draw(st.integers(1, 2)) for _ in range(4))
    mblock = data.draw(SMALL), data.draw(SMALL)
    ublock = data.draw(SMALL), data.draw(st.integers(1, 2))
    u_kt, act_t, m_k = data.draw(st.integers(1, 5)), data.draw(SMALL), data.draw(SMALL)
    weights = data.draw(SMALL)
    blocking = Blocking((grid_rows, groups * in_group), t, mblock, ublock, "r", data.draw(TILE_DIMS))
    operands = [
        mapped((1, grid_rows, weights * groups), data.draw(SEEDS)),
        mapped((act_t, u_kt * m_k, blocking.cols), data.draw(SEEDS), data.draw(TILE_DIMS)),
        Operand(operand((1, grid_rows, 2 * groups)).map, label="RawUInt32"),
    ]
    attributes = {"fracture_factor": groups, "m_k": m_k, "u_kt": u_kt, "transpose": data.draw(st.booleans())}
    call = identity_call("matmul", operands, blocking, **attributes)
    VALUES["drawn encoding"] = partial(random_encodings, call)
    values = (data.draw(st.sampled_from(["sparse weights", "adversarial"])), "adversarial", "drawn encoding")
    entries = data.draw(st.sampled_from([(1,), (2,), (1, 2, 1), (2, 1, 1)]))
    assert_kernel_equals_reference(Example("drawn", call, values), entries, data.draw(st.integers(0, 99)))


@few
@given(st.data())
def test_splice(data):
    along_t = data.draw(st.booleans())
    rounds, count = data.draw(SMALL), data.draw(SMALL)
    triples, units = [], []
    for _ in range(count):
        index, length = data.draw(st.integers(0, 2)), data.draw(SMALL)
        stride = length + data.draw(st.integers(0, 2))
        triples.append((index, length, stride))
        units.append(rounds * (index + stride))
    out_units = rounds * sum(length for _, length, _ in triples)
    grid, ublock = ((data.draw(SMALL), data.draw(SMALL)) for _ in range(2))
    if along_t:
        blocking = Blocking(grid, out_units, (1, 1), ublock, "r")
        shapes = [(n, *blocking.shape[1:]) for n in units]
    else:
        blocking = Blocking(grid, 2, (out_units, 1), ublock, data.draw(st.sampled_from("rc")))
        shapes = [(2, grid[0] * ublock[0], grid[1] * ublock[1] * n) for n in units]
    attributes = {"inputs": tuple(enumerate(triples)), "granularity": "t" if along_t else "ublock"}
    operands = [mapped(shape, data.draw(SEEDS)) for shape in shapes]
    call = make_call("splice", operands, blocking=blocking, attributes=attributes)
    example = Example("drawn", call, ("bits",) * count, same_nans=True)
    assert_kernel_equals_reference(example, data.draw(st.sampled_from([(1,), (2, 1, 2)])))


@few
@given(
    st.integers(0, 2), st.integers(1, 2), st.integers(0, 7), st.booleans(), st.sampled_from(["max", "argmax"]), SEEDS
)
def test_topk(tiles, cores, k_bits, kreduce, sort, seed):
    k = min(1 << k_bits, 32 << tiles)
    shape = (1, 1, cores << tiles)
    blocking = Blocking((1, cores), 1, (1, 1), (1, max(1, k // 32)), "r")
    attributes = {"k": k, "kreduce": kreduce, "sort": sort}
    call = make_call("topk", [mapped(shape, seed), mapped(shape, seed)], blocking=blocking, attributes=attributes)
    for values in (("ties", "plain"), ("adversarial", "adversarial")):
        assert_kernel_equals_reference(Example("drawn", call, values), (1,))
