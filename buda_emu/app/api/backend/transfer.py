"""Tensors into queues and back: the functions of the host API that take a DramIODesc (NETLIST 7.3)."""

from typing import Any, overload

from buda_emu.app.api.backend.descriptors import DramIODesc
from buda_emu.app.api.backend.enums import BackendStatusCode, BackendType, format_word
from buda_emu.app.api.backend.process_family import port_of
from buda_emu.app.api.backend.status import status_of, timed_status
from buda_emu.app.api.backend.tensor_descs import PytorchTensorDesc, TilizedTensorDesc
from buda_emu.support.errors import BudaError, HostError


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
