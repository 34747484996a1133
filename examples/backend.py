"""A machine behind PyBUDA's interface: a front end for a chip makes these same calls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.app import backend_api as api
from digits import Floats

SECONDS = 60  # how long the host waits: for room in a queue, or for an entry


class BackendError(Exception):
    """A call answered something else than Success."""


class Backend:
    """One netlist on one machine.

    `precision`: "format" is the device (`Silicon`), every tensor in its format; "device" is that with the arithmetic of
    the chip; "ideal" the golden model in float32.
    """

    def __init__(self, netlist: Path, precision: str = "format", arch: str = "wormhole_b0") -> None:
        kind = api.BackendType.Golden if precision == "ideal" else api.BackendType.Silicon
        config = api.BackendConfig(
            kind, api.BackendDevice.from_string(arch), api.DeviceMode.CompileAndRun, 0, "tt_build/test_out", "", ""
        )
        config.set_runtime_args(f"--precision {precision}")
        self._backend = api.BackendApi(str(netlist), config)
        self._queues: dict[str, api.DramIODesc] = {}
        result = api.BackendCompileResult()
        if self._backend.initialize(result) != api.BackendStatusCode.Success:
            raise BackendError(result.failure_message)

    def push(self, queue: str, array: Floats) -> None:
        """Entries go in behind the last of a queue, as soon as there is room; a parameter into slot 0 of its ram."""
        desc = self._queue(queue)
        array = np.ascontiguousarray(array, np.float32)
        tensor = api.PytorchTensorDesc(array, array.itemsize, api.DataFormat.Float32, 4, array.shape, array.strides)
        slot = 0 if desc.io_type == api.IOType.RandomAccess else -1
        _hold(api.push_input(desc, tensor, len(array) == 1, SECONDS, slot), f"push_input {queue}")

    def run(self, program: str, params: Mapping[str, Any]) -> None:
        """The device takes programs one after the other, and this returns at once. Parameters are strings."""
        words = {name: str(value) for name, value in params.items()}
        _hold(self._backend.run_program(program, words), f"run_program {program}")

    def pop(self, queue: str, count: int) -> Floats:
        """Read and free one entry after the other."""
        entries: list[Floats] = []
        for _ in range(count):
            entries.append(self.peek(queue))
            _hold(api.pop_output(self._queue(queue), True, SECONDS), f"pop_output {queue}")
        return np.concatenate(entries)

    def peek(self, queue: str) -> Floats:
        """The first entry of a queue, slot 0 of a ram. What comes back is in the host's form of the queue's format."""
        tensor = api.PytorchTensorDesc()
        _hold(api.get_output(self._queue(queue), tensor, True, SECONDS, 0), f"get_output {queue}")
        words: NDArray[Any] = np.asarray(tensor)
        if tensor.format == api.DataFormat.Float16_b:  # 16 bits, which numpy has no name for
            return (words.astype(np.uint32) << 16).view(np.float32)
        return words.astype(np.float32)

    def wait(self) -> None:
        """Until all programs have ended."""
        _hold(self._backend.wait_for_idle(), "wait_for_idle")

    def close(self) -> None:
        """End it all."""
        _hold(self._backend.finish(), "finish")
        api.clear_backend_param_cache()
        api.release_backend_ptr(self._backend)

    def _queue(self, name: str) -> api.DramIODesc:
        """The descriptor of a queue."""
        if name not in self._queues:
            self._queues[name] = desc = self._backend.get_queue_descriptor(name)
            _hold(api.translate_addresses(desc), f"translate_addresses {name}")
        return self._queues[name]


def _hold(status: api.BackendStatusCode, call: str) -> None:
    if status != api.BackendStatusCode.Success:
        raise BackendError(f"{call}: {status.name}")  # the reason is in the log
