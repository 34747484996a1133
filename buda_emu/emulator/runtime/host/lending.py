"""Lets a machine's memory hold arrays by reference, instead of a copy of what the host pushed."""

from typing import Final

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.emulator.runtime.host.host_io import HostIo
from buda_emu.emulator.runtime.machine.memory import Channel, Memory
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.spec.formats import is_raw

SHARE_OF_LENT: Final = 4
"""Arrays by reference are read at once while all that is held is within one SHARE_OF_LENT-th of the limit."""
_OF_SHARE: Final = 8
"""An array is read at once only up to one _OF_SHARE-th of that share, as reading it takes as much memory once more."""


class Lender:
    """Lends arrays to the memory of one machine."""

    def __init__(self, netlist: Netlist, memory: Memory, host: HostIo) -> None:
        self._netlist = netlist
        self._memory = memory
        self._host = host

    def may_lend(self, channel: Channel, queue: Queue, array: Referenced) -> bool:
        """Return whether memory could hold this array by its reference: it fits, and no tilizer reads the rows of the
        host."""
        view = channel.view
        count = len(array) if array.ndim == 4 else 0
        fits = array.shape[1:] == queue.blocking.element_shape and 0 < count <= view.entries
        words = is_raw(queue.df) and array.dtype.kind not in "iu"
        tilized = channel.flat is not None and self._has_tilizer(queue)
        return fits and not words and view.name == view.store.name and not tilized

    def lend(self, channel: Channel, queue: Queue, array: Referenced) -> bool:
        """Hold an array by its reference, where the memory holds nothing yet; a small one is read at once while all
        that is held is within a share of the limit. Returns whether it is held."""
        view = channel.view
        count = len(array)
        memory = self._memory
        share = memory.limit // SHARE_OF_LENT
        size = view.store.slice_bytes(count * view.t)
        is_small = memory.held + size <= share and size <= share // _OF_SHARE
        if not view.store.lend(self._host.source(queue, array), count * view.t, self._host.label(queue)):
            return False
        if is_small:
            view.store.settle()
        else:
            memory.lends = True
        return True

    def _has_tilizer(self, queue: Queue) -> bool:
        """Return whether an op reads the rows as the host gave them."""
        readers = (op for op in self._netlist.ops.values() if queue.name in op.inputs)
        return any(op.has("reads what was pushed") for op in readers)
