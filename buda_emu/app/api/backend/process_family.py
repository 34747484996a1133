"""The machines that this process has, and its connections to machines of other processes of the same front end."""

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
    """The machines and connections of a process. A forked child starts with an empty one."""

    pid: int
    machines: dict[Key, Machine] = field(default_factory=dict[Key, Machine])
    remote: "dict[Key, RemotePort]" = field(default_factory=dict[Key, Any])
    is_child: bool = False


_lock = threading.Lock()
# The functions of the backend module get descriptors only, so the machines behind these are state of the module. It
# stands in a list so that a forked child can replace it.
_state = [_Process(os.getpid())]


def _current_process() -> _Process:
    """Return the machines and connections of this process; a forked child begins with none. The caller must hold the
    lock."""
    if _state[0].pid != os.getpid():
        _state[0] = _Process(os.getpid())
    return _state[0]


def register_machine(key: Key, machine: Machine) -> None:
    """Let descriptors of `key` reach this machine from now on."""
    with _lock:
        _current_process().machines[key] = machine


def unregister_machine(key: Key, machine: Machine) -> None:
    """Remove a machine, so that descriptors of `key` do not reach it any more; nothing happens if another machine has
    taken its place."""
    with _lock:
        if _current_process().machines.get(key) is machine:
            del _current_process().machines[key]


def newest_machine() -> Machine | None:
    """Return the machine of this process that was opened last, None if there is none."""
    with _lock:
        return next(reversed(_current_process().machines.values()), None)


def port_of(desc: DramIODesc) -> Port:
    """Return the interface to the machine of a descriptor, in this process or another. Its methods raise HostError when
    there is no such machine."""
    key = machine_key(desc.netlist_path, desc.backend_type)
    with _lock:
        process = _current_process()
        if key in process.machines:
            return process.machines[key]
        if key not in process.remote:
            from buda_emu.app.api.backend.machine_server import RemotePort

            process.remote[key] = RemotePort(key)
        return process.remote[key]


def initialize_child_process(output_dir: str) -> BackendStatusCode:
    """Let this process use descriptors of a machine of another process. `output_dir` has no effect here."""
    del output_dir
    with _lock:
        _current_process().is_child = True
    return BackendStatusCode.Success


def finish_child_process() -> BackendStatusCode:
    """Close the connections to machines of other processes; a second call does nothing. Gives RuntimeError in a process
    that did not call `initialize_child_process`."""
    with _lock:
        process = _current_process()
        if not process.is_child:
            log_failure("finish_child_process", RuntimeError("initialize_child_process was not called"))
            return BackendStatusCode.RuntimeError
        ports = list(process.remote.values())
        process.remote.clear()
    for port in ports:
        port.close()
    return BackendStatusCode.Success
