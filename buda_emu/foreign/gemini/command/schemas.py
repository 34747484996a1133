"""Schemas of the JSON that `buda-emu gemini` prints."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.foreign.gemini.command.running import COUNTED, EXECUTED, RUN
from buda_emu.foreign.gemini.compare import Comparison
from buda_emu.report.machine_readable.schema import columns_document
from buda_emu.support.columns import Columns

SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "gemini run": lambda: columns_document("Results of buda-emu gemini run --json", RUN),
    "gemini exec": lambda: columns_document("Results of buda-emu gemini exec --json", EXECUTED),
    "gemini stats": lambda: columns_document("Results of buda-emu gemini stats --json", COUNTED),
    "gemini diff": lambda: columns_document("Results of buda-emu gemini diff --json", Columns(Comparison)),
}
"""The schema of each verb's JSON."""
