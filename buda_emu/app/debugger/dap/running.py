"""Requests of editors that set breakpoints, and that begin, run and end a session."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from buda_emu.app.debugger.breakpoints import Breakpoint
from buda_emu.app.debugger.dap.adapter import ERROR_FILTER, NAN_FILTERS, Adapter, Message, number, request, same_file
from buda_emu.app.debugger.machine.stop import START
from buda_emu.app.debugger.session import Session
from buda_emu.emulator.image.opened import open_file
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.spec.precision import PRECISIONS, precision_named
from buda_emu.support.errors import HostError

_MOST_DIGITS = 9  # of a hit condition


def _replace(adapter: Adapter, kind: str, items: list[Any], make: Callable[[Any], Breakpoint]) -> Message:
    """All breakpoints of one request instead of those of the one before."""
    own = adapter.session.breakpoints.items
    for known in adapter.by_source.pop(kind, []):
        own.pop(known, None)
    answers: list[Message] = []
    numbers = adapter.by_source[kind] = list[int]()
    for item in items:
        try:
            found = make(item)
        except HostError as error:
            answers.append({"verified": False, "message": str(error)})
            continue
        numbers.append(found.number)
        line = found.line(adapter.session.names)
        place = {"line": line, "source": adapter.source()} if line else {}
        answers.append({"id": found.number, "verified": True, "message": found.text, **place})
    return {"breakpoints": answers}


def _ignored(item: Message) -> int:
    """`hitCondition` N: the N-th hit stops."""
    text = str(item.get("hitCondition") or "1").strip().removeprefix(">=").strip()
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not int(text):
        raise HostError(
            f"a hit condition is a number of 1 or more, of at most {_MOST_DIGITS} digits, not {text[:20]!r}"
        )
    return int(text) - 1


@request("setBreakpoints")
def set_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """On lines of the netlist."""
    source = arguments["source"]
    here = adapter.source()
    items: list[Message] = arguments.get("breakpoints") or []
    own = (
        source.get("sourceReference") == here.get("sourceReference")
        if "sourceReference" in here
        else (same_file(str(source.get("path", "")), str(here["path"])))
    )
    if not own:
        told = {
            "verified": False,
            "message": f"{source.get('path') or source.get('name')} is not the file that is debugged",
        }
        return {"breakpoints": [told for _ in items]}
    first = 1 if adapter.client.get("linesStartAt1", True) else 0

    def make(item: Message) -> Breakpoint:
        line = number(item, "line") + 1 - first
        return adapter.session.break_at(
            f"line {line}", item.get("condition") or "", ignore=_ignored(item), log=item.get("logMessage") or ""
        )

    return _replace(adapter, "lines", items, make)


@request("breakpointLocations")
def breakpoint_locations(adapter: Adapter, arguments: Message) -> Message:
    """Lines where something can be stopped at."""
    first = number(arguments, "line")
    last = number(arguments, "endLine", first)
    found: dict[int, None] = {}
    for line in range(max(1, first), min(last, first + 1000) + 1):
        try:
            place = adapter.session.names.at_line(line)
        except HostError:
            continue
        if place.line >= first:
            found[place.line] = None
    return {"breakpoints": [{"line": line} for line in found]}


@request("setFunctionBreakpoints")
def set_function_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """On ops, graphs, instructions, by the words of `break`."""
    return _replace(
        adapter,
        "functions",
        arguments["breakpoints"],
        lambda item: adapter.session.break_at(item["name"], item.get("condition") or "", ignore=_ignored(item)),
    )


@request("dataBreakpointInfo")
def data_breakpoint_info(adapter: Adapter, arguments: Message) -> Message:
    """Queues and rams can be watched."""
    name = str(arguments.get("name", "")).partition("[")[0].partition(" ")[0]
    try:
        queue = adapter.session.names.queue(name).name
    except HostError as error:
        return {"dataId": None, "description": str(error)}
    return {"dataId": queue, "description": f"{queue} is written, or its pointers move", "accessTypes": ["write"]}


@request("setDataBreakpoints")
def set_data_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Watches of queues."""

    def make(item: Message) -> Breakpoint:
        found = adapter.session.watch(item["dataId"])
        found.ignore = _ignored(item)
        if item.get("condition"):
            adapter.session.set_condition(found.number, item["condition"])
        return found

    return _replace(adapter, "data", arguments["breakpoints"], make)


@request("setExceptionBreakpoints")
def set_exception_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Filters: NaN, program error."""
    adapter.filters = tuple(map(str, arguments["filters"]))
    wanted = [name for name in NAN_FILTERS if name in adapter.filters]
    _replace(adapter, "exceptions", wanted, adapter.session.break_at)
    return {"breakpoints": [{"verified": True} for _ in adapter.filters]}


LAUNCH = (
    "program", "precision", "programs", "parameters", "inputs", "seed", "arch", "threads", "stopOnEntry", "stopAtEnd",
    "noDebug", "token",
)  # fmt: skip
"""Arguments of `launch`."""


@request("initialize")
def initialize(adapter: Adapter, arguments: Message) -> Message:
    """What there is."""
    adapter.client = arguments
    flags = (
        "ConfigurationDoneRequest",
        "FunctionBreakpoints",
        "ConditionalBreakpoints",
        "HitConditionalBreakpoints",
        "EvaluateForHovers",
        "StepBack",
        "SetVariable",
        "CompletionsRequest",
        "RestartRequest",
        "ExceptionInfoRequest",
        "LoadedSourcesRequest",
        "TerminateRequest",
        "DataBreakpoints",
        "ReadMemoryRequest",
        "CancelRequest",
        "SteppingGranularity",
        "BreakpointLocationsRequest",
        "LogPoints",
        "SetExpression",
        "WriteMemoryRequest",
    )
    return {
        **{f"supports{name}": True for name in flags},
        "exceptionBreakpointFilters": [
            {
                "filter": ERROR_FILTER,
                "label": "Program error",
                "default": True,
                "description": "Stop where a program fails or waits for ever, so that you can look around and go back",
            },
            {
                "filter": NAN_FILTERS[0],
                "label": "NaN",
                "default": False,
                "description": "Stop after the op whose result holds a NaN",
            },
            {
                "filter": NAN_FILTERS[1],
                "label": "Infinity or NaN",
                "default": False,
                "description": "Stop after the op whose result is not finite: the chip's units rarely give a NaN",
            },
        ],
        "completionTriggerCharacters": [":", "(", " "],
    }


@request("launch")
def launch(adapter: Adapter, arguments: Message) -> Message:
    """Open the netlist or image; it runs with configurationDone."""
    path = arguments.get("program")
    if not isinstance(path, str):
        raise HostError("launch: `program` names the netlist or device image")
    precision = precision_named(str(arguments.get("precision", "format")))
    if precision is None:
        raise HostError(f"launch: precision is one of {', '.join(PRECISIONS)}")
    programs = _list_of_strings(arguments, "programs")
    parameters = _parameters(arguments)
    inputs = _string(arguments, "inputs")
    arch = _string(arguments, "arch")
    seed = number(arguments, "seed", 0, least=0)
    threads = number(arguments, "threads", usable_processors(), least=1)
    _require_file_with_an_end(path)
    if inputs:
        _require_file_with_an_end(inputs)
    adapter.session = Session(
        open_file(path, arch),
        precision=precision,
        programs=programs,
        parameters=parameters,
        inputs=Path(inputs) if inputs else None,
        seed=seed,
        threads=threads,
    )
    adapter.launched = arguments
    adapter.then = lambda: adapter.channel.event("initialized")
    return {}


def _string(arguments: Message, name: str) -> str | None:
    """An argument that may be left out. Raises HostError."""
    value: Any = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise HostError(f"launch: {name} has to be a string")
    return value


def _list_of_strings(arguments: Message, name: str) -> list[str]:
    """An argument that may be left out. Raises HostError."""
    values: Any = arguments.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[Any]", values)):
        raise HostError(f"launch: {name} has to be a list of strings")
    return cast("list[str]", values)


def _parameters(arguments: Message) -> dict[str, str]:
    """Values of parameters by name; the `$` may be left out. Raises HostError."""
    values: Any = arguments.get("parameters")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise HostError('launch: parameters have to be an object, such as {"$p_loop_count": 4}')
    parameters: dict[str, str] = {}
    for name, value in cast("Message", values).items():
        if not isinstance(value, (str, int)):  # true and false are integers
            raise HostError(f"launch: the value of the parameter {name} has to be an integer")
        parameters[name if name.startswith("$") else f"${name}"] = str(value)
    return parameters


def _require_file_with_an_end(path: str) -> None:
    """Raises HostError for a pipe or a device: to open or read it may take for ever, and no other request is served
    meanwhile. What is not there is told by whoever opens it."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise HostError(f"launch: {path} is not a regular file: write what it gives to one, and name that")


@request("configurationDone")
def configuration_done(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Breakpoints are set: begin."""
    session = adapter.session
    if adapter.launched.get("noDebug"):
        session.breakpoints.items.clear()
    elif adapter.launched.get("stopOnEntry"):
        adapter.then = lambda: adapter.tell(session.stop)
        return
    adapter.go("continue")


@request("continue")
def continue_run(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """To the next breakpoint."""
    _require_more(adapter)
    adapter.go("continue")
    return {"allThreadsContinued": True}


def _require_more(adapter: Adapter) -> None:
    if adapter.session.engine.ended:
        raise HostError("all programs have run: step back, or restart")


def _by_instruction(adapter: Adapter, arguments: Message) -> bool:
    """Outside of epochs, and where the editor asks for it."""
    return arguments.get("granularity") == "instruction" or not adapter.session.stop.position.in_epoch


@request("next")
def next_step(adapter: Adapter, arguments: Message) -> None:
    """Over an instruction, or in an epoch to the next op."""
    _require_more(adapter)
    adapter.go("step" if _by_instruction(adapter, arguments) else "next")


@request("stepIn")
def step_in(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Into the epoch that an execute runs; in an epoch to the next op."""
    _require_more(adapter)
    adapter.go("next")


@request("stepOut")
def step_out(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """To the end of the epoch, the loop, or the program."""
    _require_more(adapter)
    adapter.go("finish")


@request("stepBack")
def step_back(adapter: Adapter, arguments: Message) -> None:
    """Where `next` would have come from."""
    session = adapter.session
    adapter.do(lambda: session.back("step" if _by_instruction(adapter, arguments) else "next"))


@request("reverseContinue")
def reverse_continue(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """To the breakpoint before, or the start."""
    adapter.do(adapter.session.reverse_continue)


@request("pause")
def pause(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Where the program ran it has been held already, and stays so."""
    _ = adapter.session
    adapter.paused = True


@request("restart")
def restart(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """From the start."""
    session = adapter.session
    session.seek(START)
    configuration_done(adapter, {})


@request("terminate")
def terminate(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """End the run."""
    adapter.then = lambda: adapter.channel.event("terminated")


@request("disconnect")
def disconnect(adapter: Adapter, arguments: Message) -> None:
    """The editor goes."""
