"""Netlist templates: files whose `$TEMPLATE_name` places still have to be filled in (CENSUS 2)."""

import re

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.netlist.nodes import Mapping, Node, Scalar

MARK = "$TEMPLATE_"
_NAME = re.compile(r"\$TEMPLATE_\w*")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def template_findings(text: str, path: str, root: Node | None) -> list[Diagnostic]:
    """One finding that names the placeholders, if there are any outside comments; `root` is None for a broken text.

    Comments may speak of placeholders: rendered templates often keep them there.
    """
    if MARK not in text:
        return []
    names: dict[str, None] = {}
    first = (0, 0)
    for number, line in enumerate(text.splitlines(), 1):
        if MARK not in line:
            continue
        for match in _NAME.finditer(_COMMENT.sub("", line)):
            first = first if names else (number, match.start() + 1)
            names[match[0]] = None
    if not names or (root is not None and not _used(root)):
        return []
    listed = ", ".join(list(names)[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    message = f"this is a template, not a netlist: {listed} must be filled in"
    line, column = first
    return [Diagnostic(path, "V000", "error", message, line, column, column + len(next(iter(names))))]


def _used(root: Node) -> bool:
    """Whether a key or value of the tree holds a placeholder."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            if MARK in node.text:
                return True
            continue
        children = [part for pair in node.pairs for part in pair] if isinstance(node, Mapping) else node.items
        for child in children:
            if id(child) not in seen:  # aliases
                seen.add(id(child))
                waiting.append(child)
    return False
