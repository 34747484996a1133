"""The rules of one kind of document, each declared once: id, severity, sentence, source, fix, function."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from buda_emu.checker.checks import Check, Checker, Finding, in_order
from buda_emu.checker.diagnostic import Diagnostic, Severity
from buda_emu.checker.place import Place
from buda_emu.checker.rule import Rule

F = TypeVar("F", bound=Callable[..., Iterable[Finding]])


class RuleBook:
    """A registry, filled while the files of a room are imported and only read afterwards.

    `kind` names the documents in messages, `prefix` begins the ids of the rules, `stages` explains their `stage`.
    """

    def __init__(self, kind: str, prefix: str, stages: Mapping[str, str] = MappingProxyType({})) -> None:
        self.kind = kind
        self.prefix = prefix
        self.stages = stages
        self._rules: dict[str, Rule] = {}
        self._checks: list[Check] = []
        self.rules: Mapping[str, Rule] = MappingProxyType(self._rules)
        """By id, in the order of declaration."""

    def add(self, rule: Rule) -> Rule:
        """Enter a rule. Raises ValueError for an id that is taken, or that does not begin with the prefix."""
        if rule.id in self._rules or not rule.id.startswith(self.prefix):
            raise ValueError(f"rule {rule.id} cannot be entered among the rules of a {self.kind}")
        self._rules[rule.id] = rule
        return rule

    def declare(
        self,
        id: str,
        severity: Severity,
        summary: str,
        *,
        why: str = "",
        wrong: str = "",
        right: str = "",
        source: str = "",
        fix: str = "",
        stage: str = "",
        strict: Severity | None = None,
    ) -> Rule:
        """Enter a rule without a function: what is found while a document is read. The fields are those of `Rule`."""
        return self.add(Rule(id, severity, summary, why, wrong, right, source, fix, stage, strict))

    def rule(
        self,
        id: str,
        severity: Severity,
        summary: str,
        *,
        basic: bool = False,
        unless: Iterable[str] = (),
        **fields: Any,
    ) -> Callable[[F], F]:
        """Decorator: enter a rule and the function that checks it; `fields` are the keywords of `declare`."""
        self.declare(id, severity, summary, **fields)
        return self.check(id, basic=basic, unless=unless)

    def check(self, id: str, *, basic: bool = False, unless: Iterable[str] = ()) -> Callable[[F], F]:
        """Decorator: one more function for a rule that was entered before (`Check` says what the keywords mean)."""

        def attach(function: F) -> F:
            self._checks.append(Check(self._rules[id], function, basic, frozenset(unless)))
            return function

        return attach

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check in the order of declaration."""
        return tuple(self._checks)

    def diagnostic(
        self, path: str, rule: str, place: Place, message: str, hint: str = "", *, strict: bool = False
    ) -> Diagnostic:
        """A finding of a reader. Without a hint it carries the rule's fix."""
        known = self._rules[rule]
        return Diagnostic.at(place, path, rule, known.at(strict), message, hint or known.fix)

    def run(
        self, *subject: Any, path: str = "", strict: bool = False, found: Iterable[Diagnostic] = ()
    ) -> list[Diagnostic]:
        """Every finding about a document, sorted by place; each check is called with `subject`.

        `found` are findings from reading. Basic checks come first; when one of them or of `found` is an error, the
        others are not run. A check is not run when a rule of its `unless` was broken by the document as a whole
        (`Finding.about` is None), and what it finds about something that broke such a rule is left out.
        """
        checker = Checker(path, strict, found)
        broken: dict[str, set[Hashable]] = {}
        for item in checker.found:
            broken.setdefault(item.rule, set()).add(None)
        for basic in (True, False):
            if checker.errors and not basic:
                break
            for check in in_order([item for item in self._checks if item.basic == basic]):
                silent = {about for rule in check.unless for about in broken.get(rule, ())}
                if None in silent:
                    continue
                for finding in check.run(*subject):
                    if finding.about is None or finding.about not in silent:
                        broken.setdefault(check.rule.id, set()).add(finding.about)
                        checker.report(check.rule, finding)
        return sorted(checker.found, key=lambda item: item.order)
