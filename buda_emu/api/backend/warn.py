"""Warnings for arguments that are accepted but have no effect here."""

import warnings


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
