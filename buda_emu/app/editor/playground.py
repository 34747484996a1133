"""One open text in a web page (docs/playground): what the page asks, and the answers as JSON.

The page runs this in the browser's own Python, which has neither numpy nor compiled modules; only `cycles` needs numpy.
"""

import json
from dataclasses import asdict
from typing import Any, Final

from buda_emu.app.api.diff import compare
from buda_emu.app.documents.kinds import rule_kind
from buda_emu.app.editor.completion import complete
from buda_emu.app.editor.hover import hover
from buda_emu.app.editor.picture import picture_at
from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import UnreadableError
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.errors import BudaError
from buda_emu.support.version import __version__

METHODS: Final = ("open", "check", "complete", "hover", "format", "fix", "picture", "diff", "explain", "cycles")
"""Methods of a session that a page may call."""


class PlaygroundSession:
    """The text of a page, with the findings of its newest version and the picture of its last one without errors."""

    def __init__(self) -> None:
        self._reader = TreeReader()
        self._text = OpenText("", "netlist.yaml", self._reader)
        self._sound: Netlist | None = None

    def answer(self, method: str, arguments: str) -> str:
        """Call one of `METHODS` with the arguments of a JSON list and return JSON: `{"result": ...}`, or `{"error":
        ...}` with the message of a BudaError. Raises ValueError for any other method."""
        if method not in METHODS:
            raise ValueError(f"no method {method!r}")
        try:
            content = {"result": getattr(self, method)(*json.loads(arguments))}
        except BudaError as error:
            content = {"error": str(error)}
        return json.dumps(content)

    def open(self, source: str, path: str) -> dict[str, Any]:
        """Replace the document by another one, check it, and return its findings."""
        self._reader = TreeReader()
        self._sound = None
        self._text = OpenText(source, path, self._reader)
        return self._note_and_report()

    def check(self, source: str) -> dict[str, Any]:
        """Replace the text by another version of the same document, check it, and return its findings."""
        if source != self._text.text:
            self._text = OpenText(source, self._text.path, self._reader, self._text.known_netlist)
        return self._note_and_report()

    def _note_and_report(self) -> dict[str, Any]:
        """Return the findings of the present text and the package's version as JSON data. If the netlist has no errors,
        it becomes the one that `picture` draws."""
        text = self._text
        findings = [_finding(finding) for finding in text.fixable]
        if text.netlist is not None and all(finding["severity"] != "error" for finding in findings):
            self._sound = text.netlist
        return {"findings": findings, "version": __version__}

    def complete(self, line: int, column: int) -> list[dict[str, Any]]:
        """Return what may be written before a place, which counts from 1."""
        return [asdict(offer) for offer in complete(self._text, line, column)]

    def hover(self, line: int, column: int) -> str:
        """Return the explanation of what stands at a place, as Markdown; "" if there is none."""
        return hover(self._text, line, column)

    def format(self) -> str:
        """Return the text in the layout of `buda-emu fmt`; a text that cannot be read stays, since its findings say
        why."""
        try:
            return format_text(self._text.text)
        except UnreadableError:
            return self._text.text

    def fix(self) -> str:
        """Return the text after all safe fixes."""
        return self._text.after_safe_fixes()

    def picture(self, line: int) -> dict[str, Any]:
        """Return the core grid of the epoch whose op is defined on `line` or last before it, as SVG, with the lines
        that define ops."""
        return picture_at(self._text, self._sound, line)

    def diff(self, before: str, name: str) -> dict[str, Any]:
        """Compare another text, called `name`, with this one, object by object. If one of them has errors, the result
        has only its name, under `refused`."""
        earlier = check_text(before, name).netlist
        present = check_text(self._text.text, self._text.path).netlist
        refused = [path for path, netlist in ((name, earlier), (self._text.path, present)) if netlist is None]
        if earlier is None or present is None:
            return {"refused": refused}
        return {"refused": [], **asdict(compare(earlier, present, name, self._text.path))}

    def explain(self, rule_id: str) -> dict[str, Any] | None:
        """Return what `buda-emu explain` says about a rule, or None where there is no such rule."""
        rules = rule_kind(rule_id).rules()
        rule = rules.rules.get(rule_id.upper())
        if rule is None:
            return None
        return {
            "id": rule.id,
            "summary": rule.summary,
            "stage": rules.stages.get(rule.stage, ""),
            "explanation": [" ".join(paragraph.split()) for paragraph in rule.explanation.split("\n\n") if paragraph],
            "fix": rule.fix,
        }

    def cycles(self) -> dict[str, Any]:
        """Return the modelled cycles of the text, which needs numpy. If the text has errors, the result has only its
        name, under `refused`."""
        from buda_emu.app.api.perf import perf

        netlist = check_text(self._text.text, self._text.path).netlist
        if netlist is None:
            return {"refused": [self._text.path]}
        result = perf(netlist)
        return {
            "refused": [],
            "chip": result.run.chip.title,
            "cycles": result.cycles,
            "seconds": result.seconds,
            "inputs_per_second": result.overall_inputs_per_second,
            "epochs": result.epoch_rows,
            "sentences": [epoch.bottleneck.sentence for epoch in result.epochs],
        }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    """Return the fields of a finding that a page shows, as JSON data."""
    fix = finding.fix
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "hint": finding.hint,
        "line": finding.line,
        "column": finding.column,
        "end_column": finding.end_column,
        "fix": asdict(fix) if fix is not None else None,
    }
