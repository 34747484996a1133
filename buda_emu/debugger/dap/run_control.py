"""Requests that begin, run and end."""

from pathlib import Path
from typing import Any

from buda_emu.debugger.dap.adapter import ERROR_FILTER, NAN_FILTERS, Adapter, number, request
from buda_emu.debugger.dap.protocol import Message
from buda_emu.debugger.machine.position import START
from buda_emu.debugger.session import Session
from buda_emu.device.host_processors import usable_processors
from buda_emu.errors import HostError
from buda_emu.image.opened import open_file
from buda_emu.spec.precision import PRECISIONS, precision_named

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
    given: Message = arguments.get("parameters") or {}
    programs: list[Any] = arguments.get("programs") or []
    inputs = arguments.get("inputs")
    values = {name if name.startswith("$") else f"${name}": str(value) for name, value in given.items()}
    opened = open_file(path, arguments.get("arch"))
    adapter.session = Session(
        opened,
        precision=precision,
        programs=[str(name) for name in programs],
        parameters=values,
        inputs=Path(inputs) if inputs else None,
        seed=number(arguments, "seed", 0),
        threads=number(arguments, "threads", usable_processors()),
    )
    adapter.launched = arguments
    adapter.then = lambda: adapter.channel.event("initialized")
    return {}


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
