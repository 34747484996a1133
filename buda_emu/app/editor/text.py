"""One open text of the editor: its tree, names, netlist and findings, computed when they are first needed."""

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from buda_emu.app.editor.names import Names
from buda_emu.app.editor.tree import Tree, TreeReader
from buda_emu.netlist.build import check_in_steps
from buda_emu.netlist.fixes import apply_fixes, attach_fixes
from buda_emu.netlist.ignores import apply_ignores
from buda_emu.netlist.load import has_ignores
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.variants import template_findings
from buda_emu.netlist.yaml_reader import split_lines
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.result import Steps
from buda_emu.support.garbage import no_collections


def _place_order(finding: Diagnostic) -> tuple[int, int, str]:
    """Return the sort key that puts findings in the order of the text, and by rule at the same place."""
    return finding.line, finding.column, finding.rule


CheckResult: TypeAlias = tuple[Netlist | None, list[Diagnostic]]


class OpenText:
    """A version of a text. `last` is the netlist of an earlier version, which is used where none can be built from this
    version."""

    def __init__(self, text: str, path: str, reader: TreeReader, last: Netlist | None = None) -> None:
        self.text = text
        self.path = path
        self._reader = reader
        self._last = last
        self._steps = self._check_steps()
        self._done: CheckResult | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text as YAML counts them."""
        return split_lines(self.text)

    @cached_property
    def tree(self) -> Tree:
        """The YAML tree of the text, as far as it can be read."""
        with no_collections():
            return self._reader.read(self.text)

    @cached_property
    def names(self) -> Names:
        """All names of the text with their places."""
        with no_collections():
            return Names(self.tree.root)

    def check(self, seconds: float) -> bool:
        """Continue the check for about so many seconds, and return whether it is unfinished. No later version may be
        read before it is finished: that would move the nodes that both versions share."""
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
    def _check_result(self) -> CheckResult:
        """The netlist and the findings; the first access finishes the check."""
        self.check(math.inf)
        assert self._done is not None
        return self._done

    def _check_steps(self) -> Steps[CheckResult]:
        """Check the text in steps, between which the caller may stop. The result is the netlist, None if it could not
        be read, and the sorted findings; a text that is not valid YAML or has placeholders of a template gets the
        findings for that only."""
        if self.tree.problem is not None:
            findings = template_findings(self.text, self.path, None) or [self.tree.problem.diagnostic(self.path)]
            return None, findings
        placeholders = template_findings(self.text, self.path, self.tree.root)
        if placeholders:
            return None, placeholders
        yield
        self._reader.cache.next()
        netlist, findings = yield from check_in_steps(self.tree.root, self.path, None, False, self._reader.cache)
        if has_ignores(self.text):
            findings = apply_ignores(findings, self.lines, self.path)
        return netlist, sorted(dict.fromkeys(findings), key=_place_order)

    @property
    def findings(self) -> list[Diagnostic]:
        """The findings of the checker, without fixes, sorted by place; finishes the check."""
        return self._check_result[1]

    @property
    def known_netlist(self) -> Netlist | None:
        """The netlist of the text if its check is finished and could build one, else that of an earlier version; None
        if there is none. Never waits for a check."""
        if self._done is not None and self._done[0] is not None:
            return self._done[0]
        return self._last

    @property
    def netlist(self) -> Netlist | None:
        """The netlist of the text, even with errors, or that of an earlier version if the text cannot be read. Finishes
        the check."""
        self.check(math.inf)
        return self.known_netlist

    @cached_property
    def fixable(self) -> tuple[Diagnostic, ...]:
        """The findings with their fixes; finishes the check."""
        with no_collections():
            return tuple(attach_fixes(self.findings, self.text))

    def after_safe_fixes(self) -> str:
        """Return the text after all safe fixes; the same text if there are none."""
        reader = TreeReader()

        def check(text: str) -> Sequence[Diagnostic]:
            """Return the findings of a version of this text, without a second check for the text itself."""
            if text == self.text:
                return self.fixable
            return OpenText(text, self.path, reader).fixable

        return apply_fixes(self.text, check).text

    def with_text(self, text: str) -> "OpenText":
        """Return a version to try out, such as a completion put in; `text` must have as many lines as this one. Both
        share nodes that reading may move: finish the check of this one first."""
        return OpenText(text, self.path, self._reader, self._last)
