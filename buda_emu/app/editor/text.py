"""One open text: its tree, names, netlist and findings, made on demand."""

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from buda_emu.app.editor.names import Names
from buda_emu.app.editor.tree import Tree, TreeReader
from buda_emu.netlist.build import check_in_steps
from buda_emu.netlist.fixes import apply_fixes, attach_fixes
from buda_emu.netlist.ignores import drop_ignored
from buda_emu.netlist.load import has_ignores
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.variants import template_findings
from buda_emu.netlist.yaml_reader import split_lines
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.result import Steps
from buda_emu.support.garbage import no_collections

Checked: TypeAlias = tuple[Netlist | None, list[Diagnostic]]


class OpenText:
    """A version of a text. `last`: the netlist of an earlier version, for what this one, which is broken, cannot
    say."""

    def __init__(self, text: str, path: str, reader: TreeReader, last: Netlist | None = None) -> None:
        self.text = text
        self.path = path
        self._reader = reader
        self._last = last
        self._steps = self._check_steps()
        self._done: Checked | None = None

    @cached_property
    def lines(self) -> list[str]:
        """As YAML counts them."""
        return split_lines(self.text)

    @cached_property
    def tree(self) -> Tree:
        """As far as it can be read."""
        with no_collections():
            return self._reader.read(self.text)

    @cached_property
    def names(self) -> Names:
        """All names and their places."""
        with no_collections():
            return Names(self.tree.root)

    def check(self, seconds: float) -> bool:
        """Go on with the check for about so long; whether more is left to do. No later version may be read meanwhile:
        it moves the nodes that both share."""
        until = time.monotonic() + seconds
        with no_collections():
            while self._done is None:
                try:
                    next(self._steps)
                except StopIteration as end:
                    self._done = end.value
                else:
                    if time.monotonic() > until:
                        return True
        return False

    @property
    def _checked(self) -> Checked:
        self.check(math.inf)
        assert self._done is not None
        return self._done

    def _check_steps(self) -> Steps[Checked]:
        if self.tree.problem is not None:
            found = template_findings(self.text, self.path, None) or [self.tree.problem.diagnostic(self.path)]
            return None, found
        placeholders = template_findings(self.text, self.path, self.tree.root)
        if placeholders:
            return None, placeholders
        yield
        self._reader.kept.next()
        netlist, found = yield from check_in_steps(self.tree.root, self.path, None, False, self._reader.kept)
        if has_ignores(self.text):
            found = drop_ignored(found, self.lines, self.path)
        return netlist, sorted(dict.fromkeys(found), key=lambda item: (item.line, item.column, item.rule))

    @property
    def findings(self) -> list[Diagnostic]:
        """What the checker finds, without fixes."""
        return self._checked[1]

    @property
    def known_netlist(self) -> Netlist | None:
        """The same without waiting for a check that is not done."""
        return (self._done[0] if self._done is not None else None) or self._last

    @property
    def netlist(self) -> Netlist | None:
        """What the text loads as, be it with errors; of a text that cannot be read what an earlier one did."""
        self.check(math.inf)
        return self.known_netlist

    @cached_property
    def fixable(self) -> tuple[Diagnostic, ...]:
        """The findings with their fixes."""
        with no_collections():
            return tuple(attach_fixes(self.findings, self.text))

    def after_safe_fixes(self) -> str:
        """The text after all of them; itself where there is none."""
        reader = TreeReader()

        def check(text: str) -> Sequence[Diagnostic]:
            return self.fixable if text == self.text else OpenText(text, self.path, reader).fixable

        return apply_fixes(self.text, check).text

    def with_text(self, text: str) -> "OpenText":
        """The same with another text of as many lines, where the check of this one is done."""
        return OpenText(text, self.path, self._reader, self._last)
