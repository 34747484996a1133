"""Awkward inputs: what ordinary data never has, for every queue that the host fills."""

from functools import cache

import numpy as np
import pytest

from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.netlist.load import check_text
from buda_emu.spec.formats import is_integer
from buda_emu.testing import Budget, awkward_inputs, generate
from buda_emu.testing.values import _far_apart, _near_largest, _near_smallest

SEEDS = range(40)


def made(seed, op_types=("add", "matmul"), **options):
    return generate(seed, budget=Budget(ops=2, graphs=1, tiles=4), op_types=op_types, **options).netlist


@cache
def floats(first):
    """All values of queues of floats, by every second seed."""
    found = []
    for seed in range(first, 80, 2):
        netlist = made(seed, ("add", "tanh"))
        blocks = [block for block in awkward_inputs(netlist, seed) if block.source == "awkward"]
        arrays = [block.array for block in blocks if not is_integer(netlist.queues[block.queue].df)]
        found.append(np.concatenate([np.zeros(1, np.float32), *(array.reshape(-1) for array in arrays)]))
    return found


def test_they_fill_the_queues_that_ordinary_inputs_fill():
    for seed in SEEDS:
        netlist = made(seed)
        ready = prepare_run(netlist, RunChoice())
        ordinary = list(default_inputs(netlist, ready.config, ready.bodies, ready.values, seed))
        awkward = list(awkward_inputs(netlist, seed))
        assert [(a.queue, a.slot, a.array.shape, a.array.dtype) for a in awkward] == [
            (o.queue, o.slot, o.array.shape, o.array.dtype) for o in ordinary
        ]


def test_they_hang_on_seed_and_name_alone():
    netlist = made(3)
    first, second, other = (list(awkward_inputs(netlist, seed)) for seed in (5, 5, 7))
    same = [np.array_equal(a.array, b.array, equal_nan=True) for a, b in zip(first, second, strict=True)]
    assert all(same)
    assert not all(np.array_equal(a.array, b.array, equal_nan=True) for a, b in zip(first, other, strict=True))


def test_every_second_seed_has_nothing_below_zero_infinite_or_nan():
    for values in floats(0):
        assert np.isfinite(values).all()
        assert (values >= 0).all()


@pytest.mark.parametrize(
    ("what", "is_it"),
    [
        ("NaN", np.isnan),
        ("infinities", np.isinf),
        ("zeros with a sign", lambda x: (x == 0) & np.signbit(x)),
        ("denormals", lambda x: (x != 0) & (abs(x) < 2.0**-126)),
        ("close to the largest", lambda x: abs(x) > 2.0**124),
        ("close to the least", lambda x: (abs(x) >= 2.0**-126) & (abs(x) < 2.0**-124)),
        ("negative", lambda x: x < 0),
    ],
)
def test_the_others_have(what, is_it):
    assert sum(is_it(values).any() for values in floats(1)) >= 2, what


@pytest.mark.parametrize(
    ("kind", "small", "least", "most"),
    [
        (_far_apart, False, -40, 40),
        (_far_apart, True, -12, 8),
        (_near_smallest, False, -127, -124),
        (_near_smallest, True, -15, -12),
        (_near_largest, False, 124, 128),
        (_near_largest, True, 12, 16),
    ],
)
def test_exponents_reach_from_end_to_end_and_no_further(kind, small, least, most):
    """For formats whose exponents have 8 bits, and for those of 5."""
    drawn = np.concatenate([kind(np.random.default_rng(seed), (1000,), small) for seed in range(10)])
    exponents = np.log2(np.abs(drawn))
    assert least <= exponents.min() < least + 0.1
    assert most - 0.1 < exponents.max() <= most
    assert 0.4 < (drawn < 0).mean() < 0.6


def test_sparse_tiles_mostly_have_one_element_in_a_row_and_encodings_several_tiles():
    picking = terms = whole = 0
    for seed in SEEDS:
        budget = Budget(ops=1, graphs=1, tiles=6)
        netlist = generate(seed, budget=budget, op_types=("matmul",), wanted={"identity"}).netlist
        for op in (op for op in netlist.ops.values() if op.attributes.identity):
            blocks = {block.queue: block.array for block in awkward_inputs(netlist, seed)}
            tiles, words = blocks[op.inputs[0]], blocks[op.inputs[2]]
            rows = tiles.reshape(-1, tiles.shape[-1] // 32, 32)
            picking += bool((np.count_nonzero(rows, axis=-1) <= 1).all())
            terms += np.count_nonzero(words) > 6
            whole += 1
    assert whole > 20
    assert whole > picking > whole // 2
    assert terms > whole // 4


def test_netlists_with_them_run():
    for seed in range(12):
        text = generate(seed, budget=Budget(ops=2, graphs=1, tiles=4)).text
        assert list(awkward_inputs(check_text(text).netlist, seed))
