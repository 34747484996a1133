import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.spec.varinst import OPCODES
from buda_emu.support.errors import ProgramError


def calculate(name, out, *args):
    return OPCODES[name].result(out, args)


def test_plain_opcodes():
    assert calculate("set", 9, 4) == 4
    assert calculate("add", 9, 4, 5) == 9
    assert calculate("mul", 9, 4, -5) == -20
    assert calculate("inc", 9, 4) == 13


@given(st.integers(0, 1000), st.integers(-1000, 1000), st.integers(1, 500))
def test_incwrap_is_the_ordinary_modulo_for_non_negative_values(out, inc, wrap):  # NETLIST 3.3
    assert calculate("incwrap", out, inc, wrap) == (out + inc) % wrap


def test_incwrap_truncates_toward_zero_for_a_negative_value():
    assert calculate("incwrap", -5, 1, 3) == -1


@pytest.mark.parametrize("args", [(1, 0), (-1, -2)])
def test_incwrap_without_a_result_is_an_error(args):
    with pytest.raises(ProgramError):
        calculate("incwrap", 0, *args)


def test_which_opcodes_read_what_they_write():
    assert {name for name, opcode in OPCODES.items() if opcode.reads_out} == {"inc", "incwrap"}


def test_incwrap_by_nothing_with_a_negative_wrap():
    assert calculate("incwrap", 5, 0, -3) == 2
