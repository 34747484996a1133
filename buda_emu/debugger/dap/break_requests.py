"""Requests that set breakpoints."""

from collections.abc import Callable
from typing import Any

from buda_emu.debugger.breakpoints import Breakpoint
from buda_emu.debugger.dap.adapter import NAN_FILTERS, Adapter, number, request
from buda_emu.debugger.dap.protocol import Message, same_file
from buda_emu.errors import HostError

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
    source, here = arguments["source"], adapter.source()
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
