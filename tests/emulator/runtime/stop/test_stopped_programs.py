"""When a program stops, the error says where, around what, and why (docs/run/stopped-programs.md)."""

import json
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.netlist.program.parameters import values_for
from buda_emu.support.errors import STOP_KINDS
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

ZERO = "var: {$c_zero: 0}"
EXAMPLES = {path.name: path.read_text() for path in sorted(DIRECTORY.glob("*.yaml"))}


def load(netlist):
    """A netlist that the check accepts."""
    found = check_text(netlist)
    assert found.netlist is not None, found.diagnostics
    return found.netlist


def entries(count, value=1.0):
    return np.full((count, 1, 32, 32), value, np.float32)


def nop_netlist(*instructions, inputs=1, queues=None):
    """a -> n -> o, one program."""
    return text(
        queues or [queue("a"), queue("o", "n")],
        [graph("g", op("n", "nop", ["a"]), inputs=inputs)],
        [program("p", *instructions)],
    )


def relay(*instructions, entries=2, inputs=1):
    """a -> n -> q -> m -> o, graphs g and h."""
    return text(
        [queue("a", entries=8), queue("q", "n", entries=entries), queue("o", "m", entries=8)],
        [graph("g", op("n", "nop", ["a"]), inputs=inputs), graph("h", op("m", "nop", ["q"]), inputs=inputs)],
        [program("p", *instructions)],
    )


@dataclass(frozen=True)
class Broken:
    """A netlist, what the host does before, and what the error must say."""

    text: str
    kind: str
    says: tuple[str, ...]
    pushes: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)


A = fifo_settings("a")
STREAM = fifo_settings("a", "$rd", "$rd")
CASES = {
    "output queue that nobody reads": Broken(
        nop_netlist("var: {$rd: 0}", "loop: 5", execute("g", STREAM), "varinst: [$rd, incwrap, 1, 16]", "endloop",
                    queues=[queue("a", entries=8), queue("o", "n")]),
        "full",
        ("round 5 of 5 of the loop", "queue:        o: entries 4", "occupancy 4",
         "last pushed:  by op n of graph g into slot 3", "round 4 of 5", "last popped:  never", "no op reads o",
         "more than 4 entries", "op:           n (nop, graph g)"),
        {"a": 8},
    ),
    "queue that its reader never frees": Broken(
        relay("var: {$c_zero: 0, $rd: 0}", "loop: 3", execute("g", fifo_settings("a", "$rd", "$rd")),
              execute("h", fifo_settings("q")), "varinst: [$rd, incwrap, 1, 16]", "endloop"),
        "full",
        ("graph h reads q but nothing frees", "incwrap, input_count, 4", "so far 2 entries pushed and 0 freed"),
        {"a": 8},
    ),
    "queue whose read pointer is wrapped too early": Broken(
        relay("var: {$c_zero: 0, $rd: 0, $q: 0}", "loop: 3", execute("g", fifo_settings("a", "$rd", "$rd")),
              execute("h", fifo_settings("q", "$q", "$q")), "varinst: [$q, incwrap, 1, 2]", "endloop"),
        "full",
        ("$q is wrapped at 2, the pointers of q run modulo 4 (V286): mend this first",),
        {"a": 8},
    ),
    "queue that is freed more slowly than it is filled": Broken(
        relay("var: {$c_zero: 0, $rd: 0, $q: 0}", "loop: 3", execute("g", fifo_settings("a", "$rd", "$rd")),
              execute("g", fifo_settings("a", "$rd", "$rd")), execute("h", fifo_settings("q", "$q", "$q")),
              "varinst: [$q, incwrap, 1, 4]", "endloop"),
        "full",
        ("more slowly than op n fills", "last popped:  by the program's pointer settings"),
        {"a": 8},
    ),
    "input queue that the host never filled": Broken(
        nop_netlist(ZERO, execute("g", A)), "empty",
        ("the host has pushed nothing to a", "last pushed:  never", "input:        1 of 1", "op:           n"),
    ),
    "input queue with too few entries": Broken(
        nop_netlist("var: {$rd: 0}", "loop: 4", execute("g", STREAM), "varinst: [$rd, incwrap, 1, 8]", "endloop"),
        "empty",
        ("the host has pushed 2 entries to a in all and 2 are used up", "round 3 of 4", "$rd = 2"),
        {"a": 2},
    ),
    "second input of an epoch is missing": Broken(
        nop_netlist(ZERO, execute("g", A), inputs=4), "unwritten",
        ("input:        2 of 4", "the host has pushed 1 entry to a", "rd_ptr_local 2 is 2 ahead"),
        {"a": 1},
    ),
    "queue of a graph that has not run": Broken(
        relay(ZERO, execute("h", fifo_settings("q"))), "empty",
        ("op n of graph g fills q, and that graph has not run yet", "op:           m (nop, graph h)"),
    ),
    "queue of a graph that ran too seldom": Broken(
        relay("var: {$c_zero: 0, $q: 0}", execute("g", A), execute("h", fifo_settings("q", "$q", "$q")),
              "varinst: [$q, incwrap, 1, 4]", execute("h", fifo_settings("q", "$q", "$q"))),
        "empty",
        ("graph g, whose op n fills q, ran once and pushed 1 entry, of which 1 are freed",),
        {"a": 8},
    ),
    "slot of a host ram that was never pushed": Broken(
        text([queue("r", kind="ram"), queue("o", "n")], [graph("g", op("n", "nop", ["r"]))],
             [program("p", "var: {$c_zero: 0, $three: 3}", execute("g", ram_settings("r", rd="$three")))]),
        "unwritten",
        ("read of entry 3, which was never written", "ram:          r: entries 4", "1 written",
         "slot= of Emulator.push"),
        {"r": 1},
    ),
    "slot of a ram that no op has written": Broken(
        text([queue("a"), queue("r", "n", kind="ram"), queue("o", "m")],
             [graph("g", op("n", "nop", ["a"])), graph("h", op("m", "nop", ["r"]))],
             [program("p", ZERO, execute("h", ram_settings("r")))]),
        "unwritten", ("no op has written that slot of ram r yet", "execute graph g before"),
    ),
    "read pointer beyond a ram": Broken(
        text([queue("r", kind="ram", entries=2), queue("o", "n")], [graph("g", op("n", "nop", ["r"]))],
             [program("p", "var: {$c_zero: 0, $rd: 2}", execute("g", ram_settings("r", rd="$rd")))]),
        "pointer", ("rd_ptr_global 2 outside ram r", "varinst: [$rd, incwrap, input_count, 2]"), {"r": 2},
    ),
    "write pointer beyond a ram": Broken(
        text([queue("a"), queue("r", "n", kind="ram", entries=2)], [graph("g", op("n", "nop", ["a"]))],
             [program("p", "var: {$c_zero: 0, $wr: 7}", execute("g", A, ram_settings("r", wr="$wr")))]),
        "pointer", ("wr_ptr_global 7 outside ram r",), {"a": 1},
    ),
    "pointer that a varinst moves out of a ram": Broken(
        text([queue("a"), queue("r", "n", kind="ram", entries=2)], [graph("g", op("n", "nop", ["a"]), inputs=1)],
             [program("p", "var: {$c_zero: 0, $wr: 1}", execute("g", A, ram_settings("r", wr="$wr")),
                      "varinst: [$wr, inc, 1]")]),
        "pointer", ("instruction 2 (varinst", "varinst: [$wr, inc, 1]", "wr_ptr_global 2 outside"), {"a": 1},
    ),
    "negative pointer of a queue": Broken(
        nop_netlist("var: {$c_zero: 0, $rd: -1}", execute("g", fifo_settings("a", "$rd"))), "pointer",
        ("rd_ptr_global is -1", "0..7"), {"a": 1},
    ),
    "zero without prologue": Broken(
        text([queue("a"), queue("r", kind="ram"), queue("o", "n")], [graph("g", op("n", "add", ["a", "r"]))],
             [program("p", ZERO, execute("g", A, ram_settings("r", zero="true")))]),
        "settings", ("zero without prologue", "set prologue: true"), {"a": 1, "r": 4},
    ),
    "input_count that does not divide the entries": Broken(
        nop_netlist(ZERO, execute("g", A), inputs=3), "settings",
        ("input_count 3 does not divide the 4 entries", "a multiple of input_count"), {"a": 4},
    ),
    "graph executed twice in one temporal graph": Broken(
        text([queue("a"), queue("o", "m", device=1)],
             [graph("g0", op("n", "nop", ["a"])), graph("g1", op("m", "nop", ["n"]), device=1)],
             [program("p", ZERO, execute("g0", A), execute("g0", A), execute("g1"))]),
        "settings", ("instruction 2", "twice before", "execute each of them once"), {"a": 1},
    ),
    "parameter without a value": Broken(
        nop_netlist("param: [$p_n]", ZERO, execute("g", A)), "value",
        ("instruction 0 (param", "param $p_n has no value", "--param NAME=VALUE"),
    ),
    "loop that runs no time": Broken(
        nop_netlist("param: [$p_n]", ZERO, "loop: $p_n", execute("g", A), "endloop"), "loop",
        ("loop count $p_n is 0", "$p_n is 0: give the parameter"), parameters={"$p_n": 0},
    ),
    "variable declared again in a loop": Broken(
        nop_netlist("loop: 2", ZERO, execute("g", A), "endloop"), "value",
        ("round 2 of 2 of the loop", "already in use"), {"a": 2},
    ),
    "queue allocated twice": Broken(
        nop_netlist(ZERO, "allocate_queue: [a]", "allocate_queue: [a]"), "allocation",
        ("instruction 2 (allocate", "already allocated", "pair each allocate_queue"),
    ),
    "division of a wrap by zero": Broken(
        nop_netlist("var: {$c_zero: 0, $x: 3}", "varinst: [$x, incwrap, 1, $c_zero]"), "value",
        ("incwrap with wrap 0", "$x = 3", "twice the entries of a queue"),
    ),
}  # fmt: skip


def stop(case):
    """Run it to its end."""
    with be.Emulator(load(case.text), threads=1) as emu:
        for name, count in case.pushes.items():
            emu.push(name, entries(count))
        with pytest.raises(be.ProgramError) as caught:
            emu.run("p", case.parameters)
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_the_error_says_what_where_and_why(name):
    case = CASES[name]
    error = stop(case)
    said = str(error)
    for words in case.says:
        assert words in said, f"{words!r} is not in\n{said}"
    assert error.kind == case.kind
    assert error.stopped.kind == case.kind
    first, *rest = said.splitlines()
    assert first == error.problem
    assert all(line.startswith("  ") for line in rest)


def test_every_kind_is_documented_and_most_are_tried(root):
    page = (root / "docs" / "run" / "stopped-programs.md").read_text()
    for kind, meaning in STOP_KINDS.items():
        assert f"| `{kind}` | {meaning}" in page
    assert set(STOP_KINDS) - {case.kind for case in CASES.values()} == {"op", "limit", "deadlock"}  # below, timeline


@pytest.mark.parametrize("name", CASES)
def test_the_structured_form_is_plain_data_and_names_the_place(name):
    case = CASES[name]
    stopped = stop(case).stopped
    plain = json.loads(json.dumps(stopped.as_json()))
    assert plain["kind"] == case.kind
    assert plain["program"] == "p"
    lines = case.text.splitlines()
    assert lines[plain["line"] - 1].lstrip().startswith("- ")
    assert plain["text"].split(":")[0] in lines[plain["line"] - 1]
    if stopped.queue is not None:
        assert plain["queue"]["entries"] == stopped.queue.entries


@pytest.mark.parametrize("name", CASES)
def test_all_of_it_comes_out_of_another_process(name):
    error = stop(CASES[name])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.kind, again.queue, again.op, again.stopped) == (error.kind, error.queue, error.op, error.stopped)


def test_an_op_that_cannot_compute_is_named():
    net = load(
        text(
            [queue("table", mblock=(1, 1)), queue("index", df="RawUInt32"), queue("o", "e")],
            [
                graph(
                    "g",
                    op("e", "embedding", ["table", "index"], more=", attributes: {num_indices: 32}").replace(
                        "in_df: [Float32, Float32]", "in_df: [Float32, RawUInt32]"
                    ),
                )
            ],
            [program("p", ZERO, execute("g", fifo_settings("table"), fifo_settings("index")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("table", entries(1))
        emu.push("index", np.full((1, 1, 32, 32), 99, np.uint32))
        with pytest.raises(be.ProgramError, match="embedding index 99") as caught:
            emu.run("p")
    assert caught.value.kind == "op"
    assert "op:           e (embedding, graph g)" in str(caught.value)
    assert "reads table, index" in caught.value.stopped.cause
    assert caught.value.stopped.waiting == ()


def test_a_run_beyond_its_limit_says_which():
    net = load(nop_netlist("loop: 1000000", "endloop"))
    with be.Emulator(net, threads=1, step_limit=100) as emu, pytest.raises(be.ProgramError) as caught:
        emu.run("p")
    assert caught.value.kind == "limit"
    assert "Emulator(step_limit=...)" in str(caught.value)


def test_variables_of_big_programs_do_not_flood_the_text():
    many = ", ".join(f"$v{i}: {i}" for i in range(40))
    error = stop(Broken(nop_netlist(f"var: {{{many}}}", ZERO, execute("g", A)), "empty", ()))
    assert "and 29 more" in str(error)
    assert "variables:    $c_zero = 0, $v0 = 0," in str(error)  # those that the instruction names come first
    assert len(error.stopped.variables) == 41


def test_every_op_that_waits_is_named_with_what_it_waits_for():
    """x and y read the empty a; z needs both, u reads another queue and does not wait."""
    tail = [op(f"t{i}", "nop", [f"t{i - 1}" if i else "z"], loc=(1, i)) for i in range(6)]
    ops = [
        op("x", "nop", ["a"]),
        op("y", "add", ["b", "a"], loc=(0, 1)),
        op("z", "add", ["x", "y"], loc=(0, 2)),
        op("u", "nop", ["b"], loc=(0, 3)),
    ]
    queues = [queue("a"), queue("b"), queue("o", "t5"), queue("free", "u")]
    net = text(queues, [graph("g", *ops, *tail)], [program("p", ZERO, execute("g", A, fifo_settings("b")))])
    error = stop(Broken(net, "empty", (), {"b": 4}))
    waits = {wait.op: wait.waits_for for wait in error.stopped.waiting}
    assert waits == {
        "x": "an entry of a (its input 0)",
        "y": "an entry of a (its input 1)",
        "z": "the result of x",
        "t0": "the result of z",
        **{f"t{i}": f"the result of t{i - 1}" for i in range(1, 6)},
    }
    said = str(error)
    assert "waiting:      x (nop, graph g) waits for an entry of a (its input 0)" in said
    assert "and 3 more ops after these" in said
    assert error.stopped.as_json()["waiting"][2] == {
        "op": "z",
        "type": "add",
        "graph": "g",
        "waits_for": "the result of x",
    }


def test_an_op_before_a_full_queue_waits_for_room_and_those_behind_it_for_its_result():
    net = text(
        [queue("a", entries=8), queue("q", "n", entries=2), queue("o", "m", entries=8)],
        [graph("g", op("n", "nop", ["a"]), op("m", "nop", ["n"], loc=(0, 1)), inputs=4)],
        [program("p", ZERO, execute("g", A))],
    )
    error = stop(Broken(net, "full", (), {"a": 8}))
    assert [str(wait) for wait in error.stopped.waiting] == [
        "n (nop, graph g) waits for room in q",
        "m (nop, graph g) waits for the result of n",
    ]
    assert error.stopped.input == (3, 4)


def test_the_structured_form_has_names_and_numbers():
    case = CASES["output queue that nobody reads"]
    plain = json.loads(json.dumps(stop(case).stopped.as_json()))
    lines = case.text.splitlines()
    (loop,) = plain["loops"]
    assert "loop: 5" in lines[loop["line"] - 1]
    assert (loop["count"], loop["round"], loop["rounds"]) == ("5", 5, 5)
    (culprit,) = plain["ops"]
    assert culprit == {"name": "n", "type": "nop", "graph": "g", "line": culprit["line"]}
    assert lines[culprit["line"] - 1].lstrip().startswith("n:")
    assert plain["instruction"] == 2
    assert plain["variables"] == {"$rd": 4}
    assert plain["graphs"] == ["g"]
    pushed = plain["queue"]["pushed"]
    assert (pushed["by"], pushed["slot"], pushed["total"]) == ("op n of graph g", 3, 4)
    assert (pushed["instruction"], pushed["loops"][0]["round"]) == (2, 4)
    assert plain["queue"]["popped"] is None


def test_the_host_frees_entries_too():
    net = load(nop_netlist("var: {$rd: 0}", execute("g", STREAM)))
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        for _ in range(4):
            emu.run("p")
        emu.pop("o")
        emu.run("p")
        with pytest.raises(be.ProgramError) as caught:
            emu.run("p")
    popped = caught.value.stopped.queue.popped
    assert str(popped) == "by the host, 1 in all"
    assert popped.instruction is None
    pushed = caught.value.stopped.queue.pushed
    assert (pushed.by, pushed.program, pushed.instruction, pushed.slot) == ("op n of graph g", "p", 1, 0)


MOVES = st.sampled_from(["drop", "double", "swap", "loop", "numbers"])


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_broken_programs_stop_with_documented_errors(data):
    """Lines of an example's program dropped, doubled, swapped or given other numbers: only documented errors."""
    source = data.draw(st.sampled_from(sorted(EXAMPLES)))
    lines = EXAMPLES[source].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("programs:")) + 2
    end = next((i for i in range(start, len(lines)) if lines[i][:1] not in ("", " ", "#", "-")), len(lines))
    body = [line for line in lines[start:end] if line.strip()]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        match data.draw(MOVES):
            case "drop" if len(body) > 1:
                del body[at]
            case "double":
                body.insert(at, body[at])
            case "swap":
                other = data.draw(st.integers(0, len(body) - 1))
                body[at], body[other] = body[other], body[at]
            case "numbers":
                body[at] = body[at].replace("0", data.draw(st.sampled_from(["1", "3", "-1", "64"])), 1)
            case _:
                body.insert(at, "    - loop: 2")
    broken = "\n".join([*lines[:start], *body, *lines[end:]]) + "\n"
    try:
        net = check_text(broken).netlist
    except be.NetlistError:
        net = None
    if net is None:
        return
    stops = []
    with be.Emulator(net, threads=1, step_limit=2000) as emu:
        for item in net.queues.values():
            if item.host_fed:
                shape = (min(item.entries, 4), *item.blocking.element_shape)
                emu.push(item.name, np.zeros(shape, np.uint32 if item.df.startswith("Raw") else np.float32))
        for name in emu.programs:
            try:
                emu.run(name, values_for(net.programs[name], {"$p_loop_count": 2}))
            except be.ProgramError as error:
                stops.append((name, error))
            except (be.HostError, be.UnsupportedError):
                pass
    for name, error in stops:
        assert error.stopped.line >= 1
        assert str(error).startswith(f"program {name}, instruction ")


def test_a_report_does_not_go_through_all_slots():
    """Two thousand million of them: it looks at those that have been asked for."""
    queues = [queue("a", entries=(1 << 31) - 1), queue("o", "n")]
    net = load(nop_netlist(ZERO, execute("g", fifo_settings("a")), queues=queues, inputs=3))
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(2))
        with pytest.raises(be.ProgramError) as raised:
            emu.run("p")
    assert raised.value.stopped.queue.entries == (1 << 31) - 1
    assert raised.value.stopped.queue.written == 2
