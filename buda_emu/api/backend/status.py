"""From exceptions to status codes (NETLIST, "Where an error surfaces"), and the time-outs of calls (7.3)."""

import os
from collections.abc import Callable
from typing import Any

from buda_emu.api.backend.enums import BackendStatusCode
from buda_emu.api.backend.warn import log_failure, log_late
from buda_emu.errors import BudaError, HostError, HostTimeoutError


def status_of(call: str, act: Callable[[], Any]) -> BackendStatusCode:
    """Success, or RuntimeError with the reason logged.

    Mistakes in the types of arguments stay exceptions, as in a compiled module.
    """
    try:
        act()
    except (BudaError, RuntimeError, OSError, MemoryError) as error:
        log_failure(call, error)
        return BackendStatusCode.RuntimeError
    return BackendStatusCode.Success


def timed_status(call: str, variable: str, given: float, act: Callable[[float], Any]) -> BackendStatusCode:
    """The same for a call that may wait: `act` gets its seconds, from the environment `variable` or else as `given`
    ("": always as given).

    TimeoutError when they did not do. Without a time to wait a failure is a RuntimeError.
    """
    late: list[HostTimeoutError] = []

    def within() -> None:
        timeout = _seconds(variable, given)
        try:
            act(timeout)
        except HostTimeoutError as error:
            if timeout == 0:
                raise
            log_late(call, error)
            late.append(error)

    status = status_of(call, within)
    return BackendStatusCode.TimeoutError if late else status


def _seconds(variable: str, given: float) -> float:
    text = os.environ.get(variable, "") if variable else ""
    try:
        return max(0.0, float(text or given))
    except ValueError:
        raise HostError(f"{variable}={text!r} is not a number of seconds") from None
