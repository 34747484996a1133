"""Rules of where elements of outputs lie: what `places` found (DARWINN 7, 8)."""

from collections.abc import Callable, Iterable

from buda_emu.foreign.darwinn.model import BOOK
from buda_emu.foreign.darwinn.rules.subject import Subject, finding
from buda_emu.support.checker import Finding


def _rule_of(rule: str) -> Callable[[Subject], Iterable[Finding]]:
    def check(subject: Subject) -> Iterable[Finding]:
        for name, which, layer, problems in subject.placed:
            for found, field, message in problems:
                if found == rule:
                    yield finding(layer, field, f"{name}, {which}", message)

    return check


for _id, _severity, _stage, _summary, _fix in (
    ("D076", "error", "F", "an output has no layout, or a map that is too short", "compile the model again"),
    (
        "D077",
        "error",
        "F",
        ("an output's layout leads out of it: a tile without offset, or an element outside of size_bytes"),
        "do not run this package: compile the model again",
    ),
    ("D078", "error", "F", "an output's layout puts two elements at one place", "compile the model again"),
    (
        "D079",
        "warning",
        "W",
        "the driver's shortcuts read an output otherwise than its maps say",
        "expect wrong values from the driver: use relayout on the raw bytes",
    ),
    (
        "D080",
        "error",
        "F",
        "an output's slices are invalid, outside, incomplete or overlapping",
        "compile the model again",
    ),
):
    BOOK.declare(_id, _severity, _summary, stage=_stage, source="DARWINN 7, 8", fix=_fix)  # pyright: ignore[reportArgumentType]
    BOOK.check(_id)(_rule_of(_id))
