"""Checks of rules: functions that look for breaches, run in an order in which one defect breaks one rule only."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from buda_emu.support.checker.diagnostic import Diagnostic, Place, Severity
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a kind of document.

    `summary` is one sentence without a full stop that says what is wrong (or, of image rules, what holds); `why` a
    paragraph, `wrong` and `right` a piece of a document each, `source` the section that states the rule, `fix` what to
    do. `stage` is a word of the kind's own for who refuses the document; `strict` the severity where the caller is.
    """

    id: str
    severity: Severity
    summary: str
    why: str = ""
    wrong: str = ""
    right: str = ""
    source: str = ""
    fix: str = ""
    stage: str = ""
    strict: Severity | None = None

    def at(self, strict: bool = False) -> Severity:
        """Return the severity of a finding in a check that is `strict` or not."""
        if strict and self.strict is not None:
            return self.strict
        return self.severity

    @property
    def explanation(self) -> str:
        """The paragraphs that `explain` prints below summary and stage: reason, example, source of the rule."""
        paragraphs: list[str] = []
        if self.why:
            paragraphs.append(self.why)
        if self.wrong:
            paragraphs += [f"Wrong: {self.wrong}", f"Right: {self.right}"]
        if self.source:
            paragraphs.append(f"Stated in {self.source}.")
        return "\n\n".join(paragraphs)


MAX_SEARCHES = 50
"""How many findings get a hint that searches all names: a document where everything is wrong stays quick."""


MAX_FINDINGS = 1000
"""Number of findings of a document, or of a section of it, after which checking stops."""
TOO_MANY = "there are more than {:,} findings: nothing after this one is looked for"


class TooManyFindingsError(Exception):
    """Raised to stop reading or checking a document that has more findings than are reported. Caught in the room of the
    document's kind.

    `last` is the finding that says so, at the place of the first finding that was left out.
    """

    def __init__(self, last: Diagnostic) -> None:
        super().__init__(last.message)
        self.last = last


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check: the place, what is wrong there (without the object's name), and a hint.

    A hint that takes a search through all names is a function, which is called for the first few findings only.
    """

    place: Place
    message: str
    hint: str | Callable[[], str] = ""
    within: str = ""
    """The part of the object that it is about, as it is named in the message: `op s4` of a fused op."""
    about: Hashable = None
    """The part of the document that this is about: rules with this one in `unless` are silent about it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A function that checks one rule.

    `basic` checks run first, and an object that fails one is not checked further, so that no finding follows from
    another. `unless` holds ids of rules that say the same more exactly; where one of them is broken, the check is
    skipped. `kinds` are the kinds of objects that the check looks at, None for all.
    """

    rule: Rule
    run: Callable[..., Iterable[Finding]]
    basic: bool = False
    unless: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None


def in_order(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks ordered so that each comes after those whose findings make it superfluous, else as given."""
    checks_of: dict[str, list[Check]] = {}
    for check in checks:
        checks_of.setdefault(check.rule.id, []).append(check)
    ranks: dict[str, int] = {}

    def rank(rule: str) -> int:
        """Return the number of rules that a rule waits for in a row: 0 where its checks name none in `unless`."""
        if rule not in ranks:
            ranks[rule] = 0  # a circle of rules ends here
            others = set[str]().union(*(check.unless for check in checks_of[rule])) & checks_of.keys()
            ranks[rule] = max((rank(other) + 1 for other in others), default=0)
        return ranks[rule]

    return tuple(sorted(checks, key=lambda check: rank(check.rule.id)))


class Checker:
    """Turns the findings of checks into `diagnostics` of one document, in the order of finding."""

    def __init__(
        self,
        path: str,
        strict: bool = False,
        diagnostics: Iterable[Diagnostic] = (),
        read: Set[str] = frozenset(),
        most_errors: int | None = None,
    ) -> None:
        """`read`: ids of rules that reading found broken somewhere in the document. A finding of a check that has one
        of them in its `unless` is left out; its object counts as broken all the same. `most_errors`: number of errors
        after which the checker stops, None for no limit."""
        self.path = path
        self.strict = strict
        self.read = read
        self.diagnostics = list(diagnostics)
        self.errors = any(diagnostic.severity == "error" for diagnostic in self.diagnostics)
        self._left = most_errors  # errors that may still come
        self._seen: set[tuple[str, Place, str]] = set()
        self._searches = 0

    def check(self, checks: Iterable[Check], *subject: Any, name: str = "") -> Set[str]:
        """Hold an object, named `name` in messages, against checks `in_order`, report what they find, and return the
        ids of the rules that it breaks. Raises TooManyFindingsError after `most_errors` errors."""
        broken: set[str] = set()
        for check in checks:
            if broken and not check.unless.isdisjoint(broken):
                continue
            follows = not check.unless.isdisjoint(self.read)
            for finding in check.run(*subject):
                broken.add(check.rule.id)
                if follows:
                    self.errors = True  # the object is broken although no finding is added
                else:
                    self.report(check.rule, finding, name)
        return broken

    def report(self, rule: Rule, finding: Finding, name: str = "") -> None:
        """Add a finding as a diagnostic, unless an equal one was added for the same place, of a copy of the object.
        Raises TooManyFindingsError after `most_errors` errors."""
        key = (rule.id, finding.place, finding.message)
        if key in self._seen:
            return
        self._seen.add(key)
        subject = ", ".join(filter(None, (name, finding.within)))
        message = f"{subject}: {finding.message}" if subject else finding.message
        severity = rule.at(self.strict)
        if severity == "error":
            self._count_error(rule, finding)
        hint = finding.hint
        if not isinstance(hint, str):
            self._searches += 1
            hint = hint() if self._searches <= MAX_SEARCHES else ""
        self.diagnostics.append(Diagnostic.at(finding.place, self.path, rule.id, severity, message, hint or rule.fix))

    def _count_error(self, rule: Rule, finding: Finding) -> None:
        """Count one error more. Raises TooManyFindingsError where no more are reported."""
        self.errors = True
        if self._left is None:
            return
        if self._left == 0:
            message = TOO_MANY.format(MAX_FINDINGS)
            raise TooManyFindingsError(Diagnostic.at(finding.place, self.path, rule.id, "error", message))
        self._left -= 1


class RecordingChecker(Checker):
    """A checker that also records which rules were applied to at least one object."""

    def __init__(
        self, path: str, strict: bool, read: Set[str], most_errors: int | None, applied_rules: set[str]
    ) -> None:
        """`applied_rules`: the set to which the ids of the applied rules are added."""
        super().__init__(path, strict, read=read, most_errors=most_errors)
        self._asked = applied_rules

    def check(self, checks: Iterable[Check], *subject: Any, name: str = "") -> Set[str]:
        """Hold an object against checks as `Checker.check` does, and record each rule whose check runs."""
        return super().check(
            (replace(check, run=partial(self._record_and_run, check)) for check in checks), *subject, name=name
        )

    def _record_and_run(self, check: Check, *subject: Any) -> Iterable[Finding]:
        """Run a check after recording its rule."""
        self._asked.add(check.rule.id)
        return check.run(*subject)


def require_few(diagnostics: Sequence[Diagnostic], place: Place, path: str, rule: str, severity: Severity) -> None:
    """Raise TooManyFindingsError, at a place and for a rule, where a list of findings has MAX_FINDINGS already."""
    if len(diagnostics) >= MAX_FINDINGS:
        raise TooManyFindingsError(Diagnostic.at(place, path, rule, severity, TOO_MANY.format(MAX_FINDINGS)))


F = TypeVar("F", bound=Callable[..., Iterable[Finding]])


class RuleBook:
    """The registry of the rules of one kind of document, filled while the files of its room are imported.

    `kind` names the documents in messages, `prefix` begins the ids of the rules, `stages` explains their `stage`.
    `unchecked` are the rules that nothing checks, which the text of each explains.
    `refusals` says by stage, or by the id of a rule, who refuses a document although the check only warns: "the chip".
    """

    def __init__(
        self,
        kind: str,
        prefix: str,
        stages: Mapping[str, str] = MappingProxyType({}),
        refusals: Mapping[str, str] = MappingProxyType({}),
        unchecked: frozenset[str] = frozenset(),
    ) -> None:
        self.kind = kind
        self.prefix = prefix
        self.stages = stages
        self.refusals = refusals
        self.unchecked = unchecked
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
        """Enter a rule that is checked while a document is read, without a function of its own. The fields are those of
        `Rule`."""
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
        """Declare a new rule and return a decorator that makes a function its check; `fields` are the keywords of
        `declare`, `basic` and `unless` fields of `Check`. Raises ValueError as `add` does."""
        self.declare(id, severity, summary, **fields)
        return self.check(id, basic=basic, unless=unless)

    def check(self, id: str, *, basic: bool = False, unless: Iterable[str] = ()) -> Callable[[F], F]:
        """Return a decorator that enters a function as one more check of the rule `id`, and leaves the function as it
        is. `basic` and `unless` are fields of `Check`. The decorator raises KeyError for a rule that was not
        declared."""

        def attach(function: F) -> F:
            """Add the function as a check of the rule and return it unchanged."""
            self._checks.append(Check(self._rules[id], function, basic, frozenset(unless)))
            return function

        return attach

    def explain_stage(self, rule: Rule) -> str:
        """Return the sentence on who refuses a document that breaks a rule, and whether a check tells; "" if the stages
        of these rules have no explanation."""
        text = self.stages.get(rule.stage, "")
        if text and rule.id in self.unchecked:
            return f"{text.partition(':')[0].rstrip('.')}. It is not checked here."
        return text

    def refused_by(self, id: str) -> str:
        """Return who refuses a document that breaks a rule although the check only warns, "" for nobody."""
        rule = self._rules.get(id)
        if rule is None:
            return ""
        return self.refusals.get(rule.id) or self.refusals.get(rule.stage, "")

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check in the order of declaration."""
        return tuple(self._checks)

    def diagnostic(
        self, path: str, rule: str, place: Place, message: str, hint: str = "", *, strict: bool = False
    ) -> Diagnostic:
        """Return a diagnostic of the rule with the id `rule`, which a reader found broken. Without a hint it carries
        the rule's fix. Raises KeyError for a rule that was not declared."""
        declaration = self._rules[rule]
        return Diagnostic.at(place, path, rule, declaration.at(strict), message, hint or declaration.fix)

    def run(
        self, *subject: Any, path: str = "", strict: bool = False, reading_findings: Iterable[Diagnostic] = ()
    ) -> list[Diagnostic]:
        """Return all findings about a document, sorted by place; each check is called with `subject`.

        `reading_findings` are findings from reading. Basic checks come first; when one of them or of `reading_findings`
        is an error, the others are not run. A check is not run when a rule of its `unless` was broken by the document
        as a whole (`Finding.about` is None), and what it finds about something that broke such a rule is left out.
        """
        checker = Checker(path, strict, reading_findings)
        broken: dict[str, set[Hashable]] = {}
        for diagnostic in checker.diagnostics:
            broken.setdefault(diagnostic.rule, set()).add(None)
        for basic in (True, False):
            if checker.errors and not basic:
                break
            for check in in_order([check for check in self._checks if check.basic == basic]):
                _run_check(check, subject, broken, checker)
        return sorted(checker.diagnostics, key=lambda diagnostic: diagnostic.order)


def _run_check(check: Check, subject: tuple[Any, ...], broken: dict[str, set[Hashable]], checker: Checker) -> None:
    """Run a check of a whole document, unless a rule of its `unless` is broken. `broken`: by rule, what broke it; None
    stands for the document."""
    silent = set[Hashable]().union(*(broken.get(rule, ()) for rule in check.unless))
    if None in silent:
        return
    for finding in check.run(*subject):
        if finding.about is None or finding.about not in silent:
            broken.setdefault(check.rule.id, set()).add(finding.about)
            checker.report(check.rule, finding)
