"""What Emulator says to arguments that are none."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.options import parameter_texts, parse_parameter, parse_settings_parameter
from buda_emu.support.errors import HostError, HostWarning


@pytest.mark.parametrize("given", ["net.yaml", None, {"queues": {}}])
def test_what_is_no_netlist(given):
    with pytest.raises(HostError, match=r"Emulator takes a netlist, not .*: buda_emu.load\(path\) reads one"):
        be.Emulator(given)


@pytest.mark.parametrize(("words", "meant"), [({"thread": 2}, "threads"), ({"memroy_limit": 1}, "memory_limit")])
def test_a_keyword_that_does_not_exist(words, meant):
    with pytest.raises(TypeError, match=rf"Emulator\(\) got an unexpected .* \(did you mean '{meant}'\?\)"):
        be.Emulator(None, **words)


class Counting:
    """An integer of another library: it compares and converts as one."""

    def __init__(self, value):
        self.value = value

    def __int__(self):
        return int(self.value)

    def __eq__(self, other):
        return self.value == other

    def __hash__(self):
        return hash(self.value)


@pytest.mark.parametrize("value", [2, "2", np.int64(2), np.uint8(2), 2.0, np.float32(2), Counting(2)])
def test_parameters_are_integers_of_any_kind(value):
    assert parameter_texts({"$p": value}) == {"$p": "2"}


def test_truth_is_a_number():
    assert parameter_texts({"a": True, "b": np.False_}) == {"a": "1", "b": "0"}


@pytest.mark.parametrize("value", [1.9, 0.5, np.float32(1.5), None, [1], float("nan"), float("inf"), b"2", 1j])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(HostError, match=r"parameter \$p is .*: expected an integer"):
        parameter_texts({"$p": value})


@pytest.mark.parametrize(("text", "number"), [("1.9", "1"), ("0x3", "0"), ("7 rounds", "7")])
def test_a_text_that_the_reference_reads_in_part(text, number):
    with pytest.warns(HostWarning, match=f"parameter p: '{text}' is not an integer; .* it is read as {number}"):
        assert parameter_texts({"p": text}) == {"p": number}
    with pytest.raises(HostError, match=f"'{text}' is not an integer: the machine would read {number}"):
        parse_parameter(f"p={text}")


def test_an_integer_that_is_too_large_and_is_read_in_part():
    text = "99999999999x"
    for read in (parse_parameter, parse_settings_parameter):
        with pytest.raises(HostError, match=f"'{text}' does not fit a 32-bit signed integer"):
            read(f"n={text}")
    with pytest.raises(HostError, match="does not fit a 32-bit signed integer"):
        parameter_texts({"n": text})


@pytest.mark.parametrize("value", [1.9, 0.5])
def test_a_run_takes_no_fraction(value, root):
    with be.Emulator(be.load(root / "netlists/attention.yaml")) as emu:
        for run in (emu.run, emu.run_async):
            with pytest.raises(HostError, match="expected an integer"):
                run("run_fwd", {"p_loop_count": value})
