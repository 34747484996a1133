"""Checks: functions that find where a rule is broken, run so that one defect gives one rule."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from buda_emu.support.checker.diagnostic import Diagnostic, Place, Severity
from buda_emu.support.checker.rule import Rule
from buda_emu.support.records import dataclass

MAX_SEARCHES = 50
"""How many findings get a hint that searches all names: a document where everything is wrong stays quick."""


MAX_FINDINGS = 1000
"""So many are told of a document, or of a section of it, and then no more is looked for."""
TOO_MANY = "there are more than {:,} findings: nothing after this one is looked for"


class TooManyFindingsError(Exception):
    """The document is nothing by any measure: reading or judging it stops. Never leaves the room of its kind.

    `last`: the finding that says so, in the place of what was found next."""

    def __init__(self, last: Diagnostic) -> None:
        super().__init__(last.message)
        self.last = last


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check yields: where, what is wrong (without the object's name), what to do about it.

    A hint that takes a search through all names is a function, which is called for the first few findings only.
    """

    place: Place
    message: str
    hint: str | Callable[[], str] = ""
    within: str = ""
    """The part of the object that it is about, as it is named in the message: `op s4` of a fused op."""
    about: Hashable = None
    """What a check of the whole document speaks of here: rules that have this one in `unless` keep silent about it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a rule.

    `basic` ones run first: what fails one is not looked at further (no follow-on findings). `unless`: rules that say
    the same more exactly; the check is skipped where one of them was broken. `kinds`: of objects that it looks at.
    """

    rule: Rule
    run: Callable[..., Iterable[Finding]]
    basic: bool = False
    unless: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None


def in_order(checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks so that each comes after those whose findings make it superfluous, else as they were given."""
    makers: dict[str, list[Check]] = {}
    for check in checks:
        makers.setdefault(check.rule.id, []).append(check)
    ranks: dict[str, int] = {}

    def rank(rule: str) -> int:
        if rule not in ranks:
            ranks[rule] = 0  # a circle of rules ends here
            others = {other for check in makers[rule] for other in check.unless if other in makers}
            ranks[rule] = max((rank(other) + 1 for other in others), default=0)
        return ranks[rule]

    return tuple(sorted(checks, key=lambda check: rank(check.rule.id)))


class Checker:
    """Turns what checks find into diagnostics of one document; `found` has them in the order of finding. `most`: how
    many errors are enough, None for no limit."""

    def __init__(
        self,
        path: str,
        strict: bool = False,
        found: Iterable[Diagnostic] = (),
        read: Set[str] = frozenset(),
        most: int | None = None,
    ) -> None:
        """`read`: ids of rules that reading found broken somewhere in the document. What a check with one of them in
        its `unless` finds is left out; its object counts as broken all the same."""
        self.path = path
        self.strict = strict
        self.read = read
        self.found = list(found)
        self.errors = any(item.severity == "error" for item in self.found)
        self._left = most  # errors that may still come
        self._seen: set[tuple[str, Place, str]] = set()
        self._searches = 0

    def check(self, checks: Iterable[Check], *subject: Any, name: str = "") -> Set[str]:
        """Hold one object, by its name in messages, against checks `in_order`; the ids of the rules that it breaks.
        Raises TooManyFindingsError."""
        broken: set[str] = set()
        for check in checks:
            if broken and not check.unless.isdisjoint(broken):
                continue
            follows = not check.unless.isdisjoint(self.read)
            for finding in check.run(*subject):
                broken.add(check.rule.id)
                if follows:
                    self.errors = True  # it stays one that is not told
                else:
                    self.report(check.rule, finding, name)
        return broken

    def report(self, rule: Rule, finding: Finding, name: str = "") -> None:
        """Add one finding. What was found before at the same place, of a copy of the object, is not said again. Raises
        TooManyFindingsError where there are errors enough."""
        key = (rule.id, finding.place, finding.message)
        if key in self._seen:
            return
        self._seen.add(key)
        part = (f"{name}, {finding.within}" if name else finding.within) if finding.within else name
        message = f"{part}: {finding.message}" if part else finding.message
        severity = rule.at(self.strict)
        if severity == "error":
            self.errors = True
            if self._left == 0:
                said = TOO_MANY.format(MAX_FINDINGS)
                raise TooManyFindingsError(Diagnostic.at(finding.place, self.path, rule.id, severity, said))
            self._left = self._left - 1 if self._left is not None else None
        hint = finding.hint
        if not isinstance(hint, str):
            self._searches += 1
            hint = hint() if self._searches <= MAX_SEARCHES else ""
        self.found.append(Diagnostic.at(finding.place, self.path, rule.id, severity, message, hint or rule.fix))


class RecordingChecker(Checker):
    """Notes which rules are asked of something at all."""

    def __init__(self, path: str, strict: bool, read: Set[str], most: int | None, asked: set[str]) -> None:
        """`asked`: gets their ids."""
        super().__init__(path, strict, read=read, most=most)
        self._asked = asked

    def check(self, checks: Iterable[Check], *subject: Any, name: str = "") -> Set[str]:
        """See `Checker`."""
        return super().check((replace(check, run=partial(self._ask, check)) for check in checks), *subject, name=name)

    def _ask(self, check: Check, *subject: Any) -> Iterable[Finding]:
        self._asked.add(check.rule.id)
        return check.run(*subject)


def require_few(found: Sequence[Diagnostic], place: Place, path: str, rule: str, severity: Severity) -> None:
    """Raises TooManyFindingsError where there is no room for one more."""
    if len(found) >= MAX_FINDINGS:
        raise TooManyFindingsError(Diagnostic.at(place, path, rule, severity, TOO_MANY.format(MAX_FINDINGS)))


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
        return self.add(
            Rule(
                id=id,
                severity=severity,
                summary=summary,
                why=why,
                wrong=wrong,
                right=right,
                source=source,
                fix=fix,
                stage=stage,
                strict=strict,
            )
        )

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
