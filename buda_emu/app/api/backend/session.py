"""BackendApi: one machine with one netlist, the object that a front end uses (NETLIST 7.2)."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, overload

from buda_emu.app.api.backend import devices, process_family
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
from buda_emu.app.api.backend.process_family import newest_machine, port_of
from buda_emu.app.api.backend.socket_address import Key, machine_key
from buda_emu.app.api.backend.status import say, status_of, timed_status
from buda_emu.app.api.backend.tensor_descs import PytorchTensorDesc, TilizedTensorDesc
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
            process_family.dismiss(self._key, self._machine)
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
            process_family.enrol(self._key, self._machine)
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
    devices.of_arch.cache_clear()


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


@overload
def push_input(
    desc: DramIODesc, tensor: PytorchTensorDesc, push_one: bool, timeout_s: float, ptr: int
) -> BackendStatusCode: ...
@overload
def push_input(desc: DramIODesc, tensor: TilizedTensorDesc, timeout_s: float, ptr: int) -> BackendStatusCode: ...
def push_input(desc: DramIODesc, tensor: Any, *arguments: Any, **named: Any) -> BackendStatusCode:
    """Write a tensor [w, z, r, c], or packed entries, into a queue after its last entry, or into slots `ptr`, `ptr`+1,
    ... of a ram.

    `push_one` changes nothing: w decides. A full queue is waited for `timeout_s` seconds, then it is TimeoutError; with
    0 it is RuntimeError at once. `TT_BACKEND_PUSH_TIMEOUT` overrides `timeout_s`, but not that of packed entries
    (NETLIST 12).
    """
    tilized = isinstance(tensor, TilizedTensorDesc)
    timeout_s, ptr = (_tilized if tilized else _plain)(*arguments, **named)

    def act(timeout: float) -> None:
        if tilized:
            port_of(desc).push_packed(desc.name, tensor.buffers(), format_word(tensor.format), timeout, ptr)
        else:
            port_of(desc).push(desc.name, _shaped(desc, tensor), format_word(tensor.format), timeout, ptr)

    variable = "" if tilized else "TT_BACKEND_PUSH_TIMEOUT"
    return timed_status(f"push_input {desc.name}", variable, timeout_s, act)


def get_output(
    desc: DramIODesc, tensor: PytorchTensorDesc, get_one: bool, timeout_s: float, ptr: int
) -> BackendStatusCode:
    """Read the first entry of a queue, or `input_count` of them, or slot `ptr` of a ram, and leave them there.

    `tensor` is pointed to fresh memory, [w, z, r, c] after stacking; its `dim` is kept, and the inverse of the batch
    rule is applied for it. Too few entries are waited for as in `push_input`. `TT_BACKEND_GET_TIMEOUT`.
    """

    def act(timeout: float) -> None:
        from buda_emu.app.api.backend.host_tensors import batch_back
        from buda_emu.arithmetic.tensor.host import stack_entries

        port = port_of(desc)
        untilized = port.check(desc.name)
        array, word = port.read(desc.name, bool(get_one), timeout, int(ptr))
        stacked = stack_entries(array, desc.hstack_factor, desc.vstack_factor, desc.stack_row_major, untilized)
        tensor.adopt(batch_back(stacked, tensor.dim), word, tensor.dim)

    return timed_status(f"get_output {desc.name}", "TT_BACKEND_GET_TIMEOUT", timeout_s, act)


def pop_output(desc: DramIODesc, pop_one: bool, timeout_s: float) -> BackendStatusCode:
    """Take one entry out of a queue, or `input_count` of them. A ram has none: RuntimeError.

    `TT_BACKEND_POP_TIMEOUT` overrides `timeout_s`.
    """

    def act(timeout: float) -> None:
        port_of(desc).pop(desc.name, bool(pop_one), timeout)

    return timed_status(f"pop_output {desc.name}", "TT_BACKEND_POP_TIMEOUT", timeout_s, act)


def free_tensor(tensor: PytorchTensorDesc | TilizedTensorDesc) -> BackendStatusCode:
    """Let go of memory that the backend made, and set the pointer to null.

    RuntimeError for a null pointer, and for memory of the front end. Memory that is gone already is Success.
    """

    def act() -> None:
        if isinstance(tensor, TilizedTensorDesc):
            tensor.buffers()
        elif not tensor.address:
            raise HostError("the tensor descriptor has no memory")
        elif tensor.alive and not tensor.backend_owned:
            raise HostError("the tensor's memory belongs to the front end")
        tensor.release()

    return status_of("free_tensor", act)


def translate_addresses(desc: DramIODesc) -> BackendStatusCode:
    """There are no addresses to translate. Golden: Success, always (NETLIST 12); else RuntimeError when the
    descriptor's machine is gone."""
    if desc.backend_type == BackendType.Golden:
        return BackendStatusCode.Success
    return status_of(f"translate_addresses {desc.name}", lambda: port_of(desc).check(desc.name))


def tilize_tensor(desc: DramIODesc, tensor: PytorchTensorDesc) -> TilizedTensorDesc:
    """The tensor as the queue's buffers would hold it, in the queue's own format. Raises RuntimeError."""
    try:
        data, word = port_of(desc).pack(desc.name, _shaped(desc, tensor), format_word(tensor.format))
    except (BudaError, RuntimeError) as error:
        raise RuntimeError(f"tilize_tensor {desc.name}: {error}") from error
    packed = TilizedTensorDesc()
    packed.adopt(data, word)
    return packed


def _shaped(desc: DramIODesc, tensor: PytorchTensorDesc) -> Any:
    """The tensor's elements with the batch in front, rearranged where the descriptor has a stride."""
    from buda_emu.app.api.backend.host_tensors import batch_first, strided

    array = batch_first(tensor.elements(), tensor.dim)
    if desc.s_descriptor.stride > 0:
        array = strided(array, desc.s_descriptor, format_word(tensor.format))
    return array


def _plain(push_one: bool, timeout_s: float, ptr: int) -> tuple[float, int]:
    del push_one
    return timeout_s, int(ptr)


def _tilized(timeout_s: float, ptr: int) -> tuple[float, int]:
    return timeout_s, int(ptr)
