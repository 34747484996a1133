"""Reading a test-config: fields, merging, look-up (NETLIST 5)."""

import pytest

from buda_emu.errors import NetlistError
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.spec.stimulus import Stimulus
from buda_emu.verify.test_config import read_test_config


def config(text):
    root = read_tree(text)
    return read_test_config("net.yaml", {key: value for key, _, value in root.items()})


def test_a_netlist_without_one_has_the_vendors_default():
    empty = config("queues: {}")
    assert empty.default == Stimulus("uniform", 0.001, 2.0)
    assert empty.args == {}
    assert empty.lookup(("q",)) is None


def test_fields_are_read():
    read = config(
        "test-config: {test-args: {microbatch_count: 0x4}, stimulus-config: {type: NORMAL, normal_mean: 1, "
        "normal_stddev: 1e-3, set_tile_rows: [1, 1], overrides: {q: {type: Constant, constant_value: -2}}}}"
    )
    assert read.args == {"microbatch_count": "0x4"}
    assert read.default == Stimulus("normal", normal_mean=1.0, normal_stddev=0.001, set_tile_rows=(1, 1))
    assert read.lookup(("q",)) == Stimulus("constant", constant_value=-2.0)


def test_an_override_does_not_inherit():
    read = config("test-config: {stimulus-config: {type: Step, set_tile_cols: [2, 3], overrides: {q: {type: Step}}}}")
    assert read.lookup(("q",)) == Stimulus("step")


def test_look_up_prefers_exact_names_then_the_first_full_match():
    read = config(
        "test-config: {stimulus-config: {overrides: "
        "{'.*a.*': {type: Step}, 'b.*': {type: Normal}, qa: {type: Uniform}}}}"
    )

    def kind(*names):
        found = read.lookup(names)
        return found and found.type

    assert kind("qa") == "uniform"
    assert kind("xay") == "step"
    assert kind("ba") == "step"
    assert kind("bx") == "normal"
    assert kind("xb") is None  # a part is not a match
    assert kind("xb", "bx") == "normal"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("colour: red", "net.yaml:1: unknown stimulus field 'colour'"),
        ("uniform_lower_bound: low", "uniform_lower_bound has no legal value"),
        ("nz_tiles: 1.5", "nz_tiles has no legal value"),
        ("set_tile_rows: [0, 3]", "set_tile_rows has no legal value"),
        ("set_tile_rows: [4, 3]", "set_tile_rows has no legal value"),
        ("set_tile_rows: 3", "set_tile_rows has no legal value"),
        ("type: [Uniform]", "type has no legal value"),
    ],
)
def test_wrong_fields_are_refused(fields, message):
    with pytest.raises(NetlistError, match=message):
        config(f"test-config: {{stimulus-config: {{{fields}}}}}")


def test_a_broken_pattern_is_refused():
    read = config("test-config: {stimulus-config: {overrides: {'a[': {type: Step}}}}")
    with pytest.raises(NetlistError, match=r"'a\['"):
        read.lookup(("q",))
