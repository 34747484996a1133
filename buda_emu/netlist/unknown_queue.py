"""The message about a name that is no queue or ram of a netlist."""

from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.support.checker.suggest import nearest, rank_words
from buda_emu.support.errors import HostError

_MOST: Final = 12
"""Names that a message lists."""


def no_queue(netlist: Netlist, name: object) -> HostError:
    """Return the error about a name that is no queue or ram of a netlist: those that were probably meant, or else the
    first of all; an op of that name is told apart."""
    queues = netlist.queues
    if isinstance(name, str) and name in netlist.ops:
        fed_queues = [queue.name for queue in queues.values() if queue.input == name]
        place = f"its result is in {', '.join(fed_queues)}" if fed_queues else "its result goes to other ops"
        return HostError(f"no queue {name!r}: that is an op, and {place}; buda_emu.debug and listeners see any op's")
    names: list[str] = []
    if isinstance(name, str):
        meant = nearest(name, queues)
        names = [meant] if meant else rank_words(name, queues)
    if names:
        return HostError(f"no queue {name!r}; did you mean {', '.join(names)}?")
    listed = list(queues)[:_MOST]
    if len(queues) > len(listed):
        listed.append(f"and {len(queues) - len(listed)} more")
    return HostError(f"no queue {name!r}; queues: {', '.join(listed)}")
