"""What a netlist is found to have: all of it, and nothing else."""

import pytest

import buda_emu as be
from buda_emu.testing.coverage.features import features
from example_netlists import DIRECTORY
from small_netlists import execute, graph, op, program, queue, ram_settings, text

EXAMPLES = {
    ("attention", "op types"): {"matmul", "multiply", "add", "exp", "reciprocal"},
    ("attention", "instructions"): {"loop", "varinst incwrap", "param", "staticvar", "execute"},
    ("attention", "TMs"): {
        "broadcast c", "broadcast r", "broadcast z", "hslice", "hstack", "transpose",
    },
    ("attention", "queues"): {
        "between graphs", "from the host", "of an op", "ram of the host", "several buffers", "tile 32x32", "wraps",
    },
    ("attention", "queue settings"): {"prologue", "variable pointer", "literal pointer"},
    ("attention", "structure"): {"several graphs", "several inputs of an epoch"},
    ("attention", "grids"): {"column", "rectangle"},
    ("eltwise_tms", "grids"): {"one core", "row"},
    ("eltwise_tms", "queues"): {"from the host", "of an op", "tile 32x32", "wraps"},
    ("eltwise_tms", "structure"): set(),
    ("eltwise_tms", "TMs"): {"broadcast c", "broadcast r", "broadcast z", "hslice", "transpose", "vstack"},
    ("softmax", "structure"): {"fused op", "fused op of several schedules", "several inputs of an epoch"},
    ("softmax", "TMs"): {"broadcast c", "broadcast r", "broadcast z", "tile_broadcast c"},
    ("training", "instructions"): {
        "execute", "loop", "param", "staticvar", "var", "varinst incwrap", "varinst set",
    },
    ("training", "queue settings"): {"epilogue", "literal pointer", "prologue", "variable pointer", "zero"},
    ("training", "structure"): {"gradient op", "several graphs", "several programs"},
    ("two_chips", "structure"): {"several chips", "several graphs", "several inputs of an epoch", "temporal graph"},
}  # fmt: skip


@pytest.mark.parametrize(("name", "subject"), EXAMPLES)
def test_an_example_has_just_this(name, subject):
    assert features(be.load(DIRECTORY / f"{name}.yaml"))[subject] == EXAMPLES[name, subject]


def net(tmp_path, queues, node, *steps, programs="p"):
    """What a netlist of one graph has, with the same program under each of these names."""
    path = tmp_path / "net.yaml"
    every = [program(name, "var: {$c_zero: 0}", *steps) for name in programs]
    path.write_text(text(queues, [graph("g", node)], every))
    return features(be.load(path))


NOP, RUN = op("n", "nop", ["a"]), execute("g", ram_settings("a"))
PLAIN = {"ram of the host", "of an op", "tile 32x32"}


def test_where_queues_lie(tmp_path):
    ram, result = queue("a", kind="ram"), queue("o", "n")
    assert net(tmp_path, [ram, result], NOP, RUN)["queues"] == PLAIN
    in_host = result.replace("loc: dram, dram:", "loc: host, host:")
    assert net(tmp_path, [ram, in_host], NOP, RUN)["queues"] == PLAIN | {"in host memory"}


def test_two_buffers_are_several(tmp_path):
    wide = {"mblock": (1, 2)}
    ram = queue("a", kind="ram").replace("grid_size: [1, 1]", "grid_size: [1, 2]")
    ram = ram.replace("]]}", "], [1, 0x20000000]]}")
    found = net(tmp_path, [ram, queue("o", "n", **wide)], op("n", "nop", ["a"], **wide), RUN)
    assert found["queues"] == PLAIN | {"several buffers"}


def test_two_rams_in_one_place_are_views(tmp_path):
    ram, other = queue("a", kind="ram"), queue("b", kind="ram")
    same = ram.replace("  a:", "  b:")
    node, run = op("n", "add", ["a", "b"]), execute("g", ram_settings("a"), ram_settings("b"))
    assert net(tmp_path, [ram, other, queue("o", "n")], node, run)["queues"] == PLAIN
    assert net(tmp_path, [ram, same, queue("o", "n")], node, run)["queues"] == PLAIN | {"several views"}


@pytest.mark.parametrize(("programs", "expected"), [("p", set()), ("pq", {"several programs"})])
def test_two_programs_are_several(programs, expected, tmp_path):
    found = net(tmp_path, [queue("a", kind="ram"), queue("o", "n")], NOP, RUN, programs=programs)
    assert found["structure"] == expected


def test_an_attribute_with_words_is_named_with_its_word(tmp_path):
    assert "matmul bias" in features(be.load(DIRECTORY / "attention.yaml"))["attributes"]
    reduce = op("n", "reduce", ["a"], more=", attributes: {dim: r, type: max}")
    found = net(tmp_path, [queue("a", kind="ram"), queue("o", "n")], reduce, RUN)
    assert found["attributes"] >= {"reduce dim=r", "reduce type=max"}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (("loop: 2", "endloop", "loop: 2", "endloop"), {"loop"}),
        (("loop: 2", "loop: 2", "endloop", "endloop"), {"loop", "loop in a loop"}),
    ],
)
def test_loops_one_after_the_other_are_not_nested(steps, expected, tmp_path):
    found = net(tmp_path, [queue("a", kind="ram"), queue("o", "n")], NOP, RUN, *steps)
    assert found["instructions"] == {"var", "execute"} | expected
