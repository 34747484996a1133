"""Whatever a caller hands in: a documented error that says what is wrong, and the machine is as it was."""

import warnings

import numpy as np
import pytest

import buda_emu as be
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
