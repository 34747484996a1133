"""Requests of editors that set breakpoints, and that begin, run and end a session."""

import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

from buda_emu.app.debugger.breakpoints import Breakpoint
from buda_emu.app.debugger.dap.adapter import (
    ERROR_FILTER,
    NAN_FILTERS,
    Adapter,
    Message,
    integer_argument,
    request,
    same_file,
)
from buda_emu.app.debugger.machine.stop import START
from buda_emu.app.debugger.session import Session
from buda_emu.emulator.image.opened import open_file
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.options import parameter_texts
from buda_emu.spec.precision import PRECISIONS, find_precision
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError

_MAX_DIGITS = 9  # of a hit condition
_KERNEL_PLACES = ("/proc", "/sys", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/cgroup")
"""The folders of Linux's own file systems: procfs, sysfs, debugfs, tracefs, securityfs, cgroup (hier(7))."""


def _replace_breakpoints(adapter: Adapter, kind: str, items: list[Any], make: Callable[[Any], Breakpoint]) -> Message:
    """Replace the breakpoints that earlier requests of this kind set by those that `make` sets for the items, and
    return the protocol's description of the new ones. An item for which `make` raises HostError is described as not
    verified."""
    points = adapter.session.breakpoints.items
    for number in adapter.by_source.pop(kind, []):
        points.pop(number, None)
    answers: list[Message] = []
    numbers = adapter.by_source[kind] = list[int]()
    for request_item in items:
        try:
            point = make(request_item)
        except HostError as error:
            answers.append({"verified": False, "message": str(error)})
            continue
        numbers.append(point.number)
        line = point.line(adapter.session.names)
        place = {"line": line, "source": adapter.source()} if line else {}
        answers.append({"id": point.number, "verified": True, "message": point.text, **place})
    return {"breakpoints": answers}


def _ignore_count(request_item: Message) -> int:
    """Return how many hits a `hitCondition` passes over: with N, the N-th hit stops. Raises HostError."""
    text = str(request_item.get("hitCondition") or "1").strip().removeprefix(">=").strip()
    if not text.isdecimal() or len(text) > _MAX_DIGITS or not int(text):
        raise HostError(f"a hit condition is a number of 1 or more, of at most {_MAX_DIGITS} digits, not {text[:20]!r}")
    return int(text) - 1


@request("setBreakpoints")
def set_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setBreakpoints`: breakpoints on lines of the netlist."""
    source = arguments["source"]
    requests: list[Message] = arguments.get("breakpoints") or []
    if not _is_netlist(adapter, source):
        refusal = {
            "verified": False,
            "message": f"{source.get('path') or source.get('name')} is not the file that is debugged",
        }
        return {"breakpoints": [refusal for _ in requests]}
    first = 1 if adapter.client.get("linesStartAt1", True) else 0

    def make(entry: Message) -> Breakpoint:
        """Set a breakpoint at the line of one entry of the request, with its condition, ignore count and log
        message."""
        line = integer_argument(entry, "line") + 1 - first
        condition = entry.get("condition") or ""
        log = entry.get("logMessage") or ""
        return adapter.session.break_at(f"line {line}", condition, ignore=_ignore_count(entry), log=log)

    return _replace_breakpoints(adapter, "lines", requests, make)


def _is_netlist(adapter: Adapter, source: Message) -> bool:
    """Return whether a source that the editor names is the netlist that is debugged."""
    netlist = adapter.source()
    if "sourceReference" in netlist:
        return bool(source.get("sourceReference") == netlist["sourceReference"])
    return same_file(str(source.get("path", "")), str(netlist["path"]))


@request("breakpointLocations")
def breakpoint_locations(adapter: Adapter, arguments: Message) -> Message:
    """Handle `breakpointLocations`: lines on which a breakpoint stops."""
    first = integer_argument(arguments, "line")
    last = integer_argument(arguments, "endLine", first)
    lines: dict[int, None] = {}
    for line in range(max(1, first), min(last, first + 1000) + 1):
        try:
            place = adapter.session.names.at_line(line)
        except HostError:
            continue
        if place.line >= first:
            lines[place.line] = None
    return {"breakpoints": [{"line": line} for line in lines]}


@request("setFunctionBreakpoints")
def set_function_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setFunctionBreakpoints`: breakpoints on ops, graphs and instructions, in the words of `break`."""
    return _replace_breakpoints(
        adapter,
        "functions",
        arguments["breakpoints"],
        lambda request_item: adapter.session.break_at(
            request_item["name"], request_item.get("condition") or "", ignore=_ignore_count(request_item)
        ),
    )


@request("dataBreakpointInfo")
def data_breakpoint_info(adapter: Adapter, arguments: Message) -> Message:
    """Handle `dataBreakpointInfo`: queues and rams can be watched."""
    name = str(arguments.get("name", "")).partition("[")[0].partition(" ")[0]
    try:
        queue = adapter.session.names.queue(name).name
    except HostError as error:
        return {"dataId": None, "description": str(error)}
    return {"dataId": queue, "description": f"{queue} is written, or its pointers move", "accessTypes": ["write"]}


@request("setDataBreakpoints")
def set_data_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setDataBreakpoints`: watches of queues and rams."""

    def make(entry: Message) -> Breakpoint:
        """Set a watchpoint on the tensor of one entry of the request, with its condition and ignore count."""
        point = adapter.session.watch(entry["dataId"])
        point.ignore = _ignore_count(entry)
        if entry.get("condition"):
            adapter.session.set_condition(point.number, entry["condition"])
        return point

    return _replace_breakpoints(adapter, "data", arguments["breakpoints"], make)


@request("setExceptionBreakpoints")
def set_exception_breakpoints(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setExceptionBreakpoints`: filters for NaN, infinities and program errors."""
    adapter.filters = tuple(map(str, arguments["filters"]))
    nan_filters = [name for name in NAN_FILTERS if name in adapter.filters]
    _replace_breakpoints(adapter, "exceptions", nan_filters, adapter.session.break_at)
    return {"breakpoints": [_filter_answer(name) for name in adapter.filters]}


def _filter_answer(name: str) -> Message:
    """Return the protocol's description of an exception filter that the editor has set; not verified for an unknown
    one."""
    filters = (ERROR_FILTER, *NAN_FILTERS)
    if name in filters:
        return {"verified": True}
    return {"verified": False, "message": f"no filter {name!r}{hint_in_parentheses(name, filters)}"}


LAUNCH = (
    "program", "precision", "programs", "parameters", "inputs", "seed", "arch", "threads", "stopOnEntry", "stopAtEnd",
    "noDebug", "token",
)  # fmt: skip
"""The arguments that `launch` knows."""


@request("initialize")
def initialize(adapter: Adapter, arguments: Message) -> Message:
    """Handle `initialize`: return the capabilities of the adapter."""
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
    """Handle `launch`: open the netlist or image, which runs after `configurationDone`."""
    path = arguments.get("program")
    if not isinstance(path, str):
        raise HostError("launch: `program` names the netlist or device image")
    precision = find_precision(str(arguments.get("precision", "format")))
    if precision is None:
        raise HostError(f"launch: precision is one of {', '.join(PRECISIONS)}")
    programs = _strings_argument(arguments, "programs")
    parameters = _parameters_argument(arguments)
    inputs = _string_argument(arguments, "inputs")
    arch = _string_argument(arguments, "arch")
    seed = integer_argument(arguments, "seed", 0, least=0)
    threads = integer_argument(arguments, "threads", usable_processors(), least=1)
    _require_regular_file(path)
    if inputs:
        _require_regular_file(inputs)
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


def _string_argument(arguments: Message, name: str) -> str | None:
    """Return an optional argument of `launch`, None if it is absent. Raises HostError for one that is no string."""
    value: Any = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise HostError(f"launch: {name} has to be a string")
    return value


def _strings_argument(arguments: Message, name: str) -> list[str]:
    """Return an optional argument of `launch`, [] if it is absent. Raises HostError for one that is no list of
    strings."""
    values: Any = arguments.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[Any]", values)):
        raise HostError(f"launch: {name} has to be a list of strings")
    return cast("list[str]", values)


def _parameters_argument(arguments: Message) -> dict[str, str]:
    """Return the values of program parameters by name, in which the `$` may be left out. Raises HostError for an
    argument that is no object, and for a value that is neither a text nor an integer."""
    values: Any = arguments.get("parameters")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise HostError('launch: parameters have to be an object, such as {"$p_loop_count": 4}')
    parameters: dict[str, str] = {}
    for name, text in parameter_texts(cast("Message", values)).items():
        parameters[name if name.startswith("$") else f"${name}"] = text
    return parameters


def _require_regular_file(path: str) -> None:
    """Raise HostError for a pipe or a device, and for a file of the kernel, such as `/proc/kmsg`: to open or read it
    may take for ever, and no other request is served meanwhile. A missing file passes, since opening it reports
    that."""
    try:
        status = Path(path).stat()
        is_of_kernel = status.st_dev in _kernel_file_systems()
    except (OSError, ValueError):
        return
    if is_of_kernel or (not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode)):
        raise HostError(f"launch: {path} is not a regular file: write what it gives to one, and name that")


def _kernel_file_systems() -> set[int]:
    """Return the device numbers (st_dev) of the file systems whose files are made by the kernel when they are read."""
    devices: set[int] = set()
    for place in _KERNEL_PLACES:
        with suppress(OSError):
            devices.add(Path(place).stat().st_dev)
    return devices - {Path("/").stat().st_dev}  # a folder of this name that is none of them


@request("configurationDone")
def configuration_done(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `configurationDone`: all breakpoints are set, so run, or report the entry."""
    session = adapter.session
    if adapter.launched.get("noDebug"):
        session.breakpoints.items.clear()
    elif adapter.launched.get("stopOnEntry"):
        adapter.then = lambda: adapter.send_stop(session.stop)
        return
    adapter.go("continue")


@request("continue")
def continue_run(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Handle `continue`: run to the next breakpoint."""
    _require_not_ended(adapter)
    adapter.go("continue")
    return {"allThreadsContinued": True}


def _require_not_ended(adapter: Adapter) -> None:
    """Raise HostError where all programs have run."""
    if adapter.session.engine.ended:
        raise HostError("all programs have run: step back, or restart")


def _step_kind(adapter: Adapter, arguments: Message) -> Literal["step", "next"]:
    """Return the kind of a step: by instruction outside of epochs and where the editor asks for it, else by op."""
    if arguments.get("granularity") == "instruction" or not adapter.session.stop.position.in_epoch:
        return "step"
    return "next"


@request("next")
def next_step(adapter: Adapter, arguments: Message) -> None:
    """Handle `next`: run over an instruction, or in an epoch to the next op."""
    _require_not_ended(adapter)
    adapter.go(_step_kind(adapter, arguments))


@request("stepIn")
def step_in(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `stepIn`: run into the epoch that an execute begins, or in an epoch to the next op."""
    _require_not_ended(adapter)
    adapter.go("next")


@request("stepOut")
def step_out(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `stepOut`: run to the end of the epoch, the loop, or the program."""
    _require_not_ended(adapter)
    adapter.go("finish")


@request("stepBack")
def step_back(adapter: Adapter, arguments: Message) -> None:
    """Handle `stepBack`: go back to where `next` would have come from."""
    session = adapter.session
    kind = _step_kind(adapter, arguments)
    adapter.go_elsewhere(lambda: session.back(kind))


@request("reverseContinue")
def reverse_continue(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `reverseContinue`: go back to the previous breakpoint, or to the start."""
    adapter.go_elsewhere(adapter.session.reverse_continue)


@request("pause")
def pause(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `pause`: a running program has been held already to serve this request, and now stays held."""
    _ = adapter.session
    adapter.paused = True


@request("restart")
def restart(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `restart`: begin again from the start."""
    session = adapter.session
    session.seek(START)
    configuration_done(adapter, {})


@request("terminate")
def terminate(adapter: Adapter, arguments: Message) -> None:  # noqa: ARG001
    """Handle `terminate`: end the run."""
    adapter.then = lambda: adapter.channel.event("terminated")


@request("disconnect")
def disconnect(adapter: Adapter, arguments: Message) -> None:
    """Handle `disconnect`: the editor leaves, which ends the session."""
