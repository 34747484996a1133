"""What a case is: an edit of a valid netlist that breaks one rule alone, and one that nearly does."""

import re
from dataclasses import dataclass

from buda_emu.netlist.load import check_text
from buda_emu.support.checker.diagnostic import Diagnostic

Edit = tuple[str, str, str]
"""(key of the line, old, new). The line is the first one that starts with `key:`; "" is the whole text."""


@dataclass(frozen=True)
class Case:
    """`where` is the text that the finding underlines. Without `near` the base itself is the near miss."""

    rule: str
    base: str
    broken: tuple[Edit, ...]
    where: str
    near: tuple[Edit, ...] = ()
    arch: str = "wormhole_b0"

    def findings(self, edits: tuple[Edit, ...]) -> tuple[Diagnostic, ...]:
        """What a check finds in the edited base."""
        return check_text(edited(self.base, edits), "net.yaml", self.arch).diagnostics


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """The text after all edits, in order."""
    for key, old, new in edits:
        start, end = 0, len(text)
        if key:
            line = re.search(rf"^[ -]*{re.escape(key)}: .*$", text, re.MULTILINE)
            assert line is not None, key
            start, end = line.span()
        assert old in text[start:end], (key, old)
        text = text[:start] + text[start:end].replace(old, new, 1) + text[end:]
    return text


def underlined(finding: Diagnostic) -> str:
    """The text of the file that a finding points at."""
    return finding.source_line[finding.column - 1 : finding.end_column - 1]
