"""Another library may have set flush-to-zero, on any thread: the bits are the same, and the state is given back."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.netlist.model import Netlist
from buda_emu.spec.precision import PRECISIONS
from float_states import flushes, flushing, needs_states, own_state, set_flushing
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

SHAPE = {"mblock": (8, 8), "ublock": (2, 2)}  # 16 by 16 tiles: enough for two threads to share
NET = text(
    [queue("a", **SHAPE), queue("b", **SHAPE), queue("out", "sum", **SHAPE)],
    [
        graph(
            "g",
            op("product", "multiply", ["a", "b"], **SHAPE),
            op("sum", "add", ["product", "a"], loc=(1, 0), **SHAPE),
            inputs=2,
        )
    ],
    [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), fifo_settings("b")))],
)


A, B = ((np.random.default_rng(seed).standard_normal((2, 1, 512, 512)) * 1e-22).astype(np.float32) for seed in (0, 1))
A[0, 0, 0] = 1e-40


@pytest.fixture
def net(load: Callable[[str], Netlist]) -> Netlist:
    return load(NET)


class Meddler(Listener):
    """Sets flush-to-zero whenever it is told something."""

    def op_start(self, *_: object) -> None:
        set_flushing()

    def instruction(self, *_: object) -> None:
        set_flushing()

    def queue_push(self, *_: object) -> None:
        set_flushing()


def bits(net: Netlist, precision: str, threads: int, *listeners: Listener, run: Callable[[be.Emulator], None]) -> bytes:
    with be.Emulator(net, precision, threads, listeners=listeners) as emu:
        emu.push("a", A)
        emu.push("b", B)
        run(emu)
        return emu.pop("out", 2, "raw").tobytes()


def plainly(emu: be.Emulator) -> None:
    emu.run("p")


def on_its_thread(emu: be.Emulator) -> None:
    emu.run_async("p").result(60)


@needs_states
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_are_those_of_an_untouched_thread(net: Netlist, precision: str, threads: int) -> None:
    expected = bits(net, precision, threads, run=plainly)
    with flushing():
        assert bits(net, precision, threads, run=plainly) == expected
        assert flushes()
        assert bits(net, precision, threads, run=on_its_thread) == expected
    with own_state():
        assert bits(net, precision, threads, Meddler(), run=plainly) == expected
    with own_state():
        assert bits(net, precision, threads, Meddler(), run=on_its_thread) == expected


@needs_states
def test_a_denormal_comes_through(net: Netlist) -> None:
    """The test above would see the flush: there are denormals in it."""
    found = np.frombuffer(bits(net, "ideal", 1, run=plainly), np.float32)
    assert np.any((found != 0) & (np.abs(found) < 2.0**-126))


def test_torch_may_flush_denormals(net: Netlist) -> None:
    torch = pytest.importorskip("torch")

    expected = bits(net, "ideal", 2, run=plainly)
    found: list[bytes] = []

    def work() -> None:
        assert torch.set_flush_denormal(True)
        found.append(bits(net, "ideal", 2, run=plainly))
        found.append(b"flushed" if flushes() else b"")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [expected, b"flushed"]
