"""Does the machine have room for a run? Asked before anything is computed (docs/run/memory.md)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from math import prod

from buda_emu.device.host_memory import SHARE, default_memory_limit, size_text
from buda_emu.device.store import TILE_ELEMENTS
from buda_emu.errors import ProgramError, UnsupportedError
from buda_emu.formats.stored import stored_tile_bytes
from buda_emu.netlist.model import Netlist, Program, Queue
from buda_emu.runtime.host.exchange import PART_BYTES
from buda_emu.runtime.host.lending import SHARE_OF_LENT
from buda_emu.verify.inputs.entries import Walked, walked
from buda_emu.verify.inputs.known_queues import NOTHING_KNOWN, KnownQueues

_NAMED = 3  # queues that the error names
_ENTRY_COPIES = 5  # of an entry: made up as float64, as float32, as tiles, as the host's element type


def foreseen(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> Walked | None:
    """What these programs are going to do; None when they fail without data already: the run says it with more.

    Raises ProgramError for more instructions than a run may take: that is said before the work, not after it.
    """
    try:
        return walked(netlist, programs, parameters)
    except ProgramError as error:
        if error.kind == "limit":
            raise
        return None


def require_memory(
    netlist: Netlist,
    steps: Walked | None,
    limit: int | None,
    *,
    machines: int = 1,
    rams: bool = True,
    as_bits: bool = False,
    beside: int = 0,
    known: KnownQueues = NOTHING_KNOWN,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """The limit for each of `machines` that run at once, in bytes; `limit` None: a share of what is available now.

    Raises UnsupportedError when queues and rams alone are going to hold more: what cannot run to its end does not
    start. `rams`: host-fed rams are filled. `as_bits`: they hold the bits of their formats (precision "device").
    `beside`: bytes of host copies of input files. `tell` is given what is going to be held, in words.
    """
    each = (default_memory_limit() if limit is None else limit) // machines
    needed = bytes_held(netlist, steps, known.filled, rams=rams, as_bits=as_bits) if steps is not None else {}
    beside += _entry_copies(netlist, known.lent | known.between)
    apart = {name: needed.pop(name) for name in known.lent if name in needed}
    if apart:
        most = sum(apart.values())
        needed["parameters in the image's file"] = min(most, each // SHARE_OF_LENT + sum(nlargest(2, apart.values())))
    total = sum(needed.values()) + beside
    whole = f" for each of {machines} machines side by side" if machines > 1 else ""
    whose = f" ({SHARE:.0%} of the memory that is available now)" if limit is None else ""
    copies = f" and {size_text(beside)} of host copies beside them" if beside else ""
    words = (
        f"this run holds at least {size_text(total - beside)} in queues and rams{copies}, the memory limit{whole} is "
        f"{size_text(each)}{whose}"
    )
    if total > each:
        largest = sorted(needed, key=lambda name: -needed[name])[:_NAMED]
        named = ", ".join(f"{name} {size_text(needed[name])}" for name in largest)
        fix = "Give smaller parameters, or a higher limit (--memory-limit)"
        raise UnsupportedError(f"{words}. The largest: {named}. {fix}")
    tell(words)
    return each


def bytes_held(
    netlist: Netlist, steps: Walked, filled: Collection[str] = (), *, rams: bool = True, as_bits: bool = False
) -> dict[str, int]:
    """Bytes of tiles that each queue and ram holds at least when these steps are done.

    A host-fed queue: the entries that are read. A host-fed ram: all, where `rams` or it is `filled`. An op-fed queue:
    the entries that its graph writes, at most what it holds; a ram one of them. Static rams on the same buffers are
    one (NETLIST 1.10).
    """
    owner = {op.name: graph.name for graph in netlist.graphs.values() for op in graph.ops}
    dynamic = netlist.dynamic
    found: dict[object, tuple[int, str]] = {}
    for queue in netlist.queues.values():
        shared = queue.is_ram and queue.name not in dynamic
        place = (queue.target_device, queue.loc, queue.buffers) if shared else queue.name
        count = _entries(queue, steps, owner, rams or queue.name in filled) * entry_bytes(queue, as_bits=as_bits)
        found[place] = max(found.get(place, (0, queue.name)), (count, queue.name))
    return {name: count for count, name in found.values()}


def _entry_copies(netlist: Netlist, apart: Collection[str]) -> int:
    """Bytes of host copies of the largest entry while it goes in or out: what is smaller goes in parts. `apart`: queues
    that go in parts in any case, or not at all."""
    largest = max((entry_bytes(queue) for queue in netlist.queues.values() if queue.name not in apart), default=0)
    return max(0, largest - PART_BYTES) * _ENTRY_COPIES


def entry_bytes(queue: Queue, *, as_bits: bool = False) -> int:
    """Bytes of one entry as it is held: float32 tiles of 32x32, or the bits of the queue's format."""
    return prod(queue.blocking.shape) * (stored_tile_bytes(queue.df) if as_bits else TILE_ELEMENTS * 4)


def _entries(queue: Queue, steps: Walked, owner: Mapping[str, str], rams: bool) -> int:
    if queue.host_fed:
        return steps.entries.get(queue.name, 0) if not queue.is_ram else queue.entries if rams else 0
    written = steps.graph_inputs.get(owner.get(queue.input, ""), 0)
    return min(written, 1 if queue.is_ram else queue.entries)
