"""Flags of ops: each is set where the netlist or the model says so, and nowhere else."""

from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.performance.timing.flags import MEANINGS, MOSTLY, op_flags
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

SHAPE = {"df": "Float16_b", "entries": 64}
BLOCK = {"df": "Float16_b", "mblock": (2, 2)}


def modelled(*ops, queues=("a", "b"), static=(), last="n", inputs=16, block=(1, 1)):
    """A netlist of these ops, the last of which feeds queue o; `static` queues are loaded once."""
    shape = {**SHAPE, "mblock": block}
    settings = [fifo_settings(name) for name in queues]
    settings += [ram_settings(name, prologue="true") for name in static]
    lines = [queue(name, **shape) for name in queues]
    lines += [queue(name, kind="ram", **{**shape, "entries": 1}) for name in static]
    checked = check_text(
        text(
            [*lines, queue("o", last, **shape)],
            [graph("g", *ops, inputs=inputs)],
            [program("p", "var: {$c_zero: 0}", execute("g", *settings))],
        )
    )
    assert checked.netlist is not None, checked.diagnostics
    return be.perf(checked.netlist)


def flags_of(perf):
    return op_flags(perf.netlist, perf.run, perf.epochs[0])


def named(perf, flag):
    return {name for name, flags in flags_of(perf).items() if flag in flags}


def test_rows_json_and_schema_have_them():
    perf = be.perf(DIRECTORY / "two_chips.yaml")
    assert {row["op"]: row["flags"] for row in perf.op_rows}["activate"] == "one core"
    found = {record["op"]: record["flags"] for epoch in perf.to_json()["epochs"] for record in epoch["ops"]}
    assert list(found["activate"]) == ["one core"]
    assert set().union(*found.values()) <= set(MEANINGS)


def test_an_op_of_constants_alone_computes_the_same_for_each_input():
    ops = [
        op("m", "exp", ["w"], loc=(0, 0), df="Float16_b"),
        op("k", "exp", ["m"], loc=(0, 1), df="Float16_b"),
        op("n", "add", ["a", "k"], loc=(0, 2), df="Float16_b"),
    ]
    assert named(modelled(*ops, queues=("a",), static=("w",)), "recomputed") == {"m", "k"}
    assert named(modelled(*ops, queues=("a",), static=("w",), inputs=1), "recomputed") == set()


@pytest.mark.parametrize(
    ("changed", "again"), [({}, {"y"}), ({"kind": "sqrt"}, set()), ({"inputs": ["b"]}, set()), ({"loc": (0, 3)}, {"y"})]
)
def test_the_same_computation_twice(changed, again):
    words = {"kind": "exp", "inputs": ["a"], "loc": (0, 1), **changed}
    ops = [
        op("x", "exp", ["a"], loc=(0, 0), df="Float16_b"),
        op("y", words["kind"], words["inputs"], loc=words["loc"], df="Float16_b"),
        op("z", "add", ["a", "b"], loc=(1, 1), df="Float16_b"),
        op("s", "add", ["x", "y"], loc=(0, 2), df="Float16_b"),
        op("n", "add", ["s", "z"], loc=(1, 2), df="Float16_b"),
    ]
    assert named(modelled(*ops), "recomputed") == again


@pytest.mark.parametrize(
    ("kind", "inputs", "tms", "again"),
    [
        ("exp", ["a"], ["broadcast: {c: 2}"], True),
        ("nop", ["a"], ["broadcast: {c: 2}"], False),  # a copy has no work to spare
        ("exp", ["a"], ["broadcast: {c: 1}"], False),
        ("add", ["a", "b"], ["broadcast: {c: 2}", "broadcast: {c: 2}"], True),
        ("add", ["a", "b"], ["broadcast: {c: 2}", "hstack: 2"], False),
    ],
)
def test_an_op_on_repetitions(kind, inputs, tms, again):
    more = "".join(f", input_{number}_tms: [{tm}]" for number, tm in enumerate(tms))
    width = (1, 1) if "1}" in tms[0] else (1, 2)
    slices = 2 if "hstack: 2" in tms else 1
    lines = [queue("a", **SHAPE), queue("b", t=slices, **SHAPE), queue("o", "n", **{**SHAPE, "mblock": width})]
    checked = check_text(
        text(
            lines,
            [graph("g", op("n", kind, inputs, df="Float16_b", mblock=width, more=more), inputs=4)],
            [program("p", "var: {$c_zero: 0}", execute("g", *map(fifo_settings, inputs)))],
        )
    )
    assert checked.netlist is not None, checked.diagnostics
    assert named(be.perf(checked.netlist), "recomputed") == ({"n"} if again else set())


def test_padding_of_tiles_and_of_what_the_compiler_recorded():
    pad = ", input_0_pad: {rt: 2, ct: 0, pad_value: 0.0}"
    padded = op("m", "nop", ["a"], loc=(0, 0), df="Float16_b", mblock=(3, 1), more=pad)
    kept = op("n", "nop", ["m"], loc=(0, 1), df="Float16_b", more=", input_0_unpad: {rt: 2, ct: 0}")
    perf = modelled(padded, kept, queues=("a",))
    assert named(perf, "padding") == {"m"}
    for share, flagged in ((MOSTLY, set()), (MOSTLY + 0.01, {"n"}), (1.0, {"n"})):
        recorded = replace(perf, run=replace(perf.run, padding={"n": share, "m": 0.0}))
        assert named(recorded, "padding") == flagged


def test_an_op_on_one_core_that_bounds_its_epoch():
    slow = op("m", "exp", ["a"], loc=(0, 0), **BLOCK)
    quick = op("n", "nop", ["m"], loc=(0, 1), **BLOCK)
    perf = modelled(slow, quick, queues=("a",), block=(2, 2))
    assert named(perf, "one core") == {"m"}
    full = replace(perf, run=replace(perf.run, chip=perf.run.chip.with_grid(1, 2)))  # no core is free
    assert named(full, "one core") == set()


def test_dram_that_works_longer_than_the_op():
    ops = [
        op("m", "add", ["a", "b"], loc=(0, 0), **BLOCK),
        op("k", "add", ["c", "d"], loc=(0, 1), **BLOCK),
        op("s", "add", ["m", "k"], loc=(0, 2), **BLOCK),
        op("n", "nop", ["s"], loc=(0, 3), **BLOCK),
    ]
    perf = modelled(*ops, queues=("a", "b", "c", "d"), block=(2, 2))
    assert named(perf, "DRAM") == {"m", "k", "n"}  # one channel for five queues, none of which s sees
    slow = modelled(op("n", "exp", ["a"], **BLOCK), queues=("a",), block=(2, 2))
    assert named(slow, "DRAM") == set()
