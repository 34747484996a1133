"""The Debug Adapter Protocol through whole sessions, and what clients do that should not."""

import base64
import io
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from threading import Event, Thread

import numpy as np
import pytest

from buda_emu.app.debugger.dap import serve  # fills the table of requests
from buda_emu.app.debugger.dap.adapter import HANDLERS, MAX_BYTES_BEFORE_TOKEN, MOVES, Adapter, Channel
from buda_emu.app.debugger.dap.serve import MAX_STRANGERS, Admission
from buda_emu.app.debugger.tensors import summary
from dap_client import COMMAND, Connection, Here, Process
from debug_sessions import TRAINING, TWO_CHIPS, session
from shared_files import ROOT
from small_netlists import endless, execute, fifo_settings, graph, op, program, queue, text

LINES = (ROOT / "netlists" / "training.yaml").read_text().splitlines()


def line_of(words):
    return next(number for number, line in enumerate(LINES, 1) if line.strip().startswith(words))


@pytest.fixture
def client():
    with Here() as found:
        yield found


def test_messages_are_numbered_from_one():
    sink = io.BytesIO()
    channel = Channel(io.BytesIO(), sink)
    channel.event("initialized")
    channel.event("terminated")
    sent = Channel(io.BytesIO(sink.getvalue()), sink)
    assert [sent.read()["seq"] for _ in range(2)] == [1, 2]


def test_a_whole_session(client):
    capabilities = client.ask("initialize", adapterID="buda")
    assert capabilities["supportsStepBack"]
    assert {item["filter"] for item in capabilities["exceptionBreakpointFilters"]} == {"error", "nan", "inf"}
    client.ask("launch", program=TRAINING, precision="device", parameters={"p_loop_count": 2}, threads=1)
    client.event("initialized")
    answers = client.ask(
        "setBreakpoints",
        source={"path": TRAINING},
        breakpoints=[
            {"line": line_of("a: {type: gelu")},
            {"line": line_of("product:"), "condition": "nan(op:h)"},
            {"line": 9999},
            {"line": line_of("grad_h:"), "hitCondition": "2"},
            {"line": 1, "condition": "nan("},
        ],
    )["breakpoints"]
    assert [item["verified"] for item in answers] == [True, True, False, True, False]
    assert answers[0]["line"] == line_of("a: {type: gelu")
    assert "9999" in answers[2]["message"]
    client.ask("configurationDone")
    stopped = client.event("stopped")
    assert (stopped["reason"], stopped["threadId"], stopped["hitBreakpointIds"]) == (
        "breakpoint",
        1,
        [answers[0]["id"]],
    )
    assert client.ask("threads")["threads"] == [{"id": 1, "name": "chip 0"}]
    frames = client.frames()
    assert [frame["name"] for frame in frames] == [
        "a (gelu)",
        "epoch forward, input 1 of 1",
        "run_fwd [5], round 1 of 2",
    ]
    assert [frame["line"] for frame in frames] == [line_of("a: {type: gelu"), line_of("forward:"), 108]
    assert client.ask("stackTrace", threadId=1, startFrame=1, levels=1)["stackFrames"] == frames[1:2]
    own = client.scope("op a")
    assert set(own) == {"input 0: h"}
    assert "2 x 4 tiles" in own["input 0: h"]["value"]
    tiles = client.children(own["input 0: h"], start=1, count=2)
    assert [tile["name"] for tile in tiles] == ["tile 0,0,1", "tile 0,0,2"]
    assert len(client.children(tiles[0])) == 32
    client.ask("continue")
    assert client.event("stopped")["hitBreakpointIds"] == [answers[0]["id"]]  # round 2: the condition did not hold
    client.ask("continue")
    assert client.event("stopped")["hitBreakpointIds"] == [answers[3]["id"]]  # the second hit
    client.ask("continue")
    assert client.event("exited")["exitCode"] == 0
    client.event("terminated")
    client.ask("disconnect")
    client.ended()


def test_stepping_forward_and_back_by_granularity(client):
    client.launch(TRAINING, stopOnEntry=True)
    assert client.event("stopped")["reason"] == "entry"
    assert client.frames()[0]["name"] == "before the first program"

    def after(command, **more):
        client.ask(command, threadId=1, **more)
        return client.event("stopped") and client.frames()[0]["name"]

    assert after("next") == "run_fwd [0]"
    for _ in range(5):
        there = after("next")
    assert there == "run_fwd [5], round 1 of 2"
    assert after("stepIn") == "h (matmul)"
    assert after("next") == "a (gelu)"
    assert after("stepBack") == "h (matmul)"
    assert after("stepBack") == "run_fwd [5], round 1 of 2"
    assert after("next") == "run_fwd [6], round 1 of 2"  # over the epoch
    assert after("stepBack") == "run_fwd [5], round 1 of 2"
    assert after("stepIn") == "h (matmul)"
    assert after("stepOut") == "run_fwd [6], round 1 of 2"
    assert after("stepBack", granularity="line") == "run_fwd [5], round 1 of 2"
    assert after("reverseContinue") == "before the first program"


def test_ctrl_c_ends_the_adapter_while_a_program_runs(child_environment, tmp_path):
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "30000"))
    with Process(child_environment) as client:
        client.launch(str(path))
        assert client.ask("threads")["threads"]
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(30) == 130


def test_a_session_on_stdio_ends_with_the_editors_last_request(child_environment):
    with Process(child_environment) as client:
        client.launch(TRAINING, stopOnEntry=True)
        client.event("stopped")
        client.ask("disconnect")
        assert client.process.wait(30) == 0


def test_variables_queues_memory_and_expressions(client):
    client.launch(TRAINING, functions=[{"name": "op product"}])
    assert client.event("stopped")["reason"] == "breakpoint"
    variables = client.scope("variables")
    assert variables["$p_loop_count"]["value"] == "2"
    level = client.frames()[2]["id"]
    reference = {item["name"]: item for item in client.ask("scopes", frameId=level)["scopes"]}["variables"]
    assert client.ask(
        "setVariable", variablesReference=reference["variablesReference"], name="$x_local", value="1"
    ) == {"value": "1"}
    whole = {"result": "1", "type": "int", "variablesReference": 0}  # nothing below it
    assert client.ask("evaluate", expression="$x_local") == whole
    assert client.ask("evaluate", expression="$x_local + 0.5") == {**whole, "result": "1.5", "type": "float"}
    level = {"variablesReference": reference["variablesReference"]}
    assert "not an integer" in client.refused("setVariable", **level, name="$x_local", value="x")
    assert "there is no $nothing here" in client.refused("setVariable", **level, name="$nothing", value="1")
    queues = client.scope("queues")
    assert queues["x"]["value"].startswith("queue of 2 x Float16_b, rd 0, wr 2, local ")
    below = {item["name"]: item for item in client.children(queues["x"])}
    assert {name for name in below if not below[name]["variablesReference"]} == {"rd", "wr", "local"}
    assert {name for name in below if below[name]["variablesReference"]} == {"[0]", "[1]"}
    entry = below["[1]"]
    found = client.ask("readMemory", memoryReference=entry["memoryReference"], offset=16, count=64)
    with session(TRAINING) as run:
        values = run.tensor("x[1]").values()
    data = base64.b64decode(found["data"])
    assert len(data) == 64
    assert data[:2] == (values[0, 0, 0].view(np.uint32) >> 16).astype("<u2").tobytes()
    beyond = client.ask("readMemory", memoryReference=entry["memoryReference"], offset=16_600, count=100)
    assert (len(base64.b64decode(beyond["data"])), beyond["unreadableBytes"]) == (40, 60)
    result = client.ask("evaluate", expression="op:h", context="watch")
    assert "2 x 4 tiles" in result["result"]
    assert client.children(result)[0]["name"] == "tile 0,0,0"
    assert float(client.ask("evaluate", expression="absmax(op:h)")["result"]) > 1
    assert client.ask("evaluate", expression="x", context="hover")["result"].startswith("queue of 2")
    assert "did you mean" in client.refused("evaluate", expression="absmx(h)")
    assert "no queue or op" in client.refused("evaluate", expression="nothing", context="hover")
    assert "before op product" in client.ask("evaluate", expression="where", context="repl")["result"]
    assert "did you mean" in client.refused("evaluate", expression="whre", context="repl")
    client.ask("evaluate", expression="back", context="repl")
    assert client.event("stopped")["reason"] == "step"
    targets = client.ask("completions", text="print op:pro", column=13)["targets"]
    assert targets == [{"label": "op:product", "start": 7, "length": 6}]
    assert client.ask("loadedSources")["sources"] == [client.frames()[0]["source"]]


def test_an_editor_shows_failures_once(client):
    """What was typed where it was typed; else as a message of its own."""
    client.launch(TRAINING, stopOnEntry=True)
    for command, arguments, shown in (
        ("evaluate", {"expression": "absmx(x)"}, False),
        ("setVariable", {"variablesReference": 99, "name": "x", "value": "1"}, False),
        ("setFunctionBreakpoints", {}, True),
    ):
        found = client.answer(client.begin(command, **arguments))
        assert (found["success"], found["body"]["error"]["showUser"]) == (False, shown)


def test_every_capability_is_answered(client):
    """A flag and the request, or the argument of one, that it stands for."""
    told = client.ask("initialize", adapterID="buda")
    flags = {name.removeprefix("supports") for name, value in told.items() if name.startswith("supports") and value}
    of_a_request = {
        "ConditionalBreakpoints",
        "HitConditionalBreakpoints",
        "LogPoints",
        "EvaluateForHovers",
        "SteppingGranularity",
    }
    requests = {
        "StepBack": ("stepBack", "reverseContinue"),
        "FunctionBreakpoints": ("setFunctionBreakpoints",),
        "DataBreakpoints": ("dataBreakpointInfo", "setDataBreakpoints"),
        "CancelRequest": (),
    }
    asked = set()
    for flag in flags - of_a_request:
        asked |= set(requests.get(flag, (flag[0].lower() + flag[1:].removesuffix("Request"),)))
    assert asked <= set(HANDLERS)
    always = {
        "initialize",
        "launch",
        "setBreakpoints",
        "setExceptionBreakpoints",
        "threads",
        "stackTrace",
        "scopes",
        "variables",
        "evaluate",
        "continue",
        "next",
        "stepIn",
        "stepOut",
        "pause",
        "source",
        "disconnect",
    }
    assert set(HANDLERS) == asked | always  # what is answered is declared


def test_log_points_print_and_do_not_stop(client):
    told = "input {input} of round {$p_loop_count}: {absmax(op:h)}, {h}, {op:product}"
    answers = client.launch(
        TRAINING,
        lines=[
            {"line": line_of("a: {type: gelu"), "logMessage": told, "hitCondition": "2"},
            {"line": line_of("a: {type: gelu"), "logMessage": "{absmx(op:h)}"},
        ],
    )
    assert [item["verified"] for item in answers] == [True, False]
    assert "did you mean 'absmax'" in answers[1]["message"]
    output = client.event("output")
    assert output["category"] == "console"
    with session(TRAINING) as run:
        run.break_at("a", ignore=1)
        run.cont()
        absmax, figures = run.evaluate("absmax(op:h)"), summary(run.tensor("op:h"))
    text = f"input 1 of round 2: {absmax:g}, {figures}, <op product has given nothing in this input yet>\n"
    assert output["output"] == text
    client.event("terminated")
    assert not any(event["event"] in ("output", "stopped") for event in client.events)


@pytest.mark.parametrize("precision", ["format", "device", "ideal"])
def test_tensors_are_changed_as_variables_expressions_and_memory(client, precision):
    client.ask("initialize", adapterID="buda", supportsInvalidatedEvent=True, supportsMemoryEvent=True)
    client.ask("launch", program=TRAINING, precision=precision, threads=1)
    client.event("initialized")
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "op product"}])
    client.ask("configurationDone")
    client.event("stopped")
    queues = client.scope("queues")
    of_queues = {item["name"]: item for item in client.ask("scopes", frameId=client.frames()[0]["id"])["scopes"]}
    assert "cannot be changed" in client.refused(
        "setVariable", variablesReference=of_queues["queues"]["variablesReference"], name="x", value="1"
    )
    below = queues["x"]["variablesReference"]
    assert "cannot be changed" in client.refused("setVariable", variablesReference=below, name="rd", value="1")
    changed = client.ask("setVariable", variablesReference=below, name="[1]", value="1.5")["value"]
    assert "min 1.5, max 1.5" in changed
    assert client.event("invalidated")["areas"] == ["variables"]
    entry = next(item for item in client.children(queues["x"]) if item["name"] == "[1]")
    tile = client.children(entry)[1]
    changed = client.ask("setVariable", variablesReference=entry["variablesReference"], name=tile["name"], value="-2")[
        "value"
    ]
    assert changed == "-2 ... -2"
    assert client.children(tile)[31]["value"].startswith("-2  -2")  # the same reference shows what is there now
    assert client.ask("setExpression", expression="x[1] tile 0,0,0", value="4")["value"] == "4 ... 4"
    assert client.ask("evaluate", expression="x[1] tile 0,0,0")["result"] == "4 ... 4"
    assert client.ask("setExpression", expression="$x_local", value="1") == {"value": "1"}
    assert "no tile 0,9,0" in client.refused("setExpression", expression="x[1] tile 0,9,0", value="4")
    assert "neither a number" in client.refused("setExpression", expression="x[1]", value="four")
    assert "right after it ran" in client.refused("setExpression", expression="op:h", value="0")

    memory = entry["memoryReference"]
    half = np.array([0.5], np.float32).view(np.uint32) >> 16  # Float16_b
    data = base64.b64encode(half.astype("<u2").tobytes()).decode()
    assert client.ask("writeMemory", memoryReference=memory, offset=18, data=data) == {"bytesWritten": 2}
    assert client.event("memory") == {"memoryReference": memory, "offset": 18, "count": 2}
    assert client.ask("readMemory", memoryReference=memory, offset=18, count=2)["data"] == data
    row = client.children(client.children(entry)[0])[0]["value"]
    assert row.startswith("4  0.5  4")
    whole = len(base64.b64decode(client.ask("readMemory", memoryReference=memory, count=1 << 20)["data"]))
    four = base64.b64encode(bytes(4)).decode()
    assert f"has bytes 0..{whole - 1}" in client.refused(
        "writeMemory", memoryReference=memory, offset=whole - 2, data=four
    )
    partly = client.ask("writeMemory", memoryReference=memory, offset=whole - 2, data=four, allowPartial=True)
    assert partly == {"bytesWritten": 2}
    assert "header" in client.refused("writeMemory", memoryReference=memory, offset=0, data=four)
    assert "do not fit" in client.refused("writeMemory", memoryReference=memory, offset=0, data="?")
    assert "written at byte 18" in client.ask("evaluate", expression="where", context="repl")["result"]


def test_a_result_is_changed_right_after_its_op(client):
    client.launch(TRAINING, functions=[{"name": "nan"}], stopOnEntry=True)
    client.event("stopped")
    client.ask("evaluate", expression="tbreak if absmax(op:h) > 0", context="repl")
    client.ask("continue")
    client.event("stopped")
    memory = client.scope("op h")["result of h"]["memoryReference"]
    two = base64.b64encode(np.array([2.0, -2.0], "<f4").tobytes()).decode()
    client.ask("writeMemory", memoryReference=memory, offset=4, data=two)
    rows = client.children(client.children(client.scope("op h")["result of h"])[0])
    assert rows[0]["value"].split()[1:3] == ["2", "-2"]
    client.ask("setExpression", expression="op:h", value="0")
    assert client.ask("evaluate", expression="absmax(op:h)")["result"] == "0"


def test_data_breakpoints_and_breakpoint_locations(client):
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    info = client.ask("dataBreakpointInfo", name="e2e_a")
    assert (info["dataId"], info["accessTypes"]) == ("e2e_a", ["write"])
    assert client.ask("dataBreakpointInfo", name="nothing")["dataId"] is None
    answers = client.ask("setDataBreakpoints", breakpoints=[{"dataId": "e2e_a", "accessType": "write"}])
    assert answers["breakpoints"][0]["verified"]
    client.ask("continue")
    stopped = client.event("stopped")
    assert (stopped["reason"], "e2e_a[0] was written by op a" in stopped["text"]) == ("data breakpoint", True)
    client.ask("setDataBreakpoints", breakpoints=[])
    found = client.ask("breakpointLocations", source={"path": TRAINING}, line=34, endLine=45)["breakpoints"]
    assert [item["line"] for item in found] == sorted({line_of("h: {"), line_of("a: {"), line_of("product:")})
    found = client.ask("breakpointLocations", source={"path": TRAINING}, line=1)["breakpoints"]
    assert [item["line"] for item in found] == [line_of("x: {")]  # the first of all
    client.ask("restart")
    assert client.event("stopped")["reason"] == "entry"
    client.ask("continue")
    client.event("exited")


@pytest.mark.parametrize(("given", "first"), [({}, 1), ({"columnsStartAt1": True}, 1), ({"columnsStartAt1": False}, 0)])
def test_columns_begin_where_the_editor_says(client, given, first):
    client.ask("initialize", adapterID="buda", **given)
    client.ask("launch", program=TRAINING, threads=1)
    targets = client.ask("completions", text="print op:pro", column=12 + first)["targets"]
    assert targets == [{"label": "op:product", "start": 6 + first, "length": 6}]


def test_breakpoints_that_the_console_deletes_are_gone_for_the_editor(client):
    client.launch(TRAINING, functions=[{"name": "op h"}, {"name": "op product"}])
    assert client.event("stopped")["reason"] == "breakpoint"
    client.ask("evaluate", expression="delete 1", context="repl")
    client.ask("evaluate", expression="break op a", context="repl")
    answers = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "op product"}])["breakpoints"]
    assert [answer["verified"] for answer in answers] == [True]
    for name in ("a", "product"):
        client.ask("continue")
        assert client.event("stopped")["reason"] == "breakpoint"
        assert client.frames()[0]["name"].startswith(f"{name} (")


def test_a_thread_for_each_chip(client):
    client.launch(TWO_CHIPS, functions=[{"name": "contract"}])
    stopped = client.event("stopped")
    threads = client.ask("threads")["threads"]
    assert [item["name"] for item in threads] == ["chip 0", "chip 1"]
    assert stopped["threadId"] == 2
    assert client.frames(2)[0]["name"] == "contract (matmul)"
    assert not client.frames(1)[0]["name"].startswith("contract")
    assert client.frames(1)[-1]["name"] == client.frames(2)[-1]["name"]
    assert "there is no thread 7" in client.refused("stackTrace", threadId=7)
    scopes = [[scope["name"] for scope in _scopes(client, thread)] for thread in (1, 2)]
    assert scopes == [["values of this input", "variables", "queues"], ["op contract", *scopes[0]]]
    queues = [{item["name"] for item in client.children(_scopes(client, thread)[-1])} for thread in (1, 2)]
    assert queues == [{"x", "w1", "b1"}, {"w2", "b2", "out"}]


def _scopes(client, thread):
    """Of the innermost frame of a thread."""
    return client.ask("scopes", frameId=client.frames(thread)[0]["id"])["scopes"]


def failing(path):
    path.write_text(
        text(
            queue("q_in", entries=4) + queue("q_out", "n", entries=2),
            graph("g", op("n", "nop", ["q_in"])),
            program("p", "staticvar: {$c_zero: 0}", "loop: 4", execute("g", fifo_settings("q_in")), "endloop"),
        )
    )
    return str(path)


def test_exception_filters(client, tmp_path):
    client.launch(failing(tmp_path / "n.yaml"))
    stopped = client.event("stopped")
    assert stopped["reason"] == "exception"
    info = client.ask("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "program error: full"
    assert "likely cause" in info["details"]["message"]
    assert "all programs have run" in client.refused("next", threadId=1)
    client.ask("stepBack", threadId=1)
    client.event("stopped")
    assert client.frames()[-1]["name"].startswith("p [2], round 3 of 4")
    client.ask("setExceptionBreakpoints", filters=[])
    client.ask("continue")
    assert client.event("exited")["exitCode"] == 4


def test_nan_filter(client, tmp_path):
    path = tmp_path / "n.yaml"
    path.write_text(
        text(
            queue("a", entries=1) + queue("b", entries=1) + queue("q_out", "n", entries=1),
            graph("g", op("n", "subtract", ["a", "b"])),
            program("p", "staticvar: {$c_zero: 0}", execute("g", fifo_settings("a"), fifo_settings("b"))),
        )
    )
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.full((1, 1, 32, 32), np.inf, np.float32))
    client.launch(str(path), filters=("nan",), inputs=str(tmp_path))
    stopped = client.event("stopped")
    assert (stopped["reason"], stopped["text"]) == ("exception", "op n gave 1024 NaN")
    assert client.ask("exceptionInfo", threadId=1)["exceptionId"] == "NaN"
    assert client.scope("op n")["result of n"]["value"].endswith("1024 NaN")


def test_pause_and_requests_while_it_runs(client, tmp_path):
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "20000"))
    client.launch(str(path))
    assert client.ask("threads")["threads"]
    assert "the program runs already" in client.refused("next", threadId=1)
    answers = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "op nothing"}])["breakpoints"]
    assert not answers[0]["verified"]
    assert "pause first" in client.refused("evaluate", expression="continue", context="repl")
    assert not any(event["event"] == "stopped" for event in client.events)
    client.ask("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause"
    assert client.frames()[-1]["name"].startswith("p [")
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "op n"}])
    client.ask("continue")
    assert client.event("stopped")["reason"] == "breakpoint"
    client.ask("continue")
    client.ask("disconnect")
    client.ended()


def test_a_request_that_came_before_the_program_went_on_is_answered(client, tmp_path):
    """While it runs: all three are there before the first has its answer."""
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "20000"))
    client.launch(str(path), stopOnEntry=True)
    client.event("stopped")
    for _ in range(3):
        slow, goes_on, after = client.begin_all("evaluate", "continue", "threads", expression="pcc(x, ideal)")
        assert [client.answer(number, 20)["success"] for number in (slow, goes_on, after)] == [False, True, True]
        client.ask("pause", threadId=1)
        assert client.event("stopped")["reason"] == "pause"


def test_cancelled_requests(client):
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    first, second = client._sequence + 1, client._sequence + 2
    messages = [
        {"seq": first, "type": "request", "command": "evaluate", "arguments": {"expression": "pcc(x, ideal)"}},
        {"seq": second, "type": "request", "command": "threads"},
        {"seq": second + 1, "type": "request", "command": "cancel", "arguments": {"requestId": second}},
    ]
    client._sequence += 3
    client.raw(
        b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(b), b) for b in (json.dumps(m).encode() for m in messages))
    )
    assert client.answer(second + 1)["success"]
    cancelled = client.answer(second)
    assert (cancelled["message"], "body" in cancelled) == ("cancelled", False)  # an editor shows no such error
    assert client.answer(first)["success"]
    client.ask("cancel", requestId=999)  # of one that is over: nothing to do
    assert client.ask("threads")["threads"]


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 5\r\n\r\n{bad}", b"Content-Length: 2\r\n\r\n[]", b"Content-Length: 2\r\n\r\n{}",
        b'Content-Length: 34\r\n\r\n{"type": "request", "command": 3 } ',
    ],
)  # fmt: skip
def test_malformed_messages_are_reported_and_skipped(client, data):
    client.ask("initialize", adapterID="buda")
    client.raw(data)
    assert client.event("output")["category"] == "stderr"
    assert "launch comes first" in client.refused("threads")


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: -4\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n", b"x" * 100_000, b"Nonsense: 1\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", b"Content-Length: %b\r\n\r\n" % (b"9" * 4000), b"\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", b"Host: a\r\nContent-Length: 2\r\n\r\n{}",
    ],
)  # fmt: skip
def test_after_a_header_that_cannot_be_read_it_ends(client, data):
    client.ask("initialize", adapterID="buda")
    with suppress(BrokenPipeError):  # it may have ended before it took all of them
        client.raw(data)
    client.ended()


def test_requests_with_wrong_arguments_are_refused(client):
    assert "did you mean 'setBreakpoints'" in client.refused("setBreakpoint")
    assert "launch comes first" in client.refused("stackTrace", threadId=1)
    assert "`program` names" in client.refused("launch")
    assert "precision is one of" in client.refused("launch", program=TRAINING, precision="x")
    assert "no such" in client.refused("launch", program="/nowhere/x.yaml").lower()
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    assert "debugged already" in client.refused("launch", program=TRAINING)
    assert "do not fit" in client.refused("setBreakpoints")
    assert client.refused("setBreakpoints").endswith("do not fit: source is missing")
    assert "do not fit" in client.refused("setFunctionBreakpoints", breakpoints=1)
    entry = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "h"}])["breakpoints"]
    assert entry[0]["verified"]
    assert "column has to be 1 or more" in client.refused("completions", text="b", column=-3)
    assert "count has to be 0 or more" in client.refused("readMemory", memoryReference="x", count=-1)
    assert "has to be an integer" in client.refused("stackTrace", threadId="one")
    assert "earlier stop" in client.refused("variables", variablesReference=99)
    other = client.ask("setBreakpoints", source={"path": "/tmp/other.yaml"}, breakpoints=[{"line": 1}])
    assert not other["breakpoints"][0]["verified"]


def test_no_refusal_shows_what_python_says(client):
    """Each request without arguments, and with arguments of wrong types."""
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    names = ("name", "text", "source", "expression", "breakpoints", "filters", "data", "memoryReference", "column")
    ends = ("disconnect", "terminate", "configurationDone", "restart")
    for command in HANDLERS:
        if command in ends or command in MOVES:
            continue
        for arguments in ({}, *(dict.fromkeys(names, value) for value in (7, "x", [1], {"x": 1}, [{}]))):
            found = client.answer(client.begin(command, **arguments))
            shown = json.dumps(found.get("message", "")) + json.dumps(found.get("body", {}))
            assert not re.search(r"Error\(|internal error|object has no|not subscriptable", shown), (command, arguments)


def test_filters_that_there_are_not_are_told(client):
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    found = client.ask("setExceptionBreakpoints", filters=["nan", "nann", "error"])["breakpoints"]
    assert [item["verified"] for item in found] == [True, False, True]
    assert "no filter 'nann' (did you mean 'nan'?)" in found[1]["message"]


def test_a_column_behind_the_text_is_its_end(client):
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    ends = [client.ask("completions", text="bre", column=column)["targets"] for column in (4, 1 << 40)]
    assert ends[0] == ends[1]
    assert ends[0][0]["length"] == 3


def test_bytes_before_an_entry_are_skipped_and_not_dropped(client):
    client.launch(TRAINING, functions=[{"name": "op product"}])
    client.event("stopped")

    def read(offset, count):
        found = client.ask("readMemory", memoryReference="queue:'x'[1]", offset=offset, count=count)
        return len(base64.b64decode(found["data"])), found["unreadableBytes"], found["address"]

    assert read(0, 20) == (20, 0, "0x0")
    assert read(-10, 20) == (0, 10, "-0xa")
    assert read(-10, 4) == (0, 4, "-0xa")
    assert read(0, 0) == (0, 0, "0x0")


@pytest.mark.skipif(sys.platform != "linux", reason="files of Linux's kernel")
@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/status", "/sys/kernel/notes"])
@pytest.mark.parametrize("argument", ["program", "inputs"])
def test_files_that_the_kernel_makes_are_refused(client, tmp_path, path, argument):
    (tmp_path / "link.yaml").symlink_to(path)
    for name in (path, str(tmp_path / "link.yaml")):
        assert "is not a regular file" in client.refused("launch", **{"program": TRAINING, argument: name})


def test_who_has_gone_frees_the_port_whatever_is_still_executed(monkeypatch):
    """A request that never ends does not keep the next editor out."""
    begun, end, freed = Event(), Event(), Event()

    def hang(_adapter, _arguments):
        begun.set()
        end.wait(60)

    monkeypatch.setitem(HANDLERS, "threads", hang)
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rwb") as stream:
        adapter = Adapter(stream, stream, on_departure=freed.set)
        served = Thread(target=adapter.serve, daemon=True)
        served.start()
        body = json.dumps({"seq": 1, "type": "request", "command": "threads"}).encode()
        ours.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert begun.wait(60)
        assert not freed.is_set()
        ours.shutdown(socket.SHUT_WR)
        assert freed.wait(60)
        assert served.is_alive()
        end.set()
        served.join(60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed has to be 0 or more, not -1"),
        ({"seed": "1"}, "seed has to be an integer"),
        ({"threads": 0}, "threads has to be 1 or more, not 0"),
        ({"arch": 7}, "launch: arch has to be a string"),
        ({"inputs": 7}, "launch: inputs has to be a string"),
        ({"inputs": ["a"]}, "launch: inputs has to be a string"),
        ({"programs": "training"}, "launch: programs has to be a list of strings"),
        ({"programs": [7]}, "launch: programs has to be a list of strings"),
        ({"parameters": [1]}, "launch: parameters have to be an object"),
        ({"parameters": 1}, "launch: parameters have to be an object"),
        ({"parameters": {"a": [1]}}, "parameter a is [1]: expected an integer"),
        ({"parameters": {"a": None}}, "parameter a is None: expected an integer"),
    ],
)
def test_arguments_of_launch_that_do_not_fit(client, arguments, message):
    assert client.refused("launch", program=TRAINING, **arguments).startswith(message)
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")


LAUNCH_VALUES = (None, True, -1, 7, 1.5, "", "x", "\0", "\ud800", "1" * 5000, [], [1], ["x"], {}, {"x": 1}, {"": [2]})


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_drawn_arguments_of_launch_are_answered_in_words(client, seed):
    draw = random.Random(seed)
    names = ("program", "precision", "programs", "parameters", "inputs", "seed", "arch", "threads")
    for _ in range(30):
        drawn = {name: draw.choice(LAUNCH_VALUES) for name in draw.sample(names, 2)}
        found = client.answer(client.begin("launch", **{"program": TRAINING, **drawn}))
        if found["success"]:
            break
        assert not re.search(r"Error\(|do not fit \(|internal error|object has no", found["message"]), drawn


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("suffix", [".yaml", ".tti", ".npz", ".safetensors"])
@pytest.mark.parametrize("argument", ["program", "inputs"])
def test_a_pipe_that_nobody_writes_to_is_refused(client, tmp_path, argument, suffix):
    pipe, link = tmp_path / f"pipe{suffix}", tmp_path / f"link{suffix}"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        assert "is not a regular file" in client.refused("launch", **{"program": TRAINING, argument: str(path)})
    assert "is not a regular file" in client.refused("launch", **{"program": TRAINING, argument: "/dev/zero"})


@pytest.fixture
def server(child_environment):
    """A process that waits for editors, and its port."""
    process = subprocess.Popen([*COMMAND, "--port", "0"], stderr=subprocess.PIPE, env=child_environment, text=True)
    port, token = re.search(
        r'127\.0\.0\.1:(\d+); its launch needs "token": "(\w+)"', process.stderr.readline()
    ).groups()
    yield process, int(port), token
    process.kill()
    process.wait()
    process.stderr.close()


def test_ctrl_c_ends_it_while_an_editor_is_connected(server):
    process, port, token = server
    client = Connection(port, token)
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    client.close()
    assert code == 130


def test_one_editor_at_a_time_and_a_killed_one(server, tmp_path):
    _, port, token = server
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "20000"))
    one, two = Connection(port, token), Connection(port, token)
    one.launch(str(path))
    assert "another editor is connected" in two.refused("launch", program=TRAINING)
    two.ended()
    one.kill()  # while its program runs
    three = _next_editor(port, token)
    three.ask("configurationDone")
    assert three.event("stopped")["reason"] == "entry"
    three.ask("disconnect")
    three.ended()
    for client in (two, three):
        client.close()


def _next_editor(port, token):
    """A connection that has launched, as soon as the editor before it is gone."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        client = Connection(port, token)
        found = client.answer(client.begin("launch", program=TRAINING, threads=1, stopOnEntry=True))
        if found["success"]:
            return client
        assert "another editor" in found["message"]
        client.close()
        time.sleep(0.1)
    raise AssertionError("the port stays taken")


@pytest.mark.parametrize("token", [None, "", "0" * 32, 0, True, ["x"], {}, "\ud800"])
def test_a_launch_without_the_token_opens_nothing_and_ends_the_connection(server, tmp_path, token):
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: [hunter2\n")
    client = Connection(server[1], token)
    message = client.refused("launch", program=str(secret))
    assert "`token` is missing or wrong" in message
    assert "hunter2" not in message
    client.ended()
    client.close()


def test_no_request_is_served_before_the_token(server):
    _, port, token = server
    client = Connection(port)
    client.ask("initialize", adapterID="buda")
    for command in sorted(set(HANDLERS) - {"initialize", "launch", "disconnect", "terminate"}):
        assert "launch comes first, with the token" in client.refused(command, expression="graph x.svg", context="repl")
    client.kill()
    launched = Connection(port, token)
    launched.launch(TRAINING, stopOnEntry=True)
    launched.event("stopped")
    launched.kill()


def test_a_request_of_a_web_page_is_answered_nothing(server):
    body = json.dumps({"seq": 1, "type": "request", "command": "launch", "arguments": {"program": TRAINING}}).encode()
    with socket.create_connection(("127.0.0.1", server[1])) as page:
        page.sendall(
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        page.settimeout(30)
        answer = b""
        with suppress(ConnectionError):  # it was closed before it was read to its end
            while part := page.recv(4096):
                answer += part
    assert b'"response"' not in answer


def test_strangers_are_few_and_say_little(server):
    _, port, token = server
    talker = Connection(port)
    with suppress(ConnectionError):  # it is closed while it talks
        talker.raw(b"Content-Length: %d\r\n\r\n" % (MAX_BYTES_BEFORE_TOKEN + 1))
    talker.ended()
    talker.close()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MAX_STRANGERS + 1)]
    silent[0].settimeout(30)
    assert silent[0].recv(1) == b""  # the oldest, for the last
    client = Connection(port, token)  # while the others stay
    client.launch(TRAINING, stopOnEntry=True)
    client.event("stopped")
    client.kill()
    for stranger in silent:
        stranger.close()


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_flood_of_strangers_does_not_close_the_editor(share, monkeypatch):
    """An editor that takes its time between `initialize` and `launch` is admitted, and stays, whatever share of the
    strangers sends `initialize`, too."""
    monkeypatch.setattr(serve, "_SECONDS_TO_LAUNCH", 0.8)
    admission = Admission()
    full = Event()
    over = Event()

    def flood(sockets):
        generator = random.Random(share)
        number = 0
        while not over.is_set():
            stranger, _ = map(sockets.enter_context, socket.socketpair())
            admission.receive(stranger)
            if generator.random() < share:
                admission.note_initialize(stranger)
            number += 1
            if number == MAX_STRANGERS:
                full.set()

    with ExitStack() as sockets:
        editor, other_end = map(sockets.enter_context, socket.socketpair())
        other_end.setblocking(False)
        flooding = Thread(target=flood, args=(sockets,))
        flooding.start()
        full.wait(30)
        admission.receive(editor)
        admission.note_initialize(editor)
        time.sleep(0.3)
        admission.admit(editor, admission.token)
        time.sleep(0.3)
        over.set()
        flooding.join()
        with pytest.raises(BlockingIOError):  # nothing to read, and not closed
            other_end.recv(1)


def test_a_killed_client_on_stdio_ends_the_process(child_environment, tmp_path):
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "20000"))
    with Process(child_environment) as client:
        client.launch(str(path))
        client.process.stdin.close()
        client.ended()


def test_standard_output_is_for_messages_alone():
    done = subprocess.run(
        [sys.executable, "-m", "buda_emu", "debug", "--dap"], input=b"", capture_output=True, check=True
    )
    assert done.stdout == b""
