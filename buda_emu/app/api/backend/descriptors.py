"""DramIODesc, the descriptor of a queue or ram that a front end works with (NETLIST 7.2)."""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from buda_emu.app.api.backend.enums import BackendType, DataFormat, IOLayout, IOType, format_value
from buda_emu.app.api.backend.tensor_descs import StrideDescriptor
from buda_emu.netlist.sizes import entry_bytes, has_tile_headers
from buda_emu.spec.formats import is_raw

if TYPE_CHECKING:
    from buda_emu.netlist.model import Netlist, Queue

# Order of the pickle (NETLIST 7.2).
_PICKLED: Final = (
    "netlist_path", "_name", "bufq_grid_dim_r", "bufq_grid_dim_c", "bufq_num_slots", "ublock_rt", "ublock_ct",
    "mblock_m", "mblock_n", "tile_height", "tile_width", "t", "input_count", "hstack_factor", "vstack_factor",
    "stack_row_major", "_data_format", "bufq_start_addr_channel", "bufq_entry_size", "io_type", "s_descriptor",
    "backend_type", "layout",
)  # fmt: skip


class DramIODesc:
    """The descriptor of a queue or ram. `name` and `data_format` cannot be set; a front end sets stacking and strides
    before it reads or pushes. Sizes of blocks are in tiles, `bufq_entry_size` is the bytes of an entry in one buffer.

    `input_count` is 2^32-1 for a queue that nothing consumes.
    """

    def __init__(self) -> None:
        self.netlist_path = ""
        self._name = ""
        self.bufq_grid_dim_r = 0
        self.bufq_grid_dim_c = 0
        self.bufq_num_slots = 0
        self.ublock_rt = 0
        self.ublock_ct = 0
        self.mblock_m = 0
        self.mblock_n = 0
        self.tile_height = 32
        self.tile_width = 32
        self.t = 0
        self.input_count = 0
        self.hstack_factor = 1
        self.vstack_factor = 1
        self.stack_row_major = True
        self._data_format = DataFormat.Invalid
        self.bufq_start_addr_channel: list[tuple[int, int]] = []
        self.bufq_entry_size = 0
        self.io_type = IOType.Invalid
        self.s_descriptor = StrideDescriptor()
        self.backend_type = BackendType.NoBackend
        self.layout = IOLayout.Invalid
        self._pickling: threading.Event | None = None  # set when the descriptor is pickled

    @property
    def name(self) -> str:
        """The name of the queue or ram in the netlist."""
        return self._name

    @property
    def data_format(self) -> DataFormat:
        """The queue's format, Float32 where precision is ignored (raw formats stay)."""
        return self._data_format

    def __getstate__(self) -> tuple[Any, ...]:
        if self._pickling is not None:
            self._pickling.set()
        return tuple(getattr(self, name) for name in _PICKLED)

    def __setstate__(self, state: Iterable[Any]) -> None:
        self._pickling = None
        for name, value in zip(_PICKLED, state, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"<DramIODesc {self._name} of {self.netlist_path}>"


def describe_queue(
    netlist: "Netlist", queue: "Queue", backend: BackendType, ideal: bool, pickling: threading.Event
) -> DramIODesc:
    """Return the descriptor of a queue or ram, for a front end. With `ideal` (the machine computes in float32), the
    descriptor's format is Float32 unless the queue's is raw. For Golden every buffer is at channel 0, address 0
    (NETLIST 7.4). The descriptor sets the event `pickling` when it is pickled, which is how it gets to another process,
    so that the machine then expects pushes from there."""
    desc = DramIODesc()
    blocking = queue.blocking
    desc.netlist_path = netlist.path
    desc._name = queue.name  # pyright: ignore[reportPrivateUsage] - fixed for callers
    desc.bufq_grid_dim_r, desc.bufq_grid_dim_c = blocking.grid_size
    desc.bufq_num_slots = queue.entries
    desc.ublock_rt, desc.ublock_ct = blocking.ublock
    desc.mblock_m, desc.mblock_n = blocking.mblock
    desc.tile_height, desc.tile_width = blocking.tile_dim
    desc.t = blocking.t
    desc.input_count = queue.input_count & 0xFFFFFFFF
    df = "Float32" if ideal and not is_raw(queue.df) else queue.df
    desc._data_format = format_value(df)  # pyright: ignore[reportPrivateUsage]
    if backend == BackendType.Golden:
        desc.bufq_start_addr_channel = [(0, 0)] * blocking.cells
    else:
        desc.bufq_start_addr_channel = [(buffer.address, buffer.channel) for buffer in queue.buffers]
    desc.bufq_entry_size = entry_bytes(queue, netlist.arch, has_tile_headers(queue, netlist.ops))
    desc.io_type = IOType.RandomAccess if queue.is_ram else IOType.Queue
    desc.backend_type = backend
    desc.layout = IOLayout.Flat if queue.layout == "flat" else IOLayout.Tilized
    desc._pickling = pickling  # pyright: ignore[reportPrivateUsage]
    return desc
