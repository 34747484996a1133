"""Queue settings of an execute, evaluated again and again (NETLIST 3.5)."""

import pytest

from buda_emu.netlist.model import QueueSettings
from buda_emu.netlist.program.settings import ExecuteSettings, Kind, PreparedSettings, Variables
from buda_emu.support.errors import ProgramError

QUEUE = {"rd_ptr_global": "0", "rd_ptr_local": "0"}
RAM = {"rd_ptr_global": "0", "wr_ptr_global": "0"}
DERIVED = {"rd_ptr_autoinc": "1", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "1"}


def settings(**texts):
    return QueueSettings(queue="q", **{**QUEUE, **DERIVED, **texts})


def variables(**values):
    found = Variables()
    for name, value in values.items():
        found.declare(f"${name}", Kind.LOCAL, value)
    return found


def test_texts_become_numbers_and_flags():
    source = settings(prologue="True", zero="false", read_only="2", rd_ptr_global="7 and more", rd_ptr_local="-3")
    found = PreparedSettings(source, is_ram=False).evaluate(variables())
    assert found.source is source
    assert found.queue == "q"
    assert (found.prologue, found.epilogue, found.zero, found.read_only) == (True, False, False, True)
    assert type(found.read_only) is bool
    assert (found.rd_ptr_global, found.rd_ptr_local, found.wr_ptr_global) == (7, -3, 0)
    assert (found.rd_ptr_autoinc, found.global_rdptr_autoinc, found.global_wrptr_autoinc) == (1, 0, 1)


def test_every_evaluation_has_the_values_of_its_moment():
    prepared = PreparedSettings(settings(zero="$zero", rd_ptr_local="$rd", rd_ptr_global="$rd"), is_ram=False)
    assert prepared.texts == {"$zero", "$rd"}
    values = variables(zero=0, rd=4)
    before = prepared.evaluate(values)
    values.assign("$rd", 5)
    values.assign("$zero", 3)
    after = prepared.evaluate(values)
    assert (before.zero, before.rd_ptr_local, before.rd_ptr_global) == (False, 4, 4)
    assert (after.zero, after.rd_ptr_local, after.rd_ptr_global) == (True, 5, 5)
    assert type(after.zero) is bool
    assert before != after
    assert after == prepared.evaluate(values)


@pytest.mark.parametrize(("is_ram", "field"), [(True, "rd_ptr_local"), (False, "wr_ptr_global")])
def test_a_pointer_that_the_kind_of_queue_has_not_is_not_evaluated(is_ram, field):
    texts = {**(RAM if is_ram else QUEUE), **DERIVED, field: "$nowhere"}
    prepared = PreparedSettings(QueueSettings(queue="q", **texts), is_ram)
    assert getattr(prepared.evaluate(variables()), field) == 0
    assert prepared.texts == set()


@pytest.mark.parametrize(
    ("text", "problem"), [("$nowhere", "unknown variable"), ("soon", "neither a number"), ("", "empty operand")]
)
def test_what_has_no_value_is_an_error_each_time(text, problem):
    prepared = PreparedSettings(settings(rd_ptr_global=text), is_ram=False)
    for _ in range(2):
        with pytest.raises(ProgramError, match=rf"(?s){problem}.*") as error:
            prepared.evaluate(variables(known=1))
        assert "queue_settings of q, rd_ptr_global" in str(error.value)
        assert error.value.queue == "q"


@pytest.mark.parametrize("field", ["prologue", "epilogue"])
def test_a_parameter_may_not_say_whether_there_is_a_prologue(field):
    prepared = PreparedSettings(settings(**{field: "$p"}), is_ram=False)
    values = Variables()
    values.begin_run({"$p": "1"})
    values.bind_param("$p")
    with pytest.raises(ProgramError, match=rf"{field} may not be the parameter \$p"):
        prepared.evaluate(values)
    assert PreparedSettings(settings(zero="$p"), is_ram=False).evaluate(values).zero


def of_two(*, rd="$rd", prologue="false"):
    first = QueueSettings(queue="a", **{**QUEUE, **DERIVED, "rd_ptr_local": rd})
    return ExecuteSettings(
        (PreparedSettings(first, is_ram=False), PreparedSettings(settings(prologue=prologue), is_ram=False))
    )


def test_those_of_an_execute_are_the_same_objects_until_a_variable_changes():
    own, values = of_two(), variables(rd=1, other=0)
    first = list(own.evaluate_all(values))
    assert [(prepared.queue, found.rd_ptr_local) for prepared, found in first] == [("a", 1), ("q", 0)]
    values.assign("$other", 1)
    assert all(a is b for a, b in zip(own.evaluate_all(values), first, strict=True))
    values.assign("$rd", 2)
    assert [found.rd_ptr_local for _, found in own.evaluate_all(values)] == [2, 0]
    assert [found.rd_ptr_local for _, found in own.evaluate_all(variables(rd=1))] == [1, 0]


def test_an_error_comes_when_its_queue_is_reached():
    own = of_two(prologue="$p")
    values = variables(rd=1, p=1)
    assert [found.prologue for _, found in own.evaluate_all(values)] == [False, True]
    values = Variables()
    values.begin_run({"$p": "1"})
    values.bind_param("$p")
    values.declare("$rd", Kind.LOCAL, 1)
    found = iter(own.evaluate_all(values))
    assert next(found)[0].queue == "a"
    with pytest.raises(ProgramError, match="may not be the parameter"):  # the same values, of another kind
        next(found)
