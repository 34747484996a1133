"""Turn the hints of findings into edits of the netlist's text, and apply these edits."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from buda_emu.netlist.formatter import Span, read_spans
from buda_emu.netlist.yaml_reader import LINE_BREAK, UnreadableError
from buda_emu.netlist.yaml_text import word
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import Change, Edit, Fix, Proposal
from buda_emu.support.checker.fix import apply_fixes as apply_to_lines
from buda_emu.support.records import dataclass

_QUOTES: Final = ("'", '"')
_DASH: Final = re.compile(r" *- *\Z")
_BREAK: Final = re.compile(LINE_BREAK)


def attach_fixes(findings: Iterable[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the findings, with edits of the text attached to each whose hint says exactly what to change. Of a
    text that is no YAML, they are returned as they are.
    """
    findings = list(findings)
    if not any(isinstance(finding.hint, Proposal) for finding in findings):
        return findings
    try:
        places = _Places(text, findings)
    except UnreadableError:
        return findings
    result: list[Diagnostic] = []
    for finding in findings:
        if isinstance(finding.hint, Proposal):
            fix = places.fix(finding, finding.hint.change)
            result.append(replace(finding, hint=str(finding.hint), fix=fix))
        else:
            result.append(finding)
    return result


# ----------------------------------------------------------------------------------------------------- hint -> edits
@dataclass(frozen=True, slots=True)
class _Node:
    """A span and its position in the tree: part number `index` of the span of `above`."""

    span: Span
    above: "_Node | None"
    index: int

    @property
    def is_key(self) -> bool:
        """Return whether the node is a key of a map."""
        return self.above is not None and self.above.span.pairs and self.index % 2 == 0

    def beside(self, step: int) -> "_Node":
        """Return the node `step` parts further in the same map or list, such as the value of a key (step 1)."""
        assert self.above is not None
        return _Node(self.above.span.parts[self.index + step], self.above, self.index + step)


class _Places:
    """Index of the nodes of a netlist's text at which findings point.

    The methods `_replace`, `_put` and `_remove` return an edit as a triple: start index, end index and the text that
    replaces what stands between them."""

    def __init__(self, text: str, findings: Iterable[Diagnostic]) -> None:
        self._text = text
        self._line_starts = [0, *(match.end() for match in _BREAK.finditer(text))]
        self._by_start: dict[int, list[_Node]] = {}
        for finding in findings:
            for start in (self._start(finding.line, finding.column), self._start(*_elsewhere(finding))):
                if start >= 0:
                    self._by_start[start] = []
        for node in _walk(_Node(read_spans(text), None, 0)):
            if node.span.start in self._by_start:
                self._by_start[node.span.start].append(node)

    def _start(self, line: int, column: int) -> int:
        """Return the index in the text of the place in this line and column, or -1 if it is none in the text, such
        as line 0.
        """
        if 0 < line <= len(self._line_starts):
            return self._line_starts[line - 1] + column - 1
        return -1

    def fix(self, finding: Diagnostic, change: Change) -> Fix | None:
        """Return the fix that makes the change which a finding proposes, or None where the text has no exact place
        for it. A fix of a warning is never safe.
        """
        edits = self._edits(finding.line, finding.column, change)
        if not edits:
            return None
        safe = change.safe and finding.severity == "error"
        return Fix(str(finding.hint), safe, edits, self._edits(*_elsewhere(finding), change))

    def _edits(self, line: int, column: int, change: Change) -> tuple[Edit, ...]:
        """Return the edits that make a change at a place, none where the text has no exact place for it."""
        nodes = self._by_start.get(self._start(line, column), [])
        if not nodes:
            return ()
        edit_nodes = {"replace": self._replace, "put": self._put, "remove": self._remove}[change.kind]
        edit = edit_nodes(nodes, change)
        if edit is None:
            return ()
        start, end, new = edit
        return (Edit(*self._line_and_column(start), *self._line_and_column(end), new),)

    def _line_and_column(self, index: int) -> tuple[int, int]:
        """Return line and column, both from 1, of an index in the text."""
        line = bisect_right(self._line_starts, index)
        return line, index - self._line_starts[line - 1] + 1

    def _value(self, span: Span) -> str:
        """Return the text of the scalar in a span, without its quotes."""
        written = self._text[span.start : span.end]
        is_quoted = written[:1] in _QUOTES and written[-1:] == written[:1]
        return written[1:-1] if is_quoted else written

    def _replace(self, nodes: list[_Node], change: Change) -> tuple[int, int, str] | None:
        """Return the edit that replaces the word `change.key` at a place, or in the value that stands there; None
        unless that has exactly one such word. `nodes` are those that begin at the place, the outermost first.
        """
        node = nodes[-1]
        if node.is_key and self._value(node.span) != change.key:
            node = node.beside(1)
        spans = [
            inner.span
            for inner in _walk(node)
            if inner.span.kind == "scalar"
            and self._value(inner.span) == change.key
            and inner.span.end > inner.span.start
        ]
        if len(spans) != 1:
            return None
        return spans[0].start, spans[0].end, word(change.text)

    def _put(self, nodes: list[_Node], change: Change) -> tuple[int, int, str] | None:
        """Return the edit that sets a key of a map: in place of its value if the map has the key, else as a new
        entry. None without a map at the place, or for a value that is a block. `nodes` are those that begin there,
        the outermost first.
        """
        target = self._map_at(nodes)
        if not target.pairs:
            return None
        for key, value in zip(target.parts[::2], target.parts[1::2], strict=True):
            if self._value(key) == change.key:
                if value.kind in ("scalar", "flow"):
                    return (value.start, value.end, change.text)
                return None
        entry = f"{change.key}: {change.text}"
        if not target.parts:
            return target.end - 1, target.end - 1, entry
        first = target.parts[0]
        end = max(part.end for part in target.parts[-2:])
        if target.kind == "flow":
            return end, end, f", {entry}"
        return first.start, first.start, f"{entry}\n{' ' * first.column}"

    @staticmethod
    def _map_at(nodes: list[_Node]) -> Span:
        """Return the map at a place, the map that is the value of the key there, or the map around it. `nodes` are
        those that begin at the place, the outermost first.
        """
        node = nodes[-1] if nodes[-1].is_key else nodes[0]
        if node.is_key:
            value = node.beside(1)
            if value.span.pairs or node.above is None:
                node = value
            else:
                node = node.above
        elif not node.span.pairs and node.above is not None and node.above.span.pairs:
            node = node.above
        return node.span

    def _remove(self, nodes: list[_Node], _: Change) -> tuple[int, int, str] | None:
        """Return the edit that removes the entry of a map or list at a place, or None where it has no exact bounds, is
        the root, or holds what may be a comment.
        A map in a list whose only entry is removed goes as a whole, such as an instruction of a program.
        """
        node = _outermost_only_entry(nodes[-1])
        if node.above is None:
            return None
        above = node.above.span
        number = node.index // 2 if above.pairs else node.index
        start, end = _entry_range(above, number)
        if above.kind != "flow":
            return self._remove_lines(above, number)
        if number:
            start = _entry_range(above, number - 1)[1]
        elif _entry_count(above) > 1:
            end = _entry_range(above, 1)[0]
        # A comment in between may belong to a neighbour.
        return None if "#" in self._text[start:end] else (start, end, "")

    def _remove_lines(self, above: Span, number: int) -> tuple[int, int, str] | None:
        """Return the edit that removes the lines of entry `number` of the block `above`; None if another entry
        shares these lines or if it is the only entry.
        """
        start, end = _entry_range(above, number)
        first = bisect_right(self._line_starts, start) - 1
        last = bisect_right(self._line_starts, end) - 1
        before = self._text[self._line_starts[first] : start]
        if above.kind == "list":
            alone = _DASH.match(before)
        else:
            alone = not before.strip()
        if _entry_count(above) == 1 or not alone or last + 1 >= len(self._line_starts):
            return None
        return self._line_starts[first], self._line_starts[last + 1], ""


def _elsewhere(finding: Diagnostic) -> tuple[int, int]:
    """Return line and column of the second place at which a finding's change could be made instead of at the finding,
    (0, 0) if it names none."""
    if isinstance(finding.hint, Proposal) and finding.hint.change.elsewhere is not None:
        return finding.hint.change.elsewhere
    return 0, 0


def _outermost_only_entry(node: _Node) -> _Node:
    """Return the map in a list that goes as a whole because the node is its only entry, repeatedly outwards; else the
    node."""
    while node.above is not None:
        above = node.above
        parts_of_entry = 2 if above.span.pairs else 1
        if len(above.span.parts) != parts_of_entry or above.above is None or above.above.span.kind != "list":
            break
        node = above
    return node


def _walk(node: _Node) -> Iterator[_Node]:
    """Yield a node and all nodes in it, each before its parts."""
    yield node
    for index, part in enumerate(node.span.parts):
        yield from _walk(_Node(part, node, index))


def _entry_count(span: Span) -> int:
    """Return the number of entries of a list or map."""
    if span.pairs:
        return len(span.parts) // 2
    return len(span.parts)


def _entry_range(span: Span, number: int) -> tuple[int, int]:
    """Return start and end index of entry `number` of a list or map."""
    if not span.pairs:
        return span.parts[number].start, span.parts[number].end
    key, value = span.parts[2 * number : 2 * number + 2]
    return key.start, max(key.end, value.end)


# ---------------------------------------------------------------------------------------------------- edits -> text
Check = Callable[[str], Sequence[Diagnostic]]
_READ: Final = 20_000_000  # characters that are checked, a few seconds of work


@dataclass(frozen=True, slots=True)
class FixResult:
    """A text after its fixes, the findings that they removed, and those that are left."""

    text: str
    removed: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]


def apply_fixes(text: str, check: Check, *, unsafe: bool = False) -> FixResult:
    """Apply the fixes of the findings that `check` reports for a text, the unsafe ones only if `unsafe` is set.

    A fix is accepted when its finding is gone afterwards and a text that had no error still has none. All fixes are
    tried together first, then one by one; unsafe fixes that only delete text are tried last, when no other fix or error
    is left. At most 20 checks follow the first, more for short texts (about `_READ` characters in all)."""
    findings = tuple(check(text))
    checks_left = max(20, _READ // max(len(text), 1))
    removed: list[Diagnostic] = []
    tried: set[tuple[str, str]] = set()
    chosen: dict[tuple[str, str], bool] = {}
    while True:
        fixable = [finding for finding in findings if finding.fix is not None and (finding.fix.safe or unsafe)]
        untried = [finding for finding in fixable if _identity(finding) not in tried]
        candidates = _without_early_deletions(findings, untried)
        if not candidates:
            return FixResult(text, tuple(removed), findings)
        for index, finding in enumerate(candidates):
            identity = _identity(finding)
            if finding.fix is not None and finding.fix.alternative and identity not in chosen and checks_left > 2:
                checks_left -= 2
                chosen[identity] = _is_alternative_better(text, finding, check)
            if chosen.get(identity):
                candidates[index] = _with_alternative(finding)
        for batch in (candidates, *([finding] for finding in candidates)):
            if not checks_left:
                return FixResult(text, tuple(removed), findings)
            checks_left -= 1
            new_text, fixed_findings = _apply(text, batch)
            new_findings = tuple(check(new_text))
            if fixed_findings and _is_better(findings, new_findings, fixed_findings):
                text = new_text
                findings = new_findings
                removed += fixed_findings
                break
            if len(batch) == 1:
                tried.add(_identity(batch[0]))


def _without_early_deletions(findings: Sequence[Diagnostic], candidates: list[Diagnostic]) -> list[Diagnostic]:
    """Return those of the candidates to try now. An error that is left may be the reason why a part of the netlist
    seems superfluous, so what only deletes, and is not safe, comes last.
    """
    others = [finding for finding in candidates if not _is_unsafe_deletion(finding)]
    if others or any(finding.severity == "error" and not _is_unsafe_deletion(finding) for finding in findings):
        return others
    return candidates


def _is_unsafe_deletion(finding: Diagnostic) -> bool:
    """Return whether a finding has a fix that is not safe and only deletes text."""
    fix = finding.fix
    return fix is not None and not fix.safe and not any(edit.text for edit in fix.edits)


def _is_alternative_better(text: str, finding: Diagnostic, check: Check) -> bool:
    """Return whether the alternative edits of a fix leave fewer errors than the fix itself, or as many and fewer
    findings."""
    remaining: list[tuple[int, int]] = []
    for candidate in (finding, _with_alternative(finding)):
        findings = check(_apply(text, [candidate])[0])
        remaining.append((sum(left.severity == "error" for left in findings), len(findings)))
    return remaining[1] < remaining[0]


def _with_alternative(finding: Diagnostic) -> Diagnostic:
    """Return a finding whose fix has its alternative edits in place of the others."""
    if finding.fix is None:
        return finding
    return replace(finding, fix=replace(finding.fix, edits=finding.fix.alternative))


def _apply(text: str, findings: Sequence[Diagnostic]) -> tuple[str, list[Diagnostic]]:
    """Return the text with the fixes of findings applied, and the findings whose fixes did not overlap another."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    lines = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    by_fix = {id(finding.fix): finding for finding in findings}
    new_text, fixes = apply_to_lines(lines, [finding.fix for finding in findings if finding.fix is not None])
    return new_text, [by_fix[id(fix)] for fix in fixes]


def _identity(finding: Diagnostic) -> tuple[str, str]:
    """Return rule and message of a finding without line numbers, which are equal before and after an edit elsewhere."""
    return finding.rule, re.sub(r"line \d+", "line", finding.message)


def _is_better(before: Sequence[Diagnostic], after: Sequence[Diagnostic], fixed_findings: Sequence[Diagnostic]) -> bool:
    """Return whether a text with the findings `after` in place of `before` is better: every fixed finding is gone,
    and no error is new to a text that had none.
    """
    counts_before = Counter(map(_identity, before))
    counts_after = Counter(map(_identity, after))
    fixed_counts = Counter(map(_identity, fixed_findings))
    if any(counts_after[name] > counts_before[name] - count for name, count in fixed_counts.items()):
        return False
    had_error = any(finding.severity == "error" for finding in before)
    has_error = any(finding.severity == "error" for finding in after)
    return had_error or not has_error
