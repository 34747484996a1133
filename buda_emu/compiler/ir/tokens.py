"""A line of IR text, word by word."""

import re
from typing import Any, Final, NoReturn

from buda_emu.errors import HostError

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.]*"
_TOKEN: Final = re.compile(
    rf"""\s*(?:(?P<name>{_NAME})|(?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf\b))"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>->|[][(){}<>,:;=@#|-])|(?P<end>\Z))"""
)
_DIGEST: Final = re.compile(r"[0-9a-f]{12}")
_MOST_DIGITS: Final = 400  # of a number: the largest float has 309
_LAST_CHARACTER: Final = 0x10FFFF
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))")


class IrError(HostError):
    """A text that is not IR, or an IR that breaks a rule of its level."""


class Tokens:
    """The rest of one line; `kind` of what comes next: name, number, text, sign or end."""

    def __init__(self, line: str, where: str) -> None:
        self.line = line
        self.where = where
        self._at = 0
        self._start: int = 0
        self._next()

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether it is one without quotes."""
        return re.fullmatch(_NAME, text) is not None

    def _next(self) -> None:
        found = _TOKEN.match(self.line, self._at)
        if found is None:
            self.fail(f"{self.line[self._at :].strip()[:20]!r} is not understood")
        self.kind = str(found.lastgroup)
        self._word = str(found[self.kind])
        self._start = int(found.start(self.kind))
        self._at = int(found.end())

    def fail(self, why: str) -> NoReturn:
        """Raises IrError with the place."""
        raise IrError(f"{self.where}:{self._start + 1}: {why}")

    def at(self, sign: str) -> bool:
        """Whether a sign or a name comes next."""
        return self.kind in ("sign", "name") and self._word == sign

    def take(self, sign: str) -> bool:
        """The same, and after it then."""
        found = self.at(sign)
        if found:
            self._next()
        return found

    def need(self, sign: str) -> None:
        """After a sign that has to come next."""
        if not self.take(sign):
            self.fail(f"{sign!r} is missing before {self._word!r}" if self._word else f"{sign!r} is missing")

    def name(self, what: str) -> str:
        """A name without quotes."""
        if self.kind != "name":
            self.fail(f"{what} is missing before {self._word!r}" if self._word else f"{what} is missing")
        return self._taken()

    def any_name(self, what: str) -> str:
        """A name, with quotes or without."""
        return self.text() if self.kind == "text" else self.name(what)

    def number(self) -> Any:
        """An integer, or a float where it has a point, an exponent or is infinite."""
        if self.kind != "number":
            self.fail(f"a number is missing before {self._word!r}")
        if len(self._word) > _MOST_DIGITS:
            self.fail(f"a number of more than {_MOST_DIGITS} digits")
        word = self._taken()
        return int(word) if word.lstrip("-").isdigit() else float(word)

    def integer(self, what: str) -> int:
        """A number that is an integer."""
        start = self._start
        found = self.number()
        if not isinstance(found, int):
            self._start = start
            self.fail(f"{what} is an integer, not {found}")
        return found

    def text(self) -> str:
        """What stands in quotes."""
        if self.kind != "text":
            self.fail(f"a text in quotes is missing before {self._word!r}")
        for code in _ESCAPE.finditer(self._word):
            if code[1] and (len(code[1]) > 6 or int(code[1], 16) > _LAST_CHARACTER):
                self.fail(f"there is no character {code[0][:20]}")
        word = self._taken()[1:-1]
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], word)

    def digest(self) -> str:
        """Of an array."""
        found = _DIGEST.match(self.line, self._start)
        if found is None:
            self.fail("a digest of twelve letters is missing")
        self._at = found.end()
        self._next()
        return found[0]

    def done(self) -> None:
        """At the end of the line."""
        if self.kind != "end":
            self.fail(f"{self._word!r} is where the line should end")

    def _taken(self) -> str:
        word = self._word
        self._next()
        return word
