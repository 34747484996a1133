"""Whatever a caller hands in: a documented error that says what is wrong, and the machine is as it was."""

import threading
import warnings

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.formats import float_state
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


@pytest.mark.parametrize("limit", ["memory_limit", "step_limit"])
def test_negative_limits(load, limit):
    with pytest.raises(be.HostError, match=f"{limit} must be 0 or more"):
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
    monkeypatch.setattr(float_state, "_library", refuse)
    with pytest.raises(be.UnsupportedError, match="no exact floats"):
        looped.run("p", {"$p_loop_count": 1})


def test_parameters_of_other_programs_are_passed_over(looped):
    looped.push("a", ONE)
    looped.run("p", {"$p_loop_count": 1, "$p_zero_grad": 0})
    assert looped.pop("o").shape == ONE.shape
