import pytest

from buda_emu.netlist.model import Allocate, Declare, EndLoop, Execute, Loop, Param, Program, VarInst
from buda_emu.netlist.program.interpreter import Interpreter, StepBudget
from buda_emu.netlist.program.settings import Kind
from buda_emu.support.errors import ProgramError


class Recorder:
    """A machine that notes what it is told."""

    def __init__(self):
        self.calls = []

    def execute(self, instruction, variables):
        self.calls.append((instruction.graph, dict(variables.snapshot())))

    def follow_variable(self, text, variables):
        self.calls.append((text, variables.value(text)))

    def allocate(self, queue):
        self.calls.append(("allocate", queue))

    def deallocate(self, queue):
        self.calls.append(("deallocate", queue))


def make(*instructions, step_limit=10_000):
    recorder = Recorder()
    program = Program(name="p", instructions=instructions)
    return Interpreter(program, recorder, StepBudget(step_limit)), recorder


def run(interpreter, parameters=None):
    interpreter._steps.begin_run()
    interpreter.run(parameters or {})


def var(kind="var", **values):
    return Declare(kind=kind, variables=tuple(("$" + name, str(value)) for name, value in values.items()))


def inst(out, opcode, *args):
    return VarInst(out=out, opcode=opcode, args=tuple(map(str, args)))


def test_nested_loops_run_inside_out():
    program, machine = make(
        var(a=0), Loop(count="2"), Loop(count="3"), inst("$a", "inc", 1), EndLoop(), Execute(graph="g"), EndLoop()
    )
    run(program)
    assert [call[1]["$a"] for call in machine.calls if call[0] == "g"] == [3, 6]


def test_a_loop_count_is_taken_once():
    program, machine = make(var(n=2), Loop(count="$n"), inst("$n", "set", 9), EndLoop())
    run(program)
    assert machine.calls == [("$n", 9), ("$n", 9)]


@pytest.mark.parametrize("count", ["0", "-1", "false"])
def test_zero_trip_loops_do_not_exist(count):  # NETLIST 3.4
    program, _ = make(Loop(count=count), EndLoop())
    with pytest.raises(ProgramError, match="at least once"):
        run(program)


def test_locals_are_new_and_statics_live_on():
    program, machine = make(var(l=5), var("staticvar", s=5), inst("$l", "inc", 1), inst("$s", "inc", 1))
    run(program)
    run(program)
    assert machine.calls == [("$l", 6), ("$s", 6), ("$l", 6), ("$s", 7)]


def test_a_var_inside_a_loop_fails_in_its_second_round():
    program, _ = make(Loop(count="2"), var(x=1), EndLoop())
    with pytest.raises(ProgramError, match=r"instruction 1 .*already in use"):
        run(program)


def test_an_untyped_variable_survives_and_blocks_a_later_declaration():  # NETLIST 3.2
    program, _ = make(Loop(count="1"), inst("$u", "set", 1), EndLoop())
    run(program)
    assert program.variables.value("$u") == 1
    with pytest.raises(ProgramError, match="already in use"):
        program.variables.declare("$u", Kind.LOCAL, 0)


def test_params_are_bound_by_exact_name_and_kept_for_later_runs():
    program, machine = make(Param(names=("$p_n",)), Loop(count="$p_n"), Execute(graph="g"), EndLoop())
    run(program, {"$p_n": "2"})
    run(program)
    assert len(machine.calls) == 4
    missing, _ = make(Param(names=("$p_n",)))
    with pytest.raises(ProgramError, match=r"param \$p_n has no value; parameters given: p_n"):
        run(missing, {"p_n": "2"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", 1),
        ("False", 0),
        ("12", 12),
        (" 7x", 7),
        ("-3", -3),
        ("$$v", 4),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
    ],
)
def test_operands(text, value):  # NETLIST 3.1
    program, machine = make(var(v=4), inst("$o", "set", text))
    run(program)
    assert machine.calls == [("$o", value)]


@pytest.mark.parametrize("text", ["", "abc", "$nobody", "99999999999", "2147483648", "-2147483649"])
def test_operands_without_a_value(text):
    program, _ = make(inst("$o", "set", text))
    with pytest.raises(ProgramError, match="instruction 0"):
        run(program)


def test_wrong_operand_count_and_plain_output_name():
    for instruction in (inst("$o", "add", 1), inst("o", "set", 1), inst("$o", "set", 1, 2)):
        program, _ = make(instruction)
        with pytest.raises(ProgramError):
            run(program)


def test_endloop_without_loop():
    program, _ = make(EndLoop())
    with pytest.raises(ProgramError, match="endloop without a loop"):
        run(program)


def test_step_limit_stops_a_long_program():
    program, _ = make(var(x=0), Loop(count="1000000000"), inst("$x", "inc", 1), EndLoop(), step_limit=1000)
    with pytest.raises(ProgramError, match="step_limit"):
        run(program)


def test_a_program_of_as_many_steps_as_the_limit_runs():
    program, machine = make(inst("$x", "set", 1), inst("$x", "set", 2), step_limit=2)
    run(program)
    assert len(machine.calls) == 2
    run(program)  # the whole budget again
    with pytest.raises(ProgramError, match="more than 5"):
        StepBudget(5).take()  # nothing is left before a run begins
    program, _ = make(inst("$x", "set", 1), inst("$x", "set", 2), step_limit=1)
    with pytest.raises(ProgramError, match="more than 1 instructions"):
        run(program)


def test_values_are_32_bit():
    program, machine = make(var(x=2**30), inst("$x", "mul", "$x", 4))
    run(program)
    assert machine.calls == [("$x", 0)]


def test_allocate_goes_to_the_machine():
    program, machine = make(Allocate(queues=("a", "b")))
    run(program)
    assert machine.calls == [("allocate", "a"), ("allocate", "b")]


def test_a_loop_that_cannot_end_is_refused_when_it_begins():
    """Its body is counted once for each round, inner loops once, and nothing of it runs."""
    made, recorder = make(var(x=0), Loop(count="5"), Loop(count="2"), inst("$x", "inc", 1), EndLoop(), EndLoop())
    program = Interpreter(made.program, recorder, StepBudget(21), looks_ahead=True)
    with pytest.raises(ProgramError, match="5 rounds of this loop take at least 20 instructions, 19 of 21 are left"):
        run(program)
    assert recorder.calls == []
