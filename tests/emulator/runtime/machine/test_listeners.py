"""Listeners: what they are told, on which thread, and what their exceptions leave behind."""

import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.netlist.program.parameters import values_for
from buda_emu.netlist.program.settings import VariableValues
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

EVENTS = (
    "instruction", "epoch_start", "epoch_end", "op_start", "op_end", "queue_value", "op_value", "queue_push",
    "queue_pop",
)  # fmt: skip


@pytest.fixture
def net(tmp_path):
    """x -> n -> m -> o, two inputs in each of the rounds that the parameter says; the varinst frees x."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x", entries=8), queue("o", "m", entries=8)],
            [graph("g", op("n", "add", ["x", "x"]), op("m", "nop", ["n"], loc=(0, 1)), inputs=2)],
            [
                program(
                    "p",
                    "param: [$rounds]",
                    "var: {$c_zero: 0}",
                    "staticvar: {$rd: 0}",
                    "loop: $rounds",
                    execute("g", fifo_settings("x", "$rd", "$rd")),
                    "varinst: [$rd, incwrap, 2, 16]",
                    "endloop",
                )
            ],
        )
    )
    return be.load(path)


def entries(*values):
    return np.stack([np.full((1, 32, 32), value, np.float32) for value in values])


def firsts(array):
    return array[:, 0, 0, 0].tolist()


class Recorder(be.Listener):
    """Writes every event down, and raises at the one it is told to."""

    def __init__(self, fail_at=None, after=0):
        self.events = []
        self.fail_at, self.after = fail_at, after


def _recording(name):
    def event(self, *args):
        self.events.append((name, *args))
        if name == self.fail_at:
            self.after -= 1
            if self.after < 0:
                raise KeyError(name)

    return event


for _name in EVENTS:
    setattr(Recorder, _name, _recording(_name))


def test_every_event_of_a_listener_is_tried_here():
    public = {name for name in vars(be.Listener) if not name.startswith("_")}
    assert public == set(EVENTS)


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_events_in_their_order(net, precision):
    watching = Recorder()
    with be.Emulator(net, precision, threads=1, listeners=(watching,)) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$rounds": 1})
        emu.pop("o", 2)
    short = [
        (
            name,
            *(
                args[1:2]
                if name == "instruction"
                else [getattr(item, "name", item) for item in args if not isinstance(item, np.ndarray)]
            ),
        )
        for name, *args in watching.events
    ]
    assert short == [
        ("queue_push", "x", 0),
        ("queue_push", "x", 1),
        *[("instruction", index) for index in range(5)],
        ("epoch_start", ("g",), 2),
        ("queue_value", "x", 2),
        ("op_start", "n", 2),
        ("op_value", "n", 2),
        ("op_end", "n", 2),
        ("op_start", "m", 2),
        ("op_value", "m", 2),
        ("op_end", "m", 2),
        ("queue_push", "o", 0),
        ("queue_push", "o", 1),
        ("epoch_end", ("g",)),
        ("instruction", 5),
        ("queue_pop", "x", 2),
        ("instruction", 6),
        ("queue_pop", "o", 2),
    ]
    values = [args[1] for name, *args in watching.events if name in ("queue_value", "op_value")]
    assert [(tiles.dtype.name, tiles.shape, tiles[:, 0, 0].tolist()) for tiles in values] == [
        ("float32", (2, 1, 1024), [1, 2]),
        ("float32", (2, 1, 1024), [2, 4]),
        ("float32", (2, 1, 1024), [2, 4]),
    ]


def test_listeners_come_and_go(net):
    first, second = Recorder(), Recorder()
    with be.Emulator(net, threads=1) as emu:
        emu.add_listener(first)
        emu.push("x", entries(1))
        emu.add_listener(second)
        emu.push("x", entries(2))
        emu.remove_listener(first)
        emu.push("x", entries(3))
        with pytest.raises(be.HostError, match="is not a listener of this Emulator"):
            emu.remove_listener(first)
    assert [slot for _, _, slot in first.events] == [0, 1]
    assert [slot for _, _, slot in second.events] == [1, 2]


def test_a_listener_may_remove_itself_while_it_is_called(net):
    class Once(be.Listener):
        calls = 0

        def op_end(self, *_):
            self.calls += 1
            emu.remove_listener(self)

    once = Once()
    with be.Emulator(net, threads=1, listeners=(once, be.Listener())) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$rounds": 1})
    assert once.calls == 1


@pytest.mark.parametrize("precision", ["format", "device"])
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", EVENTS)
def test_an_exception_stops_the_run_and_the_machine_goes_on(net, name, after, precision):
    """Whatever was told as done is done; what was not can be done again. Four inputs in chunks of one."""
    failing = Recorder(name, after)
    with be.Emulator(net, precision, threads=1, inputs_at_once=1) as emu:
        emu.push("x", entries(1, 2, 3, 4))
        emu.add_listener(failing)
        with pytest.raises(KeyError, match=name):
            emu.run("p", {"$rounds": 2})
        emu.remove_listener(failing)
        out = firsts(emu.pop("o", len(emu.peek("o"))))
        left = firsts(emu.peek("x"))
        pushed = sum(event[0] == "queue_push" and event[1] == "o" for event in failing.events)
        assert len(out) == pushed or name == "queue_push"
        assert out == [2, 4, 6, 8][: len(out)]
        assert left == [1, 2, 3, 4][4 - len(left) :]
        emu.push("x", entries(5, 6))
        emu.run("p", {"$rounds": 1})
        assert firsts(emu.pop("o", 2)) == [2 * value for value in [*left, 5, 6][:2]]


def test_an_op_that_fails_leaves_the_queues_as_before_its_chunk(net):
    failing = Recorder("op_end", 2)  # the first op of the second input
    with be.Emulator(net, threads=1, inputs_at_once=1, listeners=(failing,)) as emu:
        emu.push("x", entries(1, 2, 3, 4))
        with pytest.raises(KeyError):
            emu.run("p", {"$rounds": 2})
        assert firsts(emu.peek("o")) == [2]  # the first input is done, nothing of the second
        emu.remove_listener(failing)
        emu.pop("o")
        emu.run("p", {"$rounds": 2})  # from the start of the epoch
        assert firsts(emu.peek("o")) == [2, 4, 6, 8]


def test_a_host_call_that_a_listener_stops_is_done(net):
    failing = Recorder("queue_push")
    with be.Emulator(net, threads=1, listeners=(failing,)) as emu:
        with pytest.raises(KeyError):
            emu.push("x", entries(1, 2))
        assert firsts(emu.peek("x")) == [1]  # it was written, and then told
        emu.remove_listener(failing)
        emu.add_listener(Recorder("queue_pop"))
        with pytest.raises(KeyError):
            emu.pop("x")
        assert len(emu.peek("x")) == 0
        emu.push("x", entries(3))


def test_a_listener_may_read_push_and_pop_but_not_run(net):
    class Busy(be.Listener):
        seen = ()

        def op_end(self, op, *_):
            if op.name == "n":
                self.seen = (*self.seen, *firsts(emu.peek("x")), len(emu.peek("o")), len(emu.outputs()))
                emu.push("x", entries(9))

        def epoch_end(self, *_):
            with pytest.raises(be.HostError, match="a listener of a running program cannot run another"):
                emu.run("p", {"$rounds": 1})
            emu.pop("o")

    busy = Busy()
    with be.Emulator(net, threads=1, listeners=(busy,)) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$rounds": 1})
        assert busy.seen == (1, 2, 0, 0)  # what the epoch will write is not there yet
        assert firsts(emu.peek("o")) == [4]
        assert firsts(emu.peek("x")) == [9]


@pytest.mark.filterwarnings("ignore:push to o")
def test_a_push_to_the_queue_that_the_running_op_fills_loses_nothing(net, monkeypatch):
    """Its memory grows, and moves, while the op writes to it."""
    monkeypatch.setattr("buda_emu.emulator.memory.store.TileStore._room_attempts", lambda *given: (given[2],))

    class Pushing(be.Listener):
        def op_start(self, op, *_):
            if op.name == "m":
                emu.push("o", entries(*range(10, 15)))

    with be.Emulator(net, threads=1, listeners=(Pushing(),)) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$rounds": 1})
        assert firsts(emu.peek("o")) == [2, 4, 10, 11, 12, 13, 14]


def test_threads_of_events(net):
    class Threads(be.Listener):
        def __init__(self):
            self.of = {}

        def op_end(self, *_):
            self.of["op"] = threading.current_thread().name

        def queue_push(self, queue, *_):
            self.of[queue] = threading.current_thread().name

    watching = Threads()
    with be.Emulator(net, threads=2, listeners=(watching,)) as emu:
        emu.push("x", entries(1, 2))
        emu.run_async("p", {"$rounds": 1}).result(30)
    assert watching.of == {"x": threading.current_thread().name, "o": "buda-emu run p", "op": "buda-emu run p"}


# ------------------------------------------------------------------------------------- what a listener cannot change
def spoil(value):
    """Write to everything that can be reached from an argument of an event."""
    if isinstance(value, np.ndarray):
        for attempt in (lambda: value.setflags(write=True), lambda: value.view(np.uint32).setflags(write=True)):
            with suppress(ValueError):
                attempt()
        for array in (value, value.base, value.view(np.uint32), value.reshape(-1), value.T):
            with suppress(ValueError, TypeError, NotImplementedError):
                array[...] = 7
        return
    if isinstance(value, VariableValues):
        for reads in (value.values, value.snapshot):
            reads().clear()
        for name in ("assign", "declare", "set_state", "begin_run"):
            assert not hasattr(value, name)
        return
    for name in getattr(type(value), "__dataclass_fields__", ()):
        with suppress(AttributeError, TypeError):
            setattr(value, name, None)
    if isinstance(value, dict | list):
        value.clear()


def _spoiling(name):
    def event(self, *args):
        self.seen.add(name)
        for value in args:
            spoil(value)

    return event


Spoiler = type("Spoiler", (be.Listener,), {name: _spoiling(name) for name in EVENTS})
NETLISTS = tuple(sorted((Path(__file__).parents[4] / "netlists").glob("*.yaml")))


def outputs_of(net, seed, precision, listeners):
    draw = np.random.default_rng(seed)
    threads, at_once = int(draw.integers(1, 4)), [None, 1, 2][draw.integers(3)]
    with be.Emulator(net, precision, threads=threads, inputs_at_once=at_once, listeners=listeners) as emulator:
        for queue in net.queues.values():
            if queue.host_fed or queue.is_ram:
                tensor = draw.standard_normal((queue.entries, *queue.blocking.element_shape)).astype(np.float32)
                emulator.push(queue.name, tensor, slot=0 if queue.is_ram else None)
        for name in net.programs:
            values = {"$p_loop_count": 1, "$p_microbatch_count": 1, "$p_zero_grad": True}
            emulator.run(name, values_for(net.programs[name], values))
        return emulator.outputs()


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))])
def test_a_listener_that_writes_to_all_it_is_given_changes_no_result(seed):
    """In every event, to arrays, to what they are views of, and to the records around them."""
    draw = np.random.default_rng(seed)
    net = be.load(NETLISTS[seed % len(NETLISTS)])
    precision = ["format", "ideal", "device"][draw.integers(3)]
    spoiler = Spoiler()
    spoiler.seen = set()
    expected, found = (outputs_of(net, seed, precision, listeners) for listeners in ((), (spoiler,)))
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array.view(np.uint32), expected[name].view(np.uint32))
    assert spoiler.seen >= {"instruction", "op_value", "queue_value", "epoch_start", "op_start", "op_end"}


def test_arrays_of_listeners_cannot_be_written_to(net):
    class Look(be.Listener):
        def __init__(self):
            self.arrays = []

        def op_value(self, op, tiles, inputs):  # noqa: ARG002
            self.arrays.append(tiles)

        queue_value = op_value

    with be.Emulator(net, listeners=(look := Look(),)) as emulator:
        emulator.push("x", entries(1, 2))
        emulator.run("p", {"$rounds": 1})
    assert len(look.arrays) > 2
    for array in look.arrays:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            array.setflags(write=True)
        with pytest.raises(ValueError, match="read-only"):
            array += 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("op_ends", "did you mean 'op_end'?"),
        ("OpValue", "did you mean 'op_value'?"),
        ("after_op", "events: instruction, epoch_start, epoch_end, op_start, op_end"),
    ],
)
def test_a_method_that_no_event_calls_is_refused(net, name, hint):
    kind = type("Slip", (be.Listener,), {name: lambda *_: None})
    with be.Emulator(net) as emu:
        for refused in (lambda: emu.add_listener(kind()), lambda: be.Emulator(net, listeners=(kind(),))):
            with pytest.raises(be.HostError, match=f"listener Slip: no event calls its method {name}") as failure:
                refused()
            assert hint in str(failure.value)


@pytest.mark.parametrize(
    ("listener", "words"),
    [
        (be.Listener, r"listener Listener is a class: give an object of it, Listener\(\)"),
        (lambda *_: None, "is no listener, it has no method instruction: derive a class from Listener"),
        (None, "None is no listener"),
    ],
)
def test_what_is_no_listener_is_refused_at_once(net, listener, words):
    with be.Emulator(net) as emu, pytest.raises(be.HostError, match=words):
        emu.add_listener(listener)
    with pytest.raises(be.HostError, match=words):
        be.Emulator(net, listeners=(listener,))


class _Mixin:
    def report(self):
        """A method of another base class."""


def test_helpers_have_an_underscore_or_come_from_elsewhere(net):
    class Fine(_Mixin, be.Listener):
        count = 0

        @property
        def total(self):
            return self.count

        @staticmethod
        def made():
            return Fine()

        def _helper(self):
            pass

        def op_end(self, op, inputs):
            pass

    with be.Emulator(net, listeners=(Fine(),)) as emu:
        emu.add_listener(Fine.made())
