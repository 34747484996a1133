"""BackendApi, the machine with a netlist that a front end works with, and the functions on its queues (NETLIST 7.2)."""

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
from buda_emu.app.api.backend.status import status_of, timed_status, warn
from buda_emu.app.api.backend.tensor_descs import PytorchTensorDesc, TilizedTensorDesc
from buda_emu.netlist.load import check
from buda_emu.netlist.sizes import align_up
from buda_emu.netlist.unknown_queue import no_queue
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.support.checker.render import render
from buda_emu.support.errors import BudaError, HostError, NetlistError

if TYPE_CHECKING:
    from buda_emu.app.api.backend.machine_server import Server
    from buda_emu.netlist.model import Netlist


@dataclass(slots=True)
class BackendBaseCompileResult:
    """The outcome of a compilation, and the reason of a failure. A new one is a success."""

    success: bool = True
    failure_type: BackendCompileFailure = BackendCompileFailure.Invalid
    failure_message: str = ""
    failure_target: str = ""


@dataclass(slots=True)
class BackendFwCompileResult(BackendBaseCompileResult):
    """The outcome of the firmware's compilation. It keeps its defaults here: there is no firmware."""


@dataclass(slots=True)
class BackendCompileResultPerEpoch:
    """A failure of an epoch: the core, and the sizes that do not fit on it. Coordinates of an unknown core are 255."""

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
    """The outcome of the overlay's compilation. Its list is always empty here: there is no overlay."""

    failed_compile_results_per_epoch: list[BackendCompileResultPerEpoch] = field(
        default_factory=list[BackendCompileResultPerEpoch]
    )


@dataclass(slots=True)
class BackendCompileResult(BackendBaseCompileResult):
    """The outcome of `BackendApi.initialize`, which fills it in."""

    fw_compile_result: BackendFwCompileResult = field(default_factory=BackendFwCompileResult)
    overlay_compile_result: BackendOverlayCompileResult = field(default_factory=BackendOverlayCompileResult)


_RUNNABLE: Final = (
    BackendType.Golden, BackendType.Silicon, BackendType.Versim, BackendType.Emulation, BackendType.Model,
)  # fmt: skip
# Rules that are not certain enough to refuse a netlist: the estimate of L1 (NETLIST 10), and shapes that the reference
# accepts.
_UNSURE_RULES: Final = ("V164", "V179")


class BackendApi:
    """A backend with one netlist, which is read at once; `initialize` makes the machine. Raises RuntimeError for a
    netlist that is refused, and for a type that runs no netlist.

    Every later call returns a status; the reason of a failure goes to the logger "buda_emu.backend". The machine exists
    until `finish` or `release_backend_ptr`, even if this object is gone before.
    """

    def __init__(self, netlist_path: str | os.PathLike[str], config: BackendConfig) -> None:
        if config.type not in _RUNNABLE:
            raise RuntimeError(f"{config.type} runs no netlist; types: {', '.join(t.name for t in _RUNNABLE)}")
        self._config = config
        config.precision  # noqa: B018 - raises for an unknown word
        self._netlist = _load_netlist(os.fspath(netlist_path), config)
        self._key = machine_key(self._netlist.path, config.type)
        self._machine: Machine | None = None
        self._server: Server | None = None
        self._finished = False
        self._pickling = threading.Event()  # a descriptor was pickled: other processes may take part
        _warn_of_unused_settings(config)

    def __repr__(self) -> str:
        state = "not initialized"
        if self._finished:
            state = "finished"
        elif self._machine is not None:
            state = "initialized"
        return f"<BackendApi on {self._netlist.path}, {self._config.type.name}: {state}>"

    def initialize(self, result: BackendCompileResult | None = None) -> BackendStatusCode:
        """Make the machine, let descriptors and other processes reach it, and fill in `result`.

        On an emulated device a netlist that the device's compiler or runtime would refuse (rules of stage N and R,
        except V164 and V179) gives RuntimeError.
        """
        if result is None:
            result = BackendCompileResult()
        result.success = False
        return status_of("BackendApi.initialize", lambda: self._open_machine(result))

    def finish(self) -> BackendStatusCode:
        """Stop the programs and close the machine; always Success. Calls with descriptors of this backend then give
        RuntimeError, in this process and in others."""
        self._finished = True
        if self._machine is not None:
            self._machine.close()
            process_family.unregister_machine(self._key, self._machine)
        if self._server is not None:
            self._server.close()
        return BackendStatusCode.Success

    def run_program(self, name: str, parameters: Mapping[str, str]) -> BackendStatusCode:
        """Run a program; `parameters` binds `$` names to texts. Golden returns when the program has run. An emulated
        device returns at once and runs programs in turn; `wait_for_idle` reports their failures."""
        return status_of("BackendApi.run_program", lambda: self._machine_for_programs().run(name, parameters))

    def wait_for_idle(self) -> BackendStatusCode:
        """Wait until every program has run; RuntimeError if one failed."""
        return status_of("BackendApi.wait_for_idle", lambda: self._require_machine().wait_until_idle())

    def memory_barrier(self) -> BackendStatusCode:
        """Do nothing, since every write can be seen at once here; RuntimeError without a machine."""
        return status_of("BackendApi.memory_barrier", self._require_machine)

    def get_programs(self) -> list[str]:
        """Return the names of the programs, in file order."""
        return list(dict.fromkeys(self._netlist.program_order))

    def get_queue_descriptor(self, name: str) -> DramIODesc:
        """Return the descriptor of a queue or ram. Raises RuntimeError for an unknown name and after `finish`."""
        if self._finished:
            raise RuntimeError("the backend is finished")
        queue = self._netlist.queues.get(name)
        if queue is None:
            raise RuntimeError(str(no_queue(self._netlist, name)))
        return describe_queue(self._netlist, queue, self._config.type, self._config.ignores_precision, self._pickling)

    def _open_machine(self, result: BackendCompileResult) -> None:
        """Make the machine, if that has not been done, and let other processes of the family reach it; then mark
        `result` as a success. Raise HostError if the backend is finished, or the device would refuse the netlist."""
        if self._finished:
            raise HostError("the backend is finished")
        if self._machine is None:
            if self._config.type != BackendType.Golden:
                _require_fit(self._netlist, result)
            self._machine = Machine(self._netlist, self._config, self._pickling)
            process_family.register_machine(self._key, self._machine)
            self._server = _start_server(self._machine, self._key)
        result.success = True

    def _require_machine(self) -> Machine:
        """Return the machine. Raises HostError before `initialize` and after `finish`."""
        if self._finished:
            raise HostError("the backend is finished")
        if self._machine is None:
            raise HostError("initialize was not called, or failed")
        return self._machine

    def _machine_for_programs(self) -> Machine:
        """Return the machine to run a program on. Raises HostError in a mode that only compiles, before `initialize`
        and after `finish`."""
        if self._config.mode == DeviceMode.CompileOnly:
            raise HostError("the backend is configured with DeviceMode.CompileOnly: it runs no program")
        return self._require_machine()


def release_backend_ptr(api: BackendApi) -> None:
    """Close the machine of a backend, finished or not."""
    api.finish()


def clear_backend_param_cache() -> None:
    """Empty the cache of parameters of architectures."""
    devices.arch_parameters.cache_clear()


def get_golden_config() -> BackendConfig:
    """Return a configuration of the reference that computes in the formats of the netlist: Golden on Grayskull
    (NETLIST 12)."""
    config = BackendConfig(BackendType.Golden, BackendDevice.Grayskull)
    config.set_golden_ignore_df_precision(False)
    return config


def _load_netlist(path: str, config: BackendConfig) -> "Netlist":
    """Load a netlist; of several architectures that it lists, for the one that `ARCH_NAME` or the configuration names
    (NETLIST 1.2). Raises RuntimeError."""
    requested_arch = os.environ.get("ARCH_NAME", "").lower()
    if not requested_arch and config.device != BackendDevice.Invalid:
        requested_arch = config.device.to_string()
    try:
        result = check(path, requested_arch or None)
        if result.netlist is None:
            raise NetlistError(render(result.diagnostics), result.diagnostics)
    except BudaError as error:
        raise RuntimeError(str(error)) from error
    arch = result.netlist.arch_name
    # Golden has no device of its own: every architecture may be in its configuration.
    is_request_binding = "ARCH_NAME" in os.environ or config.type != BackendType.Golden
    if requested_arch and arch != requested_arch and is_request_binding:
        warn(f"the netlist is for {arch}, not for {requested_arch}: it runs as {arch}", 4)
    return result.netlist


def _warn_of_unused_settings(config: BackendConfig) -> None:
    """Warn once of all settings that have no effect. Front ends always set some (NETLIST 12), of which nobody is
    warned: paths of descriptors, `--concurrent-mode`, and ignored precision for a type that is not Golden."""
    settings = {"performance trace": config.performance_trace_args, "runtime arguments": config.runtime_args_left}
    texts = [f"{name} {value!r}" for name, value in settings.items() if value]
    if texts:
        warn(f"recorded, without effect on an emulated machine: {', '.join(texts)}", 4)


def _require_fit(netlist: "Netlist", result: BackendCompileResult) -> None:
    """Raise HostError for a netlist with a finding by which the device's compiler or runtime would refuse it, and put
    the first such finding into `result`."""
    from buda_emu.netlist.rules import RULES

    for finding in netlist.diagnostics:
        if RULES[finding.rule].stage in ("N", "R") and finding.rule not in _UNSURE_RULES:
            result.failure_type = BackendCompileFailure.Net2Pipe
            result.failure_message = f"{finding.rule}: {finding.message}"
            result.failure_target = f"{finding.path}:{finding.line}:{finding.column}"
            raise HostError(f"{result.failure_target}: {result.failure_message}")


def _start_server(machine: Machine, key: Key) -> "Server | None":
    """Return a server that lets other processes reach the machine; None, with a warning, where sockets are missing."""
    from buda_emu.app.api.backend.machine_server import Server

    try:
        return Server(machine, key)
    except (OSError, HostError) as error:
        warn(f"other processes cannot reach this backend: {error}", 6)
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
    """Return the bytes of one buffer of a queue, header and entries. Raises RuntimeError for an unknown format.

    The names of the arguments, with their misspellings, and their order are those of the compiled module.
    """
    word = format_word(data_formati)
    if word not in FORMATS:
        raise RuntimeError(f"get_io_size_in_bytes: {data_formati} is not a format")
    alignment = _alignment()
    tile = tile_bytes(word, tile_height, tile_width, alignment, header=not is_untilizesd)
    return ublock_ct * ublock_rt * mblock_m * mblock_n * t * tile * entries + alignment


def get_next_aligned_address(address: int) -> int:
    """Return the lowest aligned address that is not below `address`."""
    return align_up(int(address), _alignment())


def _alignment() -> int:
    """Return the alignment of addresses, 32 bytes or 64 on blackhole, for the architecture that ARCH_NAME names, else
    for that of the newest machine, else for the default one."""
    name = os.environ.get("ARCH_NAME", "").lower()
    if name in ARCHS:
        return ARCHS[name].alignment
    machine = newest_machine()
    if machine is not None:
        return machine.netlist.arch.alignment
    return ARCHS[DEFAULT_ARCH].alignment


@overload
def push_input(
    desc: DramIODesc, tensor: PytorchTensorDesc, push_one: bool, timeout_s: float, ptr: int
) -> BackendStatusCode: ...
@overload
def push_input(desc: DramIODesc, tensor: TilizedTensorDesc, timeout_s: float, ptr: int) -> BackendStatusCode: ...
def push_input(desc: DramIODesc, tensor: Any, *arguments: Any, **named: Any) -> BackendStatusCode:
    """Write a tensor [w, z, r, c], or packed entries, into a queue after its last entry, or into slots `ptr`, `ptr`+1,
    ... of a ram.

    `push_one` has no effect: w decides. A full queue is waited for during `timeout_s` seconds and is then a
    TimeoutError; with 0 seconds it is a RuntimeError at once. `TT_BACKEND_PUSH_TIMEOUT` overrides `timeout_s`, but not
    for packed entries (NETLIST 12).
    """
    if isinstance(tensor, TilizedTensorDesc):
        return _push_packed(desc, tensor, *_tilized_arguments(*arguments, **named))
    timeout_s, ptr = _plain_arguments(*arguments, **named)

    def act(timeout: float) -> None:
        """Arrange the tensor for the queue and push it."""
        port_of(desc).push(desc.name, _arrange_elements(desc, tensor), format_word(tensor.format), timeout, ptr)

    return timed_status(f"push_input {desc.name}", "TT_BACKEND_PUSH_TIMEOUT", timeout_s, act)


def _push_packed(desc: DramIODesc, tensor: TilizedTensorDesc, timeout_s: float, ptr: int) -> BackendStatusCode:
    """Push entries that are tilized and packed already to a queue, or to slot `ptr` of a ram, and return the status of
    the call."""

    def act(timeout: float) -> None:
        """Push the tiles as they are."""
        port_of(desc).push_packed(desc.name, tensor.buffers(), format_word(tensor.format), timeout, ptr)

    return timed_status(f"push_input {desc.name}", "", timeout_s, act)


def get_output(
    desc: DramIODesc, tensor: PytorchTensorDesc, get_one: bool, timeout_s: float, ptr: int
) -> BackendStatusCode:
    """Read the first entry of a queue, or `input_count` of them, or slot `ptr` of a ram, and leave them there.

    `tensor` gets fresh memory, [w, z, r, c] after stacking; it keeps its `dim`, for which the batch is moved back to
    the outermost of the meaningful dimensions. Missing entries are waited for as in `push_input`;
    `TT_BACKEND_GET_TIMEOUT` overrides `timeout_s`.
    """

    def act(timeout: float) -> None:
        """Read the queue, undo its stacking, and point the caller's `tensor` to the array."""
        from buda_emu.app.api.backend.host_tensors import move_batch_back
        from buda_emu.arithmetic.tensor.host import stack_entries

        port = port_of(desc)
        untilized = port.is_untilized(desc.name)
        array, word = port.read(desc.name, bool(get_one), timeout, int(ptr))
        stacked = stack_entries(array, desc.hstack_factor, desc.vstack_factor, desc.stack_row_major, untilized)
        tensor.adopt(move_batch_back(stacked, tensor.dim), word, tensor.dim)

    return timed_status(f"get_output {desc.name}", "TT_BACKEND_GET_TIMEOUT", timeout_s, act)


def pop_output(desc: DramIODesc, pop_one: bool, timeout_s: float) -> BackendStatusCode:
    """Remove one entry, or `input_count` of them, from the front of a queue. A ram has no front: RuntimeError.

    `TT_BACKEND_POP_TIMEOUT` overrides `timeout_s`.
    """

    def act(timeout: float) -> None:
        """Remove one entry from the queue, or a batch."""
        port_of(desc).pop(desc.name, bool(pop_one), timeout)

    return timed_status(f"pop_output {desc.name}", "TT_BACKEND_POP_TIMEOUT", timeout_s, act)


def free_tensor(tensor: PytorchTensorDesc | TilizedTensorDesc) -> BackendStatusCode:
    """Release memory that the backend allocated, and set the descriptor's pointer to null. A null pointer and memory of
    the front end give RuntimeError. Memory that is gone already gives Success."""

    def act() -> None:
        """Release the tensor's memory. Raise HostError if it has none, or if that belongs to the front end."""
        if isinstance(tensor, TilizedTensorDesc):
            tensor.buffers()
        elif not tensor.address:
            raise HostError("the tensor descriptor has no memory")
        elif tensor.alive and not tensor.backend_owned:
            raise HostError("the tensor's memory belongs to the front end")
        tensor.release()

    return status_of("free_tensor", act)


def translate_addresses(desc: DramIODesc) -> BackendStatusCode:
    """Do nothing, since there are no addresses to translate. Golden always gives Success (NETLIST 12), other types give
    RuntimeError when the descriptor's machine is gone."""
    if desc.backend_type == BackendType.Golden:
        return BackendStatusCode.Success
    return status_of(f"translate_addresses {desc.name}", lambda: port_of(desc).is_untilized(desc.name))


def tilize_tensor(desc: DramIODesc, tensor: PytorchTensorDesc) -> TilizedTensorDesc:
    """Return a host tensor tilized and packed in the queue's format, ready for `push_input`; nothing is pushed. Raises
    RuntimeError."""
    try:
        data, word = port_of(desc).pack(desc.name, _arrange_elements(desc, tensor), format_word(tensor.format))
    except (BudaError, RuntimeError) as error:
        raise RuntimeError(f"tilize_tensor {desc.name}: {error}") from error
    packed = TilizedTensorDesc()
    packed.adopt(data, word)
    return packed


def _arrange_elements(desc: DramIODesc, tensor: PytorchTensorDesc) -> Any:
    """Return the tensor's elements [w, z, r, c] with the batch in front, rearranged if the descriptor has a stride."""
    from buda_emu.app.api.backend.host_tensors import apply_strides, move_batch_first

    array = move_batch_first(tensor.elements(), tensor.dim)
    if desc.s_descriptor.stride > 0:
        array = apply_strides(array, desc.s_descriptor, format_word(tensor.format))
    return array


# `push_input` has two signatures: these two functions bind the arguments of a call, by place or by name.
def _plain_arguments(push_one: bool, timeout_s: float, ptr: int) -> tuple[float, int]:
    """Return timeout and slot from the arguments of `push_input` for a plain tensor."""
    del push_one
    return timeout_s, int(ptr)


def _tilized_arguments(timeout_s: float, ptr: int) -> tuple[float, int]:
    """Return timeout and slot from the arguments of `push_input` for a tilized tensor."""
    return timeout_s, int(ptr)
