"""No network: libraries are told to stay offline, and an attempt to reach a host is an error that names it."""

import os
import sys
from typing import Any, Final

ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class NetworkRefusedError(RuntimeError):
    """Raised where a model library tries to reach a host."""


def stay_offline() -> None:
    """Tell the libraries to stay offline, for this process and its children."""
    os.environ.update(ENVIRONMENT)


def refuse_network() -> None:
    """Refuse every connection of this process from now on, except those inside of the machine's file system."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        raise NetworkRefusedError(f"the census downloads nothing: {arguments[0]} is not asked")
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, tuple):  # a str is a file: a socket inside of this machine
            raise NetworkRefusedError(f"the census downloads nothing: {address[0]} is not asked")
