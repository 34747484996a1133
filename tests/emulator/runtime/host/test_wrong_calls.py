"""Whatever a caller hands in: a documented error that says what is wrong, and the machine is as it was."""

import threading
import warnings
from random import Random

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.formats import float_state
from buda_emu.spec.test_config import PARAMETER_ARGS
from buda_emu.support.errors import HostWarning
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

NET = text(
    [queue("a"), queue("r", kind="ram"), queue("o", "n")],
    [graph("g", op("n", "nop", ["a"]))],
    [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
)
ONE = np.ones((1, 1, 32, 32), np.float32)


@pytest.fixture
def emu(load):
    with be.Emulator(load(NET), threads=1) as machine:
        yield machine


@pytest.mark.parametrize("name", [None, 7, "", b"a", ["a"], {}, "a\0b"])
def test_names_of_queues(emu, name):
    for call in (
        lambda: emu.push(name, ONE),
        lambda: emu.pop(name),
        lambda: emu.peek(name),
        lambda: emu.memory_image(name),
    ):
        with pytest.raises(be.HostError):
            call()


@pytest.mark.parametrize("value", ["1", 1.5, [], {}, "one"])
def test_numbers(emu, value):
    emu.push("r", ONE, np.int64(2))
    for call in (
        lambda: emu.push("r", ONE, value),
        lambda: emu.push("a", ONE, timeout="soon"),
        lambda: emu.pop("o", value),
        lambda: emu.pop("o", -1),
        lambda: emu.peek("o", value),
        lambda: emu.peek("r", 1, slot=value),
        lambda: emu.memory_image("r", value),
    ):
        with pytest.raises(be.HostError):
            call()
    assert emu.peek("r", 1, slot=np.int32(2))[0, 0, 0, 0] == 1


@pytest.mark.parametrize(("limit", "words"), [("memory_limit", "0 or more"), ("step_limit", "at least 0, not -1")])
def test_negative_limits(load, limit, words):
    with pytest.raises(be.HostError, match=f"{limit} must be {words}"):
        be.Emulator(load(NET), **{limit: -1})


def test_what_is_too_large_for_float32_is_infinite_without_a_warning(emu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emu.push("a", np.full(ONE.shape, 1e300))
    assert np.isinf(emu.peek("a")).all()


@pytest.mark.parametrize("name", ["a\0b", "", "missing/snap"])
def test_names_of_snapshots(emu, name):
    for call in (emu.save, emu.restore, be.Emulator.load):
        with pytest.raises(be.HostError):
            call(name)


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 5000, "1" + "0" * 10_000])
def test_integers_of_thousands_of_digits(load, value):
    body = program("p", "param: [$n]", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))
    net = load(text([queue("a"), queue("o", "n")], [graph("g", op("n", "nop", ["a"]))], [body]))
    with be.Emulator(net, threads=1) as machine:
        with pytest.raises(be.ProgramError, match="does not fit a 32-bit signed integer") as raised:
            machine.run("p", {"$n": value})
        assert len(str(raised.value)) < 1000
        machine.push("a", ONE)
        machine.run("p", {"$n": "0" * 5000 + "7"})


LOOPED = text(
    [queue("a"), queue("o", "n")],
    [graph("g", op("n", "nop", ["a"]))],
    [
        program("p", "param: [$p_loop_count]", "var: {$c_zero: 0}", execute("g", fifo_settings("a"))),
        program("other", "param: [$p_zero_grad]", "var: {$c_zero: 0}", execute("g", fifo_settings("a"))),
    ],
)


class WithoutText:
    def __str__(self):
        raise ZeroDivisionError


@pytest.fixture
def looped(load):
    """A machine whose `close` must not wait for a run that never began."""
    machine = be.Emulator(load(LOOPED), threads=1)
    yield machine
    closing = threading.Thread(target=machine.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()


@pytest.mark.parametrize("start", ["run", "run_async"])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([1], "are a mapping .* not list"),
        (7, "are a mapping .* not int"),
        ("$p_loop_count", "are a mapping .* not str"),
        ([], "are a mapping"),
        ({1: 1}, "are strings, not int"),
        ({"$p_loop_count": 1, None: 1}, "are strings, not NoneType"),
    ],
)
def test_parameters_that_are_none(looped, start, params, message):
    with pytest.raises(be.HostError, match=message):
        getattr(looped, start)("p", params)


@pytest.mark.parametrize("start", ["run", "run_async"])
@pytest.mark.parametrize(
    ("program_name", "params", "settings"),
    [
        ("p", {"$p_loop_count": WithoutText()}, {}),
        ("nowhere", {}, {}),
        (["p"], {}, {}),
        ("p", {}, {"wait": -1}),
        ("p", {}, {"wait": "long"}),
    ],
)
def test_a_run_that_cannot_begin_is_none(looped, start, program_name, params, settings):
    with pytest.raises((be.HostError, TypeError, ZeroDivisionError)):
        getattr(looped, start)(program_name, params, **settings)


def test_a_run_whose_floats_cannot_be_made_exact_is_none(looped, monkeypatch):
    def refuse():
        raise be.UnsupportedError("no exact floats")

    monkeypatch.setattr(float_state, "_is_exact", lambda: False)
    monkeypatch.setattr(float_state, "_c_library", refuse)
    with pytest.raises(be.UnsupportedError, match="no exact floats"):
        looped.run("p", {"$p_loop_count": 1})


@pytest.mark.parametrize("start", ["run", "run_async"])
@pytest.mark.parametrize("name", ["nope", *sorted(PARAMETER_ARGS)])
def test_a_netlist_without_parameters_refuses_all_in_any_spelling(load, start, name):
    programs = [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))]
    source = text([queue("a"), queue("o", "n")], [graph("g", op("n", "nop", ["a"]))], programs)
    with be.Emulator(load(source), precision="ideal") as emu:
        for spelling in (name, f"${name}"):
            with pytest.raises(be.HostError, match=rf"no program takes the parameter \${name}.*parameters: none"):
                getattr(emu, start)("p", {spelling: 1})


@pytest.mark.parametrize("start", ["run", "run_async"])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"p_lop_count": 1},
            r"the parameter \$p_lop_count \(did you mean '\$p_loop_count'\?\); parameters: \$p_l",
        ),
        ({"$P_LOOPCOUNT": 1}, r"did you mean '\$p_loop_count'"),
        ({"$rounds": 1}, r"no program takes the parameter \$rounds; parameters: \$p_loop_count"),
        ({"p_loop_count": 1, "$p_loop_count": 1}, r"\$p_loop_count is given twice, with and without \$"),
    ],
)
def test_a_parameter_that_no_program_takes_is_refused(looped, start, params, message):
    with pytest.raises(be.HostError, match=message):
        getattr(looped, start)("p", params)
    looped.push("a", ONE)
    looped.run("p", {"p_loop_count": 1})  # the dollar may be left out
    assert looped.pop("o").shape == ONE.shape


@pytest.mark.parametrize("seed", range(5))
def test_any_name_with_a_slip_is_refused_with_the_name_that_was_meant(looped, seed):
    random = Random(seed)
    letters = list("p_loop_count")
    place = random.randrange(2, len(letters))
    letters[place] = random.choice("xyzw")
    with pytest.raises(be.HostError, match=r"did you mean '\$p_loop_count'"):
        looped.run("p", {"".join(letters): 1})


TWO = text(
    [queue("a"), queue("o", "n")],
    [graph("g", op("n", "nop", ["a"]))],
    [
        program("p", "param: [$x]", "var: {$c_zero: 0}", "loop: $x", execute("g", fifo_settings("a")), "endloop"),
        program("q", "param: [$y]", "var: {$c_zero: 0}", "loop: $y", execute("g", fifo_settings("a")), "endloop"),
    ],
)


def test_parameters_of_a_failed_run_are_not_those_of_later_ones(load):
    with be.Emulator(load(TWO), threads=1) as machine:
        for params in ({"$y": 1}, {"$y": 1, "x": "$y"}, {"x": 1}):  # no value, no number, nothing pushed
            with pytest.raises(be.ProgramError):
                machine.run("p", params)
            with pytest.raises(be.ProgramError, match=r"param \$x has no value; parameters given: none"):
                machine.run("p")
        machine.push("a", ONE)
        machine.run("p", {"x": 1})
        machine.push("a", ONE)
        machine.run("p")  # those of a run that ended well stay (NETLIST 3.2)
        with pytest.raises(be.ProgramError):
            machine.run("p", {"x": "$y"})
        machine.run("p")


def test_names_of_queues_and_programs_get_the_one_that_was_meant(load):
    names = text(
        [queue("activations"), queue("result", "n")],
        [graph("g", op("n", "nop", ["activations"]))],
        [program("run_fwd", "var: {$c_zero: 0}", execute("g", fifo_settings("activations")))],
    )
    with be.Emulator(load(names), threads=1) as machine:
        for call in (machine.pop, machine.peek, machine.memory_image):
            with pytest.raises(be.HostError, match="no queue 'Activation_s'; did you mean activations"):
                call("Activation_s")
        with pytest.raises(be.HostError, match="no queue 'xx'; queues: activations, result"):
            machine.push("xx", ONE)
        with pytest.raises(be.HostError, match="no queue 'n': that is an op, and its result is in result; "):
            machine.pop("n")
        with pytest.raises(be.HostError, match=r"no program 'run_fw' \(did you mean 'run_fwd'\?\); programs: run_fwd"):
            machine.run("run_fw")


def test_a_push_to_a_queue_that_an_op_feeds_warns(emu):
    with pytest.warns(HostWarning, match="push to o: op n feeds this queue"):
        emu.push("o", ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emu.push("a", ONE)
        emu.push("r", ONE)
