"""The tables of facts as they are: everything derives from them, so a slip in one is a slip everywhere.

`python tests/spec/test_tables.py` writes them anew, after a change that is meant.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import FULL_TILE, LEGAL_TILE_DIMS
from buda_emu.spec.devices import DEVICES, device
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.test_config import Stimulus

KEPT = Path(__file__).with_name("tables.txt")


def tables() -> Iterator[str]:
    """One fact, or one row of them, in each line."""
    yield f"tiles: {FULL_TILE} {LEGAL_TILE_DIMS}"
    for rows in (ARCHS, FORMATS, OP_TYPES, {name: device(name) for name in DEVICES}):
        yield from (f"{name}: {row}" for name, row in rows.items())
    for kind in (Attributes, Stimulus):
        yield from (f"{kind.__name__}.{item.name}: {item.default!r}" for item in fields(kind))


def test_the_tables_are_those_of_today() -> None:
    """A new op type needs no row: the script writes it the next time that it runs."""
    rows = KEPT.read_text(encoding="utf-8").splitlines()
    names = {row.partition(":")[0] for row in rows}
    assert [row for row in tables() if row.partition(":")[0] in names or ": OpType(" not in row] == rows


if __name__ == "__main__":
    KEPT.write_text("\n".join(tables()) + "\n", encoding="utf-8")
