"""The log of a campaign in its folder: one JSON object on each line, so that an interrupted campaign goes on.

The first line is the identity of the campaign (`buda_emu.support.identity`), each line after it an effect. A log of
another identity is refused, and so is a line that is no effect of this campaign: such a log would not be trustworthy.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from buda_emu.support.errors import HostError
from buda_emu.support.files import read_regular, write_file
from buda_emu.support.folder_lock import FolderLock
from buda_emu.support.identity import differences
from buda_emu.support.output_places import make_folder
from buda_emu.support.strict_json import parse, read_object
from buda_emu.testing.injection.result import Effect

LOG: Final = "faults.jsonl"
_MOST_BYTES: Final = 8 << 30
"""The largest log that is read: that of some ten million faults."""
_FIX: Final = "remove this line, and its fault is injected again; or give another folder"
_FIX_HEAD: Final = "give another folder, or remove this file"


class UnknownEffectError(HostError):
    """An error for an effect of an earlier run that is none of this campaign. `number` is the number of its fault."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"fault {number}: {reason}")
        self.number = number
        self.reason = reason


class CampaignLog:
    """The log in a folder, which is created if need be. `known` are the effects that earlier runs wrote.

    Raises HostError, which names file and line, for the log of another campaign and for a damaged line, and while
    another campaign writes to the folder. The last line
    of a run that was killed may be cut: it is left out.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.path = folder / LOG
        self._head: dict[str, Any] = json.loads(json.dumps(identity))  # as it is read back
        self._lines: dict[int, int] = {}
        make_folder(folder)
        self._lock = FolderLock(folder)  # held as long as this object is there
        self.known = self._read()
        records = [self._head, *(effect.as_json() for effect in self.known)]
        text = "".join(f"{json.dumps(record)}\n" for record in records)
        write_file(self.path, lambda stream: stream.write(text.encode()))

    def append(self, effects: Sequence[Effect]) -> None:
        """Write further effects to the end of the log. Raises OSError."""
        text = "".join(f"{json.dumps(effect.as_json())}\n" for effect in effects)
        with self.path.open("ab", buffering=0) as stream:
            stream.write(text.encode())

    def locate(self, error: UnknownEffectError) -> HostError:
        """Return a HostError that adds the file and line of the effect in this log to an error about it."""
        return HostError(f"{self.path}:{self._lines[error.number]}: {error}: {_FIX}")

    def _read(self) -> list[Effect]:
        """Return the effects of the log, each fault once; none without a log. Raises HostError for a log of another
        campaign, a damaged line, and lines that contradict each other."""
        data = b""
        if self.path.exists():
            data = read_regular(self.path, _MOST_BYTES)
        if not data:
            return []
        first, *lines = data.split(b"\n")
        if lines and not (lines[-1] and _is_json(lines[-1])):
            lines.pop()  # a line that was cut, or nothing after the last line feed
        head = read_object(first, f"{self.path}:1", "the first line of a campaign's log", _FIX_HEAD)
        if differs := differences(head, self._head):
            named = ", ".join(differs)
            raise HostError(f"{self.path} is of another campaign: it differs in {named}: {_FIX_HEAD}")
        effects: dict[int, Effect] = {}
        for number, line in enumerate(lines, 2):
            effect = self._parse_effect(line, f"{self.path}:{number}")
            if effects.setdefault(effect.fault.number, effect) != effect:
                earlier = self._lines[effect.fault.number]
                raise HostError(
                    f"{self.path}:{number}: line {earlier} says something else of fault {effect.fault.number}: {_FIX}"
                )
            self._lines.setdefault(effect.fault.number, number)
        return list(effects.values())

    @staticmethod
    def _parse_effect(line: bytes, place: str) -> Effect:
        """Parse the effect of a fault in a line. Raises HostError, with `place` (the line's file and number), for
        anything else."""
        content = read_object(line, place, "an effect of a fault", _FIX)
        try:
            return Effect.from_json(content)
        except ValueError as error:
            raise HostError(f"{place}: not an effect of a fault: {error}: {_FIX}") from None


def _is_json(line: bytes) -> bool:
    """Return whether a line is JSON."""
    try:
        parse(line)
    except ValueError:
        return False
    return True
