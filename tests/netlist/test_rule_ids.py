import re
from pathlib import Path

import buda_emu.netlist
from buda_emu.netlist.rules import RULES

ROOM = Path(buda_emu.netlist.__file__).parent


def test_every_rule_that_reading_reports_is_in_the_catalogue() -> None:
    files = [path for path in ROOM.rglob("*.py") if "rules" not in path.relative_to(ROOM).parts]
    used = {rule for path in files for rule in re.findall(r'"(V\d{3})"', path.read_text(encoding="utf-8"))}
    assert len(used) > 30
    assert used - set(RULES) == set()
