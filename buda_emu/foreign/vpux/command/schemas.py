"""Schemas of the JSON that `buda-emu vpux` prints."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.foreign.vpux.command.reading import LAYOUT
from buda_emu.foreign.vpux.command.running import RUN, ArgumentBuffer
from buda_emu.foreign.vpux.serialized import Serialized
from buda_emu.report.machine_readable.schema import columns_document, document

SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "vpux run": lambda: columns_document("Results of buda-emu vpux run --json", RUN),
    "vpux args": lambda: document("Results of buda-emu vpux args --json", arguments=list[ArgumentBuffer]),
    "vpux serialize": lambda: document("Results of buda-emu vpux serialize", Serialized),
    "vpux layout": lambda: columns_document("Results of buda-emu vpux layout --json", LAYOUT),
}
"""The schema of each verb's JSON."""
