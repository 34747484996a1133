"""The checker that all kinds of documents share: findings and their places, rules and rule books, suggestions for
misspelt words, and the printing of findings. Knows no document; each package that reads one has a `RuleBook`.

    BOOK = RuleBook("schedule", prefix="G")

    @BOOK.rule("G041", "error", "two tensors share a byte", source="GEMINI 4", fix="move one of them")
    def shared_bytes(schedule):
        ...
        yield Finding(f"{core}/{index}/buffer/{n}/address", "bytes 64 to 127 are also those of tensor 3")

    diagnostics = BOOK.run(schedule, path="net.json")
"""

from buda_emu.support.checker.checks import Check, Checker, Finding, Rule, RuleBook
from buda_emu.support.checker.diagnostic import ByteOffset, Diagnostic, Severity, TextPlace
from buda_emu.support.checker.result import CheckResult, Options

__all__ = [
    "ByteOffset",
    "Check",
    "CheckResult",
    "Checker",
    "Diagnostic",
    "Finding",
    "Options",
    "Rule",
    "RuleBook",
    "Severity",
    "TextPlace",
]
