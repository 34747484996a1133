"""From exceptions to status codes (NETLIST 7), and warnings for arguments that have no effect here."""

import os
import warnings
from collections.abc import Callable
from typing import Any

from buda_emu.app.api.backend.enums import BackendStatusCode
from buda_emu.support.errors import BudaError, HostError, HostTimeoutError


class BackendWarning(UserWarning):
    """Something was asked of the backend that an emulated machine does not do. The call goes on without it."""


def say(message: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller."""
    warnings.warn(message, BackendWarning, stacklevel=stacklevel)


def log_failure(call: str, error: BaseException) -> None:
    """The reason behind a status code, for logging's logger "buda_emu.backend"."""
    import logging

    logging.getLogger("buda_emu.backend").error("%s: %s", call, error)


def log_late(call: str, error: BaseException) -> None:
    """What was waited for in vain; front ends try again, so it is not an error yet."""
    import logging

    logging.getLogger("buda_emu.backend").info("%s: %s", call, error)


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
