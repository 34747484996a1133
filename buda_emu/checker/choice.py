"""Selects which findings are reported, and which of them are errors."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """Ids of rules, or their beginnings.

    `select`: only these, all where it is empty; `ignore`: not these; `error`: these are errors. What refuses a document
    is told in any case.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    error: tuple[str, ...] = ()

    def applied(self, found: Iterable[Diagnostic], refuses: Callable[[str], bool]) -> list[Diagnostic]:
        """The findings that are told. `refuses`: whether a rule's findings are errors even where nobody is strict."""
        if not (self.select or self.ignore or self.error):
            return list(found)
        return [
            replace(item, severity="error") if _begins(item.rule, self.error) else item
            for item in found
            if refuses(item.rule)
            or ((not self.select or _begins(item.rule, self.select)) and not _begins(item.rule, self.ignore))
        ]


def _begins(rule: str, beginnings: Iterable[str]) -> bool:
    return any(rule.startswith(word) for word in beginnings)
