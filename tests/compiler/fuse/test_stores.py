"""What is kept in a slot of a cache is written by the op that makes it."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.fuse.chains import fuse_stores
from buda_emu.compiler.lower.layout import standard
from buda_emu.compiler.lower.tiles import State, Store, TileGraph, TileOp, Use


def with_cache(*ops, slots=4):
    """One-tile ops written (name, type, *operands); `kept` writes the cache `past`."""
    made = TileGraph()
    for name, type, *operands in ops:
        made.ops[name] = TileOp(name, type, [Use(item) for item in operands], (1, 1, 1), source=name)
    held = np.zeros((slots, 32, 32), np.float32)
    made.states["past"] = State("past", "past", (32 * slots, 32), "float32", standard((32, 32)), held, slots)
    made.stores["past"] = Store("past", "kept", accumulate=False)
    return made


def test_who_makes_it_writes_it_behind_all_that_reads_the_cache():
    made = with_cache(
        ("k", "matmul", "x", "w"),
        ("own", "exp", "k"),
        ("s", "matmul", "x", "past"),
        ("y", "add", "s", "own"),
        ("kept", "nop", "k"),
    )
    fuse_stores(made)
    assert list(made.ops) == ["s", "k", "own", "y"]
    assert made.stores["past"].op == "k"


def test_the_nop_stays_where_a_reader_of_the_cache_needs_what_is_kept():
    made = with_cache(("k", "matmul", "x", "w"), ("s", "matmul", "k", "past"), ("kept", "nop", "k"))
    fuse_stores(made)
    assert list(made.ops) == ["k", "s", "kept"]
    assert made.stores["past"].op == "kept"


@pytest.mark.parametrize("change", [{"attrs": {"relu_en": True}}, {"uses": [Use("k", (("transpose",),))]}])
def test_the_nop_stays_where_it_does_more_than_copy(change):
    made = with_cache(("k", "matmul", "x", "w"), ("kept", "nop", "k"))
    made.ops["kept"] = replace(made.ops["kept"], **change)
    assert list(fuse_stores(made).ops) == ["k", "kept"]


def test_a_cache_that_is_replaced_whole_has_a_nop():
    assert list(fuse_stores(with_cache(("k", "matmul", "x", "w"), ("kept", "nop", "k"), slots=1)).ops) == ["k", "kept"]
