"""What is known of a netlist's queues from its image, before a run."""

from typing import Final

from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class KnownQueues:
    """Names of queues that a run does not treat as others: `filled` from the start, with an image's constants and
    parameters; `lent`: those of them that stay in the image's file as far as they take more than their share of the
    limit, of which two are in memory at a time; `between`: not read out."""

    filled: frozenset[str] = frozenset()
    lent: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()


NOTHING_KNOWN: Final = KnownQueues()
"""Of a netlist without an image."""
