"""The book of rules, and what happens when one is broken."""

from typing import Final, Literal

from buda_emu.checker import RuleBook

Verdict = Literal["ok", "faulty", "rejected"]

BOOK: Final = RuleBook(
    "DarwiNN package",
    prefix="D",
    stages={
        "E": "The driver refuses to register the package: verdict rejected.",
        "F": "The driver registers the package, and aborts, fails or touches memory that it must not: verdict faulty.",
        "W": "A warning: the driver does not mind.",
        "N": "A note: worth knowing.",
    },
)
