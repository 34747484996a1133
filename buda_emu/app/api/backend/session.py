"""BackendApi: one machine with one netlist, the object that a front end uses (NETLIST 7.2)."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from buda_emu.app.api.backend import devices as parameters
from buda_emu.app.api.backend import process_family as family
from buda_emu.app.api.backend.config import BackendConfig
from buda_emu.app.api.backend.descriptors import DramIODesc, describe_queue
from buda_emu.app.api.backend.enums import (
    BackendCompileFailure,
    BackendDevice,
    BackendStatusCode,
    BackendType,
    DeviceMode,
    format_word,
)
from buda_emu.app.api.backend.machine import Machine
from buda_emu.app.api.backend.process_family import newest_machine
from buda_emu.app.api.backend.socket_address import Key, machine_key
from buda_emu.app.api.backend.status import say, status_of
from buda_emu.netlist.load import check
from buda_emu.netlist.sizes import align_up
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.support.checker.render import render
from buda_emu.support.errors import BudaError, HostError, NetlistError

if TYPE_CHECKING:
    from buda_emu.app.api.backend.machine_server import Server
    from buda_emu.netlist.model import Netlist


@dataclass(slots=True)
class BackendBaseCompileResult:
    """Whether something was compiled, and what stopped it. A success until somebody says otherwise."""

    success: bool = True
    failure_type: BackendCompileFailure = BackendCompileFailure.Invalid
    failure_message: str = ""
    failure_target: str = ""


@dataclass(slots=True)
class BackendFwCompileResult(BackendBaseCompileResult):
    """The firmware's compilation. Never filled here: there is no firmware."""


@dataclass(slots=True)
class BackendCompileResultPerEpoch:
    """What did not fit where. Core coordinates are 255 where unknown."""

    failure_type: BackendCompileFailure = BackendCompileFailure.Invalid
    failure_message: str = ""
    device_id: int = 0
    temporal_epoch_id: int = 0
    logical_core_x: int = 255
    logical_core_y: int = 255
    maximum_size_bytes: int = 0
    allocated_size_bytes: int = 0
    extra_size_bytes: int = 0


@dataclass(slots=True)
class BackendOverlayCompileResult(BackendBaseCompileResult):
    """The overlay's compilation. Its list is always empty here: there is no overlay."""

    failed_compile_results_per_epoch: list[BackendCompileResultPerEpoch] = field(
        default_factory=list[BackendCompileResultPerEpoch]
    )


@dataclass(slots=True)
class BackendCompileResult(BackendBaseCompileResult):
    """How `BackendApi.initialize` went, filled by it."""

    fw_compile_result: BackendFwCompileResult = field(default_factory=BackendFwCompileResult)
    overlay_compile_result: BackendOverlayCompileResult = field(default_factory=BackendOverlayCompileResult)


_RUNNABLE: Final = (
    BackendType.Golden, BackendType.Silicon, BackendType.Versim, BackendType.Emulation, BackendType.Model,
)  # fmt: skip
# Not sure enough to refuse a netlist: the L1 estimate (NETLIST 10), and shapes that the reference computes on with.
_NOT_SURE: Final = ("V164", "V179")


class BackendApi:
    """Reads a netlist; `initialize` then makes the machine. Raises RuntimeError for a netlist that is refused, and for
    a type that runs nothing.

    Every later call answers with a status; the reason of a failure goes to the logger "buda_emu.backend". The machine
    stays until `finish` or `release_backend_ptr`, whoever still holds this object.
    """

    def __init__(self, netlist_path: str | os.PathLike[str], config: BackendConfig) -> None:
        if config.type not in _RUNNABLE:
            raise RuntimeError(f"{config.type} runs no netlist; types: {', '.join(t.name for t in _RUNNABLE)}")
        self._config = config
        config.precision  # noqa: B018 - raises for an unknown word
        self._netlist = _load(os.fspath(netlist_path), config)
        self._key = machine_key(self._netlist.path, config.type)
        self._machine: Machine | None = None
        self._server: Server | None = None
        self._finished = False
        self._travelled = threading.Event()  # a descriptor was pickled: other processes may take part
        _say_what_is_left_out(config)

    def initialize(self, result: BackendCompileResult | None = None) -> BackendStatusCode:
        """Make the machine, let descriptors and other processes reach it, and fill in `result`.

        On an emulated device, what the device's compiler or runtime would refuse (rules of stage N and R, but not V164
        and V179) gives RuntimeError.
        """
        result = BackendCompileResult() if result is None else result
        result.success = False
        return status_of("BackendApi.initialize", lambda: self._open(result))

    def finish(self) -> BackendStatusCode:
        """Stop what runs and give up the machine. Descriptors then answer RuntimeError, here and in other processes."""
        self._finished = True
        if self._machine is not None:
            self._machine.close()
            family.dismiss(self._key, self._machine)
        if self._server is not None:
            self._server.close()
        return BackendStatusCode.Success

    def run_program(self, name: str, parameters: Mapping[str, str]) -> BackendStatusCode:
        """Run a program; `parameters` binds `$` names to texts. Golden returns when it has run. An emulated device
        returns at once and runs programs in turn; `wait_for_idle` says how they ended."""
        return status_of("BackendApi.run_program", lambda: self._runnable().run(name, parameters))

    def wait_for_idle(self) -> BackendStatusCode:
        """Wait until every program has run."""
        return status_of("BackendApi.wait_for_idle", lambda: self._opened().idle())

    def memory_barrier(self) -> BackendStatusCode:
        """Every write can be seen at once here."""
        return status_of("BackendApi.memory_barrier", self._opened)

    def get_programs(self) -> list[str]:
        """Names of the programs, in file order."""
        return list(dict.fromkeys(self._netlist.program_order))

    def get_queue_descriptor(self, name: str) -> DramIODesc:
        """The descriptor of a queue or ram. Raises RuntimeError for an unknown name and after `finish`."""
        if self._finished:
            raise RuntimeError("the backend is finished")
        queue = self._netlist.queues.get(name)
        if queue is None:
            raise RuntimeError(f"no queue or ram {name!r} in {self._netlist.path}")
        return describe_queue(self._netlist, queue, self._config.type, self._config.ignores_precision, self._travelled)

    def _open(self, result: BackendCompileResult) -> None:
        if self._finished:
            raise HostError("the backend is finished")
        if self._machine is None:
            if self._config.type != BackendType.Golden:
                _fit(self._netlist, result)
            self._machine = Machine(self._netlist, self._config, self._travelled)
            family.enrol(self._key, self._machine)
            self._server = _serve(self._machine, self._key)
        result.success = True

    def _opened(self) -> Machine:
        if self._machine is None or self._finished:
            raise HostError("the backend is finished" if self._finished else "initialize was not called, or failed")
        return self._machine

    def _runnable(self) -> Machine:
        if self._config.mode == DeviceMode.CompileOnly:
            raise HostError("the backend is configured with DeviceMode.CompileOnly: it runs no program")
        return self._opened()


def release_backend_ptr(api: BackendApi) -> None:
    """Give up what the backend holds, finished or not."""
    api.finish()


def clear_backend_param_cache() -> None:
    """Forget parameters of devices that were read."""
    parameters.of_arch.cache_clear()


def get_golden_config() -> BackendConfig:
    """A configuration of the reference with the formats of the netlist: Golden, Grayskull (NETLIST 12)."""
    config = BackendConfig(BackendType.Golden, BackendDevice.Grayskull)
    config.set_golden_ignore_df_precision(False)
    return config


def _load(path: str, config: BackendConfig) -> "Netlist":
    """The netlist for the architecture that `ARCH_NAME` or the configuration names, where it lists several
    (NETLIST 1.2). Raises RuntimeError."""
    wanted = os.environ.get("ARCH_NAME", "").lower()
    if not wanted and config.device != BackendDevice.Invalid:
        wanted = config.device.to_string()
    try:
        result = check(path, wanted or None)
        if result.netlist is None:
            raise NetlistError(render(result.diagnostics), result.diagnostics)
    except BudaError as error:
        raise RuntimeError(str(error)) from error
    found = result.netlist.arch_name
    # Golden has no device of its own: every architecture may be in its configuration.
    if wanted and found != wanted and ("ARCH_NAME" in os.environ or config.type != BackendType.Golden):
        say(f"the netlist is for {found}, not for {wanted}: it runs as {found}", 4)
    return result.netlist


def _say_what_is_left_out(config: BackendConfig) -> None:
    """One warning for what was asked and is not done. What front ends always pass is not among it (NETLIST 12): paths
    of descriptors, `--concurrent-mode`, and ignored precision for a type that is not Golden."""
    left_out = {"performance trace": config.performance_trace_args, "runtime arguments": config.runtime_args_left}
    given = [f"{what} {value!r}" for what, value in left_out.items() if value]
    if given:
        say(f"recorded, without effect on an emulated machine: {', '.join(given)}", 4)


def _fit(netlist: "Netlist", result: BackendCompileResult) -> None:
    """Raises HostError, with the reason in `result`, for what the device would refuse."""
    from buda_emu.netlist.rules import RULES

    for finding in netlist.diagnostics:
        if RULES[finding.rule].stage in ("N", "R") and finding.rule not in _NOT_SURE:
            result.failure_type = BackendCompileFailure.Net2Pipe
            result.failure_message = f"{finding.rule}: {finding.message}"
            result.failure_target = f"{finding.path}:{finding.line}:{finding.column}"
            raise HostError(f"{result.failure_target}: {result.failure_message}")


def _serve(machine: Machine, key: Key) -> "Server | None":
    """Let other processes in; without sockets it goes on alone."""
    from buda_emu.app.api.backend.machine_server import Server

    try:
        return Server(machine, key)
    except (OSError, HostError) as error:
        say(f"other processes cannot reach this backend: {error}", 6)
        return None


def get_io_size_in_bytes(
    data_formati: Any,
    is_untilizesd: bool,
    ublock_ct: int,
    ublock_rt: int,
    mblock_m: int,
    mblock_n: int,
    t: int,
    entries: int,
    tile_height: int = 32,
    tile_width: int = 32,
) -> int:
    """Bytes of one buffer of a queue: its entries after the queue header. Raises RuntimeError for an unknown format.

    The names, misspelt as they are, and the order of the arguments are those of the compiled module.
    """
    word = format_word(data_formati)
    if word not in FORMATS:
        raise RuntimeError(f"get_io_size_in_bytes: {data_formati} is not a format")
    alignment = _alignment()
    tile = tile_bytes(word, tile_height, tile_width, alignment, header=not is_untilizesd)
    return ublock_ct * ublock_rt * mblock_m * mblock_n * t * tile * entries + alignment


def get_next_aligned_address(address: int) -> int:
    """The first aligned address that is not below."""
    return align_up(int(address), _alignment())


def _alignment() -> int:
    """32 bytes, 64 on blackhole: of the architecture that ARCH_NAME names, else of the open backend."""
    name = os.environ.get("ARCH_NAME", "").lower()
    if name in ARCHS:
        return ARCHS[name].alignment
    machine = newest_machine()
    return (machine.netlist.arch if machine is not None else ARCHS[DEFAULT_ARCH]).alignment
