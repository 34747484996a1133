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
