"""Processes of a front end that share one machine: which process serves it, and how the others reach it."""

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buda_emu.app.api.backend.descriptors import DramIODesc
from buda_emu.app.api.backend.enums import BackendStatusCode
from buda_emu.app.api.backend.machine import Machine, Port
from buda_emu.app.api.backend.socket_address import Key, machine_key
from buda_emu.app.api.backend.status import log_failure

if TYPE_CHECKING:
    from buda_emu.app.api.backend.machine_server import RemotePort


@dataclass(slots=True)
class _Process:
    """What this process has open. A forked child starts with nothing of its parent's."""

    pid: int
    machines: dict[Key, Machine] = field(default_factory=dict[Key, Machine])
    remote: "dict[Key, RemotePort]" = field(default_factory=dict[Key, Any])
    is_child: bool = False


_lock = threading.Lock()
_state = [_Process(os.getpid())]


def _here() -> _Process:
    """The state of this process; the caller holds the lock."""
    if _state[0].pid != os.getpid():
        _state[0] = _Process(os.getpid())
    return _state[0]


def enrol(key: Key, machine: Machine) -> None:
    """From now on descriptors of `key` reach this machine."""
    with _lock:
        _here().machines[key] = machine


def dismiss(key: Key, machine: Machine) -> None:
    """The machine is gone, unless another has taken its place."""
    with _lock:
        if _here().machines.get(key) is machine:
            del _here().machines[key]


def newest_machine() -> Machine | None:
    """The machine of this process that was opened last."""
    with _lock:
        return next(reversed(_here().machines.values()), None)


def port_of(desc: DramIODesc) -> Port:
    """How to reach the machine of a descriptor. Using it raises HostError when there is none."""
    key = machine_key(desc.netlist_path, desc.backend_type)
    with _lock:
        here = _here()
        if key in here.machines:
            return here.machines[key]
        if key not in here.remote:
            from buda_emu.app.api.backend.machine_server import RemotePort

            here.remote[key] = RemotePort(key)
        return here.remote[key]


def initialize_child_process(output_dir: str) -> BackendStatusCode:
    """Let this process use descriptors of another one's machine. `output_dir` is not needed here."""
    del output_dir
    with _lock:
        _here().is_child = True
    return BackendStatusCode.Success


def finish_child_process() -> BackendStatusCode:
    """Hang up; once more does nothing. RuntimeError in a process that never initialised."""
    with _lock:
        here = _here()
        if not here.is_child:
            log_failure("finish_child_process", RuntimeError("initialize_child_process was not called"))
            return BackendStatusCode.RuntimeError
        ports = list(here.remote.values())
        here.remote.clear()
    for port in ports:
        port.close()
    return BackendStatusCode.Success
