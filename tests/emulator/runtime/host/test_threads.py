"""Push, pop and run from several threads: back-pressure, waiting, cancelling, closing; the bits of one thread."""

import signal
import threading
import time

import numpy as np
import pytest

import buda_emu as be
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

LONG = 30.0  # seconds: a test that needs them has failed
SHORT = 0.05


def entries(*values, shape=(1, 32, 32)):
    return np.stack([np.full(shape, value, np.float32) for value in values])


def firsts(array):
    return array[:, 0, 0, 0].tolist()


def stream_text(*, depth=2, inputs=1, rounds="$p_loop_count", out_depth=None):
    """x -> n -> o in a loop; every execute frees what it has read."""
    return text(
        [queue("x", entries=depth), queue("o", "n", entries=out_depth or depth)],
        [graph("g", op("n", "add", ["x", "x"]), inputs=inputs)],
        [
            program(
                "p",
                "param: [$p_loop_count]",
                "var: {$c_zero: 0}",
                "staticvar: {$rd: 0}",
                f"loop: {rounds}",
                execute("g", fifo_settings("x", "$rd", "$rd")),
                f"varinst: [$rd, incwrap, {inputs}, {2 * depth}]",
                "endloop",
            )
        ],
    )


@pytest.fixture
def stream(load):
    return load(stream_text())


class Thread(threading.Thread):
    """A thread whose exception comes out of `end`."""

    def __init__(self, call, *args, **kwargs):
        super().__init__(daemon=True)
        self.call, self.args, self.kwargs = call, args, kwargs
        self.error = self.value = None
        self.start()

    def run(self):
        try:
            self.value = self.call(*self.args, **self.kwargs)
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def end(self):
        self.join(LONG)
        assert not self.is_alive(), "a thread hangs"
        if self.error is not None:
            raise self.error
        return self.value


def until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.001)


# ------------------------------------------------------------------------------------------------ push and pop
def test_a_full_queue_and_a_short_one_are_said_at_once_without_a_timeout(stream):
    with be.Emulator(stream, threads=1) as emu:
        with pytest.raises(be.HostTimeoutError, match=r"push of 3 entries to queue x .* it has room for 2 now, "):
            emu.push("x", entries(1, 2, 3))
        assert len(emu.peek("x")) == 0  # all or nothing
        emu.push("x", entries(1, 2))
        with pytest.raises(be.HostError, match="it is full"):
            emu.push("x", entries(3))
        with pytest.raises(be.HostTimeoutError, match=r"read of 1 entry from queue o .*: it is empty$"):
            emu.pop("o")
        with pytest.raises(be.HostTimeoutError, match=r"read of 2 entries from queue x .*: it holds 1$"):
            emu.pop("x"), emu.pop("x", 2)


@pytest.mark.parametrize("read", ["pop", "peek"])
def test_a_read_says_that_the_program_which_would_fill_the_queue_failed(stream, read):
    with be.Emulator(stream, threads=1) as emu:
        run = emu.run_async("p", {"$p_loop_count": 1}, wait=0)
        with pytest.raises(be.ProgramError):
            run.result(LONG)
        with pytest.raises(
            be.HostTimeoutError, match=r"it is empty; the last program, p, failed: program p, "
        ) as caught:
            getattr(emu, read)("o", 1)
        assert isinstance(caught.value.__cause__, be.ProgramError)
        with pytest.raises(be.HostTimeoutError, match=r"queue x .*: it is empty$"):
            getattr(emu, read)("x", 1)  # the host fills this one


def test_a_timeout_is_kept(stream):
    with be.Emulator(stream, threads=1) as emu:
        emu.push("x", entries(1, 2))
        start = time.monotonic()
        with pytest.raises(be.HostTimeoutError):
            emu.push("x", entries(3), timeout=SHORT)
        with pytest.raises(be.HostTimeoutError):
            emu.pop("o", timeout=SHORT)
        with pytest.raises(be.HostTimeoutError):
            emu.peek("o", 1, timeout=SHORT)
        assert 3 * SHORT <= time.monotonic() - start < LONG


def test_what_was_pushed_in_time_stays_and_is_counted(stream):
    with be.Emulator(stream, threads=1) as emu:
        with pytest.raises(be.HostTimeoutError, match="2 of them were pushed in time") as caught:
            emu.push("x", entries(1, 2, 3), timeout=SHORT)
        assert caught.value.done == 2
        assert firsts(emu.peek("x")) == [1, 2]


def test_more_entries_than_a_queue_has_can_never_be_popped(stream):
    with be.Emulator(stream, threads=1) as emu, pytest.raises(be.HostError, match="read of 3 entries") as caught:
        emu.pop("o", 3, timeout=LONG)
    assert not isinstance(caught.value, be.HostTimeoutError)


def test_pointers_that_a_program_placed_too_far_apart_leave_no_room(stream):
    """The occupancy of 3 of 2 entries cannot be on the device (NETLIST 4.3)."""
    with be.Emulator(stream, threads=1) as emu:
        emu.push("x", entries(1, 2))
        emu._memory.channels["x"].ring.place_read(1)
        emu._memory.channels["x"].ring.wr = 0
        assert firsts(emu.peek("x")) == [2, 1, 2]
        with pytest.raises(be.HostTimeoutError, match="it is full"):
            emu.push("x", entries(3), timeout=SHORT)
        assert firsts(emu.pop("x", 3)) == [2, 1, 2]


def test_a_push_goes_on_as_another_thread_makes_room(stream):
    with be.Emulator(stream, threads=1) as emu:
        pusher = Thread(emu.push, "x", entries(*range(7)), timeout=LONG)
        popped = [firsts(emu.pop("x", timeout=LONG))[0] for _ in range(7)]
        pusher.end()
        assert popped == list(range(7))


def test_a_pop_waits_for_all_its_entries(stream):
    with be.Emulator(stream, threads=1) as emu:
        popper = Thread(emu.pop, "x", 2, timeout=LONG)
        emu.push("x", entries(1))
        popper.join(SHORT)
        assert popper.is_alive()
        emu.push("x", entries(2))
        assert firsts(popper.end()) == [1, 2]


def test_pushes_of_several_threads_stay_together(load):
    net = load(stream_text(depth=3))
    with be.Emulator(net, threads=1) as emu:
        pushers = [Thread(emu.push, "x", entries(*[number] * 10), timeout=LONG) for number in range(4)]
        seen = [firsts(emu.pop("x", timeout=LONG))[0] for _ in range(40)]
        for pusher in pushers:
            pusher.end()
    assert sorted(seen[::10]) == [0, 1, 2, 3]
    assert all(seen[start : start + 10] == [seen[start]] * 10 for start in range(0, 40, 10))


def test_a_push_without_timeout_does_not_wait_for_one_that_waits(stream):
    with be.Emulator(stream, threads=1) as emu:
        waiting = Thread(emu.push, "x", entries(1, 2, 3), timeout=LONG)
        until(lambda: len(emu.peek("x")) == 2)
        with pytest.raises(be.HostTimeoutError, match="full"):
            emu.push("x", entries(9))
        emu.pop("x")
        waiting.end()
        assert firsts(emu.peek("x")) == [2, 3]


def test_a_peek_of_a_ram_waits_until_it_is_written(load):
    net = load(
        text(
            [queue("r", kind="ram"), queue("o", "n", kind="ram")],
            [graph("g", op("n", "nop", ["r"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", ram_settings("r"), ram_settings("o")))],
        ),
    )
    with be.Emulator(net, threads=1) as emu:
        reader = Thread(emu.peek, "o", timeout=LONG)
        emu.push("r", entries(5))
        emu.run("p")
        assert firsts(reader.end()) == [5]


# ------------------------------------------------------------------------------------------------ a waiting run
def test_a_stream_through_tiny_queues(load):
    """40 rounds through queues of two entries, with a pusher and a popper beside the program."""
    net = load(stream_text())
    with be.Emulator(net, threads=1) as emu:
        run = emu.run_async("p", {"$p_loop_count": 40}, wait=LONG)
        pusher = Thread(emu.push, "x", entries(*range(40)), timeout=LONG)
        popped = [firsts(emu.pop("o", timeout=LONG))[0] for _ in range(40)]
        run.result(LONG)
        pusher.end()
    assert popped == [2.0 * value for value in range(40)]
    assert run.done()
    assert (run.progress.inputs, run.progress.epochs, run.progress.instructions) == (40, 40, 4 + 40 * 3)


@pytest.mark.parametrize("parts", [(4,), (1, 3), (1, 1, 1, 1), (3, 1)])
def test_an_epoch_runs_what_is_there_with_the_same_bits(load, parts):
    """An epoch of four inputs whose entries come in parts gives what it gives when all are there."""
    shape = (1, 64, 32)
    net = load(
        text(
            [
                queue("x", entries=8, mblock=(2, 1), df="Float16_b"),
                queue("w", kind="ram", entries=1),
                queue("o", "m", entries=8, mblock=(2, 1)),
                queue("acc", "s", kind="ram", entries=1, mblock=(2, 1)),
            ],
            [
                graph(
                    "g",
                    op("m", "matmul", ["x", "w"], mblock=(2, 1), more=", attributes: {m_k: 1, u_kt: 1}"),
                    op("s", "nop", ["m"], loc=(0, 1), mblock=(2, 1), more=", gradient_op: true"),
                    inputs=4,
                )
            ],
            [
                program(
                    "p",
                    "var: {$c_zero: 0}",
                    "staticvar: {$rd: 0}",
                    execute(
                        "g",
                        fifo_settings("x", "$rd", "$rd"),
                        ram_settings("w", prologue="true"),
                        ram_settings("acc", prologue="true", epilogue="true", zero="true"),
                    ),
                    "varinst: [$rd, incwrap, 4, 16]",
                )
            ],
        )
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, *shape), np.float32)
    w = rng.standard_normal((1, 1, 32, 32), np.float32)

    def outputs(feed):
        with be.Emulator(net, threads=1) as emu:
            emu.push("w", w)
            for half in (x[:4], x[4:]):
                feed(emu, half)
            return emu.outputs("raw")

    def at_once(emu, half):
        emu.push("x", half)
        emu.run("p")

    def in_parts(emu, half):
        run = emu.run_async("p", wait=LONG)
        start = 0
        for part in parts:
            emu.push("x", half[start : start + part])
            start += part
            until(lambda expected=start: run.progress.epoch_inputs == expected)
        run.result(LONG)

    one, other = outputs(at_once), outputs(in_parts)
    assert one.keys() == other.keys() == {"o", "acc"}
    for name in one:
        np.testing.assert_array_equal(one[name].view(np.uint32), other[name].view(np.uint32))
    assert one["o"].shape == (8, *shape)


def test_stale_entries_are_not_read_while_a_run_waits(load):
    """The ring has gone round: the slot that is read next still holds an old entry."""
    net = load(stream_text(depth=2, inputs=2))
    with be.Emulator(net, threads=1) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$p_loop_count": 1})
        assert firsts(emu.pop("o", 2)) == [2, 4]
        emu.push("x", entries(3))
        run = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        assert firsts(emu.pop("o", timeout=LONG)) == [6]  # the first input did not wait for the second
        assert not run.done()
        emu.push("x", entries(4))
        run.result(LONG)
        assert firsts(emu.pop("o")) == [8]


def test_the_wait_is_over_when_nobody_pushes(stream):
    with be.Emulator(stream, threads=1) as emu:
        start = time.monotonic()
        with pytest.raises(be.ProgramError, match=r"waited 0\.05 s for the host") as caught:
            emu.run("p", {"$p_loop_count": 1}, wait=SHORT)
        assert SHORT <= time.monotonic() - start < LONG
        assert caught.value.kind == "empty"
        assert caught.value.stopped.queue.name == "x"
        assert caught.value.stopped.input == (1, 1)


def test_the_wait_is_over_when_nobody_pops(stream):
    with be.Emulator(stream, threads=1) as emu:
        emu.push("x", entries(1, 2))
        emu.run("p", {"$p_loop_count": 2})
        emu.push("x", entries(3))
        with pytest.raises(be.ProgramError, match=r"waited 0\.05 s for the host: push to a full queue") as caught:
            emu.run("p", {"$p_loop_count": 1}, wait=SHORT)
        assert caught.value.kind == "full"
        assert firsts(emu.pop("o", 2)) == [2, 4]  # nothing was spoilt, and the entry is still there
        emu.run("p", {"$p_loop_count": 1})
        assert firsts(emu.pop("o")) == [6]


def test_without_wait_an_empty_queue_is_a_deadlock_at_once(stream):
    with be.Emulator(stream, threads=1) as emu:
        with pytest.raises(be.ProgramError, match="read from an empty queue"):
            emu.run("p", {"$p_loop_count": 1})
        with pytest.raises(be.HostError, match="wait must be"):
            emu.run("p", {"$p_loop_count": 1}, wait=-1)


def test_a_queue_that_another_graph_fills_is_not_waited_for(load):
    net = load(
        text(
            [queue("x"), queue("e", "n"), queue("o", "m")],
            [graph("g", op("n", "nop", ["x"])), graph("h", op("m", "nop", ["e"]))],
            [program("p", "var: {$c_zero: 0}", execute("h", fifo_settings("e")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        start = time.monotonic()
        with pytest.raises(be.ProgramError, match="empty queue"):
            emu.run("p", wait=LONG)
        assert time.monotonic() - start < LONG / 2


# ------------------------------------------------------------------------------------------------ runs
def test_runs_take_their_turns_in_the_order_of_the_calls(load):
    net = load(stream_text(depth=8, rounds=2))
    with be.Emulator(net, threads=1) as emu:
        started = []
        emu.add_listener(listener := be.Listener())
        listener.epoch_start = lambda *_: started.append(threading.current_thread())
        first = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        second = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        assert not first.done()
        assert not second.done()
        emu.push("x", entries(1, 2, 3, 4))
        second.result(LONG)
        assert first.done()
        assert len(started) == 4
        assert started[0] is started[1] is not started[2]
        assert firsts(emu.pop("o", 4)) == [2, 4, 6, 8]


def test_a_programs_error_comes_out_of_result_and_the_machine_goes_on(stream):
    with be.Emulator(stream, threads=1) as emu:
        run = emu.run_async("p", {"$p_loop_count": 0})
        with pytest.raises(be.ProgramError, match="a loop runs at least once"):
            run.result(LONG)
        assert isinstance(run.exception(), be.ProgramError)
        assert run.done()
        assert not run.cancel()
        emu.push("x", entries(1))
        emu.run("p", {"$p_loop_count": 1})
        assert firsts(emu.pop("o")) == [2]
        with pytest.raises(be.HostError, match="no program"):
            emu.run_async("q")


def test_result_has_a_timeout(stream):
    with be.Emulator(stream, threads=1) as emu:
        run = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        with pytest.raises(be.HostTimeoutError, match="program p still runs"):
            run.result(SHORT)
        emu.push("x", entries(1))
        run.result(LONG)
        assert run.exception() is None


def test_a_waiting_run_is_cancelled(stream):
    with be.Emulator(stream, threads=1) as emu:
        run = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        behind = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
        time.sleep(SHORT)
        assert behind.cancel()  # before its turn
        with pytest.raises(be.RunCancelledError, match="program p was cancelled"):
            behind.result(LONG)
        assert run.cancel()
        with pytest.raises(be.RunCancelledError):
            run.result(LONG)
        emu.push("x", entries(1))
        emu.run("p", {"$p_loop_count": 1})
        assert firsts(emu.pop("o")) == [2]


ENDLESS = text(
    [queue("x"), queue("a", kind="ram"), queue("o", "n", kind="ram")],
    [graph("g", op("n", "nop", ["a"]))],
    [program("busy", "var: {$c_zero: 0}", "loop: 1000000000",
             execute("g", ram_settings("a"), ram_settings("o")), "endloop"),
     program("counting", "var: {$n: 0}", "loop: 1000000000", "varinst: [$n, inc, 0]", "endloop")],
)  # fmt: skip


@pytest.mark.parametrize("name", ["busy", "counting"])
def test_a_busy_run_lets_host_threads_in_and_is_cancelled(load, name):
    with be.Emulator(load(ENDLESS), threads=1, step_limit=1 << 60) as emu:
        emu.push("a", entries(1))
        run = emu.run_async(name)
        until(lambda: run.progress.instructions > 100)
        start, early = time.monotonic(), run.progress.instructions
        for value in range(50):
            emu.push("a", entries(value))
            emu.push("x", entries(value))
            assert firsts(emu.pop("x")) == [value]
            assert firsts(emu.peek("a")) == [value]
            emu.outputs()
        assert time.monotonic() - start < LONG / 4
        assert not run.done()
        assert run.progress.instructions > early
        assert run.cancel()
        with pytest.raises(be.RunCancelledError):
            run.result(LONG)


def test_progress_is_told_after_each_chunk(load):
    net = load(stream_text(depth=4, inputs=4))
    told = []
    with be.Emulator(net, threads=1, inputs_at_once=2) as emu:
        emu.push("x", entries(1, 2, 3, 4))
        run = emu.run_async("p", {"$p_loop_count": 1}, progress=told.append)
        run.result(LONG)
        ended = []
        run.add_done_callback(ended.append)
        assert ended == [run]
    assert [(item.inputs, item.epoch_inputs, item.epoch_input_count, item.epochs) for item in told] == [
        (2, 2, 4, 0),
        (4, 4, 4, 1),
    ]


def test_an_error_in_the_progress_callback_stops_the_run(load):
    net = load(stream_text(depth=4, inputs=2))

    def fail(progress):
        raise RuntimeError(f"no more after {progress.inputs}")

    with be.Emulator(net, threads=1) as emu:
        emu.push("x", entries(1, 2, 3, 4))
        with pytest.raises(RuntimeError, match="no more after 2"):
            emu.run_async("p", {"$p_loop_count": 2}, progress=fail).result(LONG)
        assert firsts(emu.pop("o", 2)) == [2, 4]  # what was told as done is done


def ctrl_c_soon():
    """A timer that sends SIGINT to the main thread, as a terminal does: it wakes a thread that waits."""
    main = threading.main_thread().ident
    timer = threading.Timer(SHORT, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_ends_a_wait_and_the_machine_goes_on(stream):
    with be.Emulator(stream, threads=1) as emu:
        emu.push("x", entries(0))
        emu.run("p", {"$p_loop_count": 1})  # kernels are made: a signal can be lost while they are
        emu.pop("o")
        emu.push("x", entries(1, 2))
        calls = (
            lambda: emu.push("x", entries(3), timeout=LONG),
            lambda: emu.pop("o", timeout=LONG),
            lambda: emu.run("p", {"$p_loop_count": 3}, wait=LONG),
        )
        for call in calls:
            timer = ctrl_c_soon()
            with pytest.raises(KeyboardInterrupt):
                call()
            timer.join()
        assert firsts(emu.pop("o", 2)) == [2, 4]  # of the run that was stopped in its third round
        emu.push("x", entries(5))
        emu.run("p", {"$p_loop_count": 1})
        assert firsts(emu.pop("o")) == [10]


@pytest.mark.parametrize("name", ["busy", "counting"])
def test_ctrl_c_stops_a_busy_program(load, name):
    with be.Emulator(load(ENDLESS), threads=1, step_limit=1 << 60) as emu:
        emu.push("a", entries(1))
        run = emu.run_async(name)
        until(lambda: run.progress.instructions > 5)
        run.cancel()
        timer = ctrl_c_soon()
        with pytest.raises(KeyboardInterrupt):
            emu.run(name)
        timer.join()
        emu.push("a", entries(2))
        assert firsts(emu.peek("a")) == [2]


# ------------------------------------------------------------------------------------------------ close
def test_close_cancels_runs_and_wakes_who_waits(stream):
    others = set(threading.enumerate())  # of tests before this one
    emu = be.Emulator(stream, threads=2)
    run = emu.run_async("p", {"$p_loop_count": 1}, wait=LONG)
    behind = Thread(emu.run, "p", {"$p_loop_count": 1}, wait=LONG)
    popper = Thread(emu.pop, "o", timeout=LONG)
    time.sleep(SHORT)
    emu.close()
    with pytest.raises(be.RunCancelledError):
        run.result(LONG)
    with pytest.raises(be.RunCancelledError):
        behind.end()
    with pytest.raises(be.HostError, match="closed"):
        popper.end()
    assert not [one for one in set(threading.enumerate()) - others if one.name.startswith("buda-emu")]


def test_a_closed_machine_holds_nothing_and_says_so(stream):
    emu = be.Emulator(stream, threads=2)
    emu.push("x", entries(1))
    emu.close()
    emu.close()
    calls = {
        "push": lambda: emu.push("x", entries(1)),
        "pop": lambda: emu.pop("x"),
        "peek": lambda: emu.peek("x"),
        "run": lambda: emu.run("p"),
        "run_async": lambda: emu.run_async("p"),
        "outputs": emu.outputs,
        "memory_image": lambda: emu.memory_image("x"),
    }
    for name, call in calls.items():
        with pytest.raises(be.HostError, match=f"{name}: this Emulator is closed"):
            call()


def test_memory_is_free_after_close(load, monkeypatch):
    import gc
    import tracemalloc
    import weakref

    from buda_emu.emulator.memory import memory_pool as pages
    from buda_emu.emulator.memory.memory_pool import POOL

    net = load(
        text(
            [queue("x", entries=64, mblock=(8, 8)), queue("o", "n", mblock=(8, 8))],
            [graph("g", op("n", "nop", ["x"], mblock=(8, 8)))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
        )
    )
    array = np.zeros((64, 1, 256, 256), np.float32)
    with be.Emulator(net, threads=1) as warm:
        warm.push("x", array[:1])
        warm.run("p")
    POOL.drop()
    made = []  # memory in large pages, which tracemalloc does not see

    def fresh(count):
        flat = pages.fresh(count)
        made.append(weakref.ref(flat))
        return flat

    monkeypatch.setattr(POOL, "_fresh", fresh)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        emu = be.Emulator(net, threads=1)
        emu.push("x", array)
        emu.run("p")
        assert sum(flat().nbytes for flat in made if flat() is not None) > array.nbytes
        emu.close()
        assert POOL.drop() > array.nbytes  # kept for the next machine of the process, until asked for
        gc.collect()
        assert all(flat() is None for flat in made)
        assert tracemalloc.get_traced_memory()[0] - before < array.nbytes // 16
    finally:
        tracemalloc.stop()


def test_close_from_a_listener_ends_the_program(stream):
    class Closer(be.Listener):
        def op_end(self, *_):
            emu.close()

    emu = be.Emulator(stream, threads=1, listeners=(Closer(),))
    emu.push("x", entries(1, 2))
    with pytest.raises(be.RunCancelledError):
        emu.run("p", {"$p_loop_count": 2})
    with pytest.raises(be.HostError, match="closed"):
        emu.push("x", entries(1))
    assert not emu._memory.channels  # freed when the program had ended


def test_close_while_others_push_and_pop(load):
    """Large entries: conversions are spread over the worker threads that close() ends."""
    net = load(
        text(
            [queue("x", entries=4, mblock=(8, 8), df="Bfp8_b"), queue("y"), queue("o", "n")],
            [graph("g", op("n", "nop", ["y"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("y")))],
        )
    )
    array = np.ones((4, 1, 256, 256), np.float32)
    for round_number in range(10):
        emu = be.Emulator(net, threads=2)
        pusher = Thread(lambda emu=emu: [emu.push("x", array, timeout=LONG) for _ in range(10**6)])
        popper = Thread(lambda emu=emu: [emu.pop("x", 2, timeout=LONG) for _ in range(10**6)])
        time.sleep(0.005 * round_number)
        emu.close()
        for thread in (pusher, popper):
            with pytest.raises(be.HostError, match="closed"):
                thread.end()


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_is_a_time(stream, timeout):
    with be.Emulator(stream, threads=1) as emu:
        for call in (
            lambda: emu.push("x", entries(1), timeout=timeout),
            lambda: emu.pop("x", timeout=timeout),
            lambda: emu.peek("x", timeout=timeout),
        ):
            with pytest.raises(be.HostError, match="timeout must be"):
                call()


def test_many_machines_with_threads_leave_none_behind(load):
    net = load(stream_text())
    before = threading.active_count()
    for _ in range(10):
        with be.Emulator(net, threads=2) as emu:
            emu.run_async("p", {"$p_loop_count": 100}, wait=LONG)
            Thread(emu.push, "x", entries(*range(100)), timeout=LONG)
            emu.pop("o", timeout=LONG)
    until(lambda: threading.active_count() <= before)
