"""One open text: its tree, names, netlist and findings, made when they are asked for."""

from functools import cached_property

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.editor.names import Names
from buda_emu.editor.tree import Tree, TreeReader
from buda_emu.garbage import no_collections
from buda_emu.netlist.build import judge_tree
from buda_emu.netlist.ignores import without_ignored
from buda_emu.netlist.load import check_text, has_ignores
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.template import template_findings
from buda_emu.netlist.yaml_reader import split_lines


class OpenText:
    """A version of a text. `last`: the netlist of an earlier version, for what this one, which is broken, cannot
    say."""

    def __init__(self, text: str, path: str, reader: TreeReader, last: Netlist | None = None) -> None:
        self.text = text
        self.path = path
        self._reader = reader
        self._last = last

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
        return Names(self.tree.root)

    @cached_property
    def _judged(self) -> tuple[Netlist | None, list[Diagnostic]]:
        if self.tree.problem is not None:
            found = template_findings(self.text, self.path, None) or [self.tree.problem.diagnostic(self.path)]
            return None, found
        placeholders = template_findings(self.text, self.path, self.tree.root)
        if placeholders:
            return None, placeholders
        self._reader.kept.next()
        with no_collections():
            netlist, found = judge_tree(self.tree.root, self.path, None, False, self._reader.kept)
        if has_ignores(self.text):
            found = without_ignored(found, self.lines, self.path)
        return netlist, sorted(dict.fromkeys(found), key=lambda item: (item.line, item.column, item.rule))

    @property
    def findings(self) -> list[Diagnostic]:
        """What the checker finds, without fixes."""
        return self._judged[1]

    @property
    def netlist(self) -> Netlist | None:
        """What the text loads as, be it with errors; of a text that cannot be read what an earlier one did."""
        return self._judged[0] or self._last

    @cached_property
    def fixable(self) -> tuple[Diagnostic, ...]:
        """The findings with their fixes: takes as long as a whole check."""
        return check_text(self.text, self.path).diagnostics
