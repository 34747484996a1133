"""The layout algebra: round trips, join, and that what is calculated passes the check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.foreign.vpux.layout import (
    CANONICAL_NAMES,
    OTHER_NAMES,
    Dim,
    DimsOrder,
    MemDim,
    StrideReqs,
    address,
    alloc_bits,
)
from buda_emu.support.errors import HostError

orders = st.integers(0, 6).flatmap(lambda rank: st.permutations(range(rank))).map(DimsOrder.from_permutation)


@st.composite
def shapes_and_requirements(draw: st.DrawFn) -> tuple[tuple[int, ...], int, StrideReqs]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    bits = draw(st.sampled_from([8, 16, 32]))
    kinds = st.sampled_from(["compact", "aligned", "any"])
    found: list[tuple[object, ...]] = []
    for dim in range(len(shape)):
        kind = draw(kinds)
        found.append((dim, kind, 1 << draw(st.integers(5, 10))) if kind == "aligned" else (dim, kind))
    return shape, bits, StrideReqs(found)


def test_names_are_of_distinct_codes_and_come_back() -> None:
    for code, name in CANONICAL_NAMES.items():
        assert DimsOrder.from_name(name).code == code
        assert DimsOrder.from_code(code).name == name
    for name, code in OTHER_NAMES.items():
        assert DimsOrder.from_name(name) == DimsOrder.from_code(code)


def test_nhwc() -> None:
    order = DimsOrder.from_name("NHWC")
    assert order.perm == (0, 2, 3, 1)
    assert (order.code, order.kernel_code) == (0x1342, 0x2431)
    assert order.to_memory((1, 16, 49, 2)) == (1, 49, 2, 16)
    assert DimsOrder.from_affine_map("affine_map<(n, c, h, w) -> (n, h, w, c)>") == order
    assert address((0, 3, 7, 0), order, (12544, 256, 256, 16)) == 1840
    assert StrideReqs([(2, "aligned", 1024)]).calculate(16, (1, 49, 1, 16)) == (50176, 1024, 1024, 16)


@given(orders)
def test_forms_of_an_order_come_back(order: DimsOrder) -> None:
    assert DimsOrder.from_code(order.code) == order
    assert DimsOrder.from_affine_map(order.to_affine_map()) == order
    values = tuple(range(10, 10 + order.rank))
    assert order.to_logical(order.to_memory(values)) == values
    assert int(f"{order.kernel_code:x}"[::-1], 16) == order.code


@given(shapes_and_requirements())
def test_calculated_strides_pass_their_own_check(
    case: tuple[tuple[int, ...], int, StrideReqs],
) -> None:
    shape, bits, required = case
    strides = required.calculate(bits, shape)
    compact_below_gap = any(r.kind == "compact" for r in required.requirements)
    assert required.check(strides, bits, shape) or compact_below_gap
    assert StrideReqs().check(strides, bits, shape)
    assert StrideReqs.fixed(strides).check(strides, bits, shape)
    last = tuple(size - 1 for size in shape)
    assert address(last, DimsOrder.identity(len(shape)), strides) + bits == alloc_bits(shape, strides, bits)


@given(shapes_and_requirements(), st.data())
def test_join_fulfils_both_or_is_refused(case: tuple[tuple[int, ...], int, StrideReqs], data: st.DataObject) -> None:
    shape, bits, one = case
    other = StrideReqs([(dim, "aligned", 64) for dim in data.draw(st.sets(st.integers(0, len(shape) - 1)))])
    try:
        both = one.join(other, bits, shape)
    except HostError:
        return
    strides = both.calculate(bits, shape)
    assert one.check(strides, bits, shape)
    assert other.check(strides, bits, shape)


def test_joins_that_contradict_are_refused() -> None:
    with pytest.raises(HostError, match="both 64 and 128"):
        StrideReqs([(0, "fixed", 64)]).join(StrideReqs([(0, "fixed", 128)]), 8, (8,))
    with pytest.raises(HostError, match="no strides"):
        StrideReqs([(0, "compact")]).join(StrideReqs([(0, "aligned", 1024)]), 8, (8, 2))


@pytest.mark.parametrize("code", [-1, 0x11, 0x13, 0x102, 1 << 64, 0x1235])
def test_codes_that_are_none(code: int) -> None:
    with pytest.raises(HostError):
        DimsOrder.from_code(code)


@pytest.mark.parametrize("bad", [(0, "aligned", 24), (0, "aligned"), (0, "compact", 8), (0, "fixed", 0), (0, "near")])
def test_requirements_that_are_none(bad: tuple[object, ...]) -> None:
    with pytest.raises(HostError):
        StrideReqs([bad])


def test_kinds_of_dimension_do_not_mix() -> None:
    assert Dim(1) != MemDim(1)
    order = DimsOrder.from_name("NHWC")
    assert order.dim_at(MemDim(3)) == Dim(1)
    assert order.position_of(Dim(1)) == MemDim(3)
    for kind in (Dim, MemDim):
        with pytest.raises(HostError):
            kind(-1)
        with pytest.raises(HostError):
            kind(15)


def test_wrong_ranks_are_refused() -> None:
    with pytest.raises(HostError, match="3 values"):
        DimsOrder.from_name("NHWC").to_memory((1, 2, 3))
    with pytest.raises(HostError, match="did you mean 'NHWC'"):
        DimsOrder.from_name("NHVC")
