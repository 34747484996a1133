"""Results as plain data for JSON files (schemas/report.schema.json)."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from buda_emu.report.terminal.case_columns import TABLES
from buda_emu.support.strict_json import strict
from buda_emu.support.version import RESULT_VERSION
from buda_emu.testing.verify.result import INLINED, TestRun


def as_json(run: TestRun) -> dict[str, Any]:
    """Return every field of the results, in their order. Figures that are not finite become null: strict JSON has
    none.

    Equal runs give equal data but for the fields named `seconds` and `from_cache`.
    """
    return {"schema_version": RESULT_VERSION, **_plain(run)}


def _record_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record as plain data; those of records in it that are declared as inlined, and the columns
    of its table, stand among them."""
    content: dict[str, Any] = {}
    for element in fields(record):
        value = _plain(getattr(record, element.name))
        if element.metadata == INLINED:
            content |= value
        else:
            content[element.name] = value
    if type(record) in TABLES:
        for column in TABLES[type(record)].seen_in("json"):
            if column.key not in content:
                content[column.key] = _plain(column.get(record))
    return content


def _plain(value: Any) -> Any:
    """Return a value as plain data: dataclasses become dicts, arrays and tuples become lists, figures that are not
    finite None."""
    if is_dataclass(value) and not isinstance(value, type):
        return _record_fields(value)
    if isinstance(value, dict):
        return {str(key): _plain(element) for key, element in value.items()}  # type: ignore[misc]  # plain at run time
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]  # type: ignore[misc]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())  # type: ignore[misc]
    return strict(value)
