"""The declaration of a rule."""

from buda_emu.support.checker.diagnostic import Severity
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
        """The severity of a finding."""
        return self.strict or self.severity if strict else self.severity

    @property
    def explanation(self) -> str:
        """What `explain` prints below summary and stage, in paragraphs: reason, example, where the rule stands."""
        example = [f"Wrong: {self.wrong}", f"Right: {self.right}"] if self.wrong else []
        source = [f"Stated in {self.source}."] if self.source else []
        return "\n\n".join([*filter(None, (self.why,)), *example, *source])
