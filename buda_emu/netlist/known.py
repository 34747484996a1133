"""Which files of a folder are netlists: YAML files with sections of one."""

import re
from typing import Final

_NAMES: Final = (".yaml", ".yml")
_SECTION: Final = re.compile(rb"^(devices|queues|graphs|programs)[ \t]*:", re.MULTILINE)
_MOST_BYTES: Final = 16 << 20  # larger files are not netlists, and some have no end
_LEAST_SECTIONS: Final = 2  # other YAML files are something else


def looks_like_netlist(path: str) -> bool:
    """Whether a file found in a folder is one. A YAML file that cannot be read is: let who opens it say why."""
    return path.endswith(_NAMES) and holds_sections(path)


def holds_sections(path: str) -> bool:
    """Whether a file has the sections of one, whatever it is called; True where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than all of this
            data = file.read(_MOST_BYTES)
    except OSError:
        return True
    return len({match[1] for match in _SECTION.finditer(data)}) >= _LEAST_SECTIONS
