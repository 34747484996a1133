import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.errors import ProgramError
from buda_emu.program.arithmetic import OPCODES
from buda_emu.program.steps import StepBudget
from buda_emu.program.values import Kind, Variables, shortened


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


def test_as_many_steps_as_are_left_may_be_required():
    steps = StepBudget(3, 3)
    steps.require(3, "loops")
    with pytest.raises(ProgramError, match="loops take at least 4 instructions, 3 of 3 are left"):
        steps.require(4, "loops")


def test_texts_of_forty_characters_are_shown_whole():
    assert shortened("x" * 40) == "x" * 40
    assert shortened("x" * 41) == "x" * 40 + "..."


def test_only_parameters_are_parameters_and_names_are_told():
    variables = Variables()
    variables.begin_run({"$n": "3"})
    variables.bind_param("$n")
    variables.declare("$a", Kind.LOCAL, 1)
    assert variables.is_param("$n")
    assert not variables.is_param("$a")
    assert not variables.is_param("3")
    with pytest.raises(ProgramError, match=r"unknown variable \$b; known: \$a, \$n$"):
        variables.value("$b")
