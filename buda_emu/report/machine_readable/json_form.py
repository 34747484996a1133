"""Results as plain data for JSON files (schemas/report.schema.json)."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from buda_emu.report.machine_readable.strict import strict
from buda_emu.support.version import RESULT_VERSION
from buda_emu.testing.verify.result import TestRun


def as_json(run: TestRun) -> dict[str, Any]:
    """Return every field of the results, in their order. Figures that are not finite become null: strict JSON has
    none.

    Equal runs give equal data but for the fields named `seconds` and `from_cache`.
    """
    return {"schema_version": RESULT_VERSION, **_plain(run)}


def _plain(value: Any) -> Any:
    """Return dataclasses, arrays and their contents as plain data; figures that are not finite become None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {element.name: _plain(getattr(value, element.name)) for element in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(element) for key, element in value.items()}  # type: ignore[misc]  # plain at run time
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]  # type: ignore[misc]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())  # type: ignore[misc]
    return strict(value)
