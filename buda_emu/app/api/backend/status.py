"""Status codes for exceptions (NETLIST 7), and warnings of arguments that have no effect on an emulated machine."""

import os
import warnings
from collections.abc import Callable
from typing import Any

from buda_emu.app.api.backend.enums import BackendStatusCode
from buda_emu.support.errors import BudaError, HostError, HostTimeoutError


class BackendWarning(UserWarning):
    """A warning of a request to the backend that an emulated machine does not carry out; the call goes on without
    it."""


def warn(message: str, stacklevel: int = 3) -> None:
    """Issue a BackendWarning; by default it names the line that called the caller of `warn`."""
    warnings.warn(message, BackendWarning, stacklevel=stacklevel)


def log_failure(call: str, error: BaseException) -> None:
    """Log the reason of a status code as an error, to the logger "buda_emu.backend"."""
    import logging

    logging.getLogger("buda_emu.backend").error("%s: %s", call, error)


def log_timeout(call: str, error: BaseException) -> None:
    """Log a call that waited in vain as information: front ends try again, so it is not an error yet."""
    import logging

    logging.getLogger("buda_emu.backend").info("%s: %s", call, error)


def status_of(call: str, act: Callable[[], Any]) -> BackendStatusCode:
    """Call `act`, and return Success, or RuntimeError for a failure, whose reason is logged under the name `call`.

    TypeError and other mistakes in arguments stay exceptions, as in a compiled module.
    """
    try:
        act()
    except (BudaError, RuntimeError, OSError, MemoryError) as error:
        log_failure(call, error)
        return BackendStatusCode.RuntimeError
    return BackendStatusCode.Success


def timed_status(call: str, variable: str, timeout_s: float, act: Callable[[float], Any]) -> BackendStatusCode:
    """Call `act` with the seconds that it may wait, and return its status as `status_of` does, or TimeoutError.

    The seconds are those of the environment variable `variable` if it is set, else `timeout_s`; "" names no variable.
    With 0 seconds an entry that is not there is a RuntimeError.
    """
    timeouts: list[HostTimeoutError] = []

    def act_in_time() -> None:
        """Act within the timeout. If the time runs out, log that and add the error to `timeouts`; with a timeout of 0
        raise it instead."""
        timeout = _timeout_seconds(variable, timeout_s)
        try:
            act(timeout)
        except HostTimeoutError as error:
            if timeout == 0:
                raise
            log_timeout(call, error)
            timeouts.append(error)

    status = status_of(call, act_in_time)
    if timeouts:
        return BackendStatusCode.TimeoutError
    return status


def _timeout_seconds(variable: str, timeout_s: float) -> float:
    """Return the timeout that the environment variable sets, else `timeout_s`; never below 0. Raise HostError if the
    variable is not a number."""
    text = os.environ.get(variable, "") if variable else ""
    try:
        return max(0.0, float(text or timeout_s))
    except ValueError:
        raise HostError(f"{variable}={text!r} is not a number of seconds") from None
