"""A cursor over text: white space, words, balanced brackets. What cannot be read is a `ReadError` with its place."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

MOST_NESTED: Final = 64
"""Brackets, types and regions inside each other; deeper text is refused."""

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
SYMBOL = re.compile(r'@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*")(?:::@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*"))*')
VALUE = re.compile(r"%[\w$.]+(?:-[\w$.]+)*(?:#\d+)?")
_LOCATION = re.compile(r"loc\s*(?=\()")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r'[()\[\]{}]|"(?:[^"\\\n]|\\.)*"')
_ANGLE = re.compile(r'[<>]|->|"(?:[^"\\\n]|\\.)*"')
_HIDDEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)|\{-#.*?(?:#-\}|\Z)', re.DOTALL)


class ReadError(Exception):
    """The text cannot be read from `offset` on."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def without_comments(text: str) -> str:
    """The text with blanks in place of comments and resource blocks, every other character where it was."""
    return _HIDDEN.sub(_blank, text)


def _blank(found: re.Match[str]) -> str:
    """Blanks for a comment. Strings stay, and so does what is opened and not closed."""
    text = found[0]
    closing = {"/*": "*/", "{-": "#-}"}.get(text[:2], "")
    whole = text.endswith(closing) and len(text) >= 2 * len(closing)
    return text if text[0] == '"' or not whole else re.sub(r"[^\n]", " ", text)


class Scanner:
    """A place in a text that is moved forward; `end` is where the text to be read ends."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.at = start
        self.end = end
        self._nested = 0

    def fail(self, message: str, offset: int | None = None) -> ReadError:
        """The error to be raised."""
        return ReadError(self.at if offset is None else offset, message)

    @contextmanager
    def nested(self) -> Generator[None]:
        """One bracket deeper. Raises ReadError where that is too deep."""
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise self.fail(f"more than {MOST_NESTED} brackets inside each other")
        try:
            yield
        finally:
            self._nested -= 1

    def space(self) -> None:
        """Skip white space."""
        found = SPACE.match(self.text, self.at, self.end)
        self.at = found.end() if found is not None else self.at

    def sees(self, text: str) -> bool:
        """Does this text come next?"""
        self.space()
        return self.text.startswith(text, self.at, self.end)

    def take(self, text: str) -> bool:
        """Skip this text if it comes next."""
        if not self.sees(text):
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        """Skip this text. Raises ReadError where something else comes next."""
        if not self.take(text):
            raise self.fail(f"expected {text!r}, found {self.shown()}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Skip what a pattern matches; the text, None where it does not match."""
        self.space()
        found = pattern.match(self.text, self.at, self.end)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def need(self, pattern: re.Pattern[str], what: str) -> str:
        """As `match`. Raises ReadError where the pattern does not match."""
        found = self.match(pattern)
        if found is None:
            raise self.fail(f"expected {what}, found {self.shown()}")
        return found

    def word(self, text: str) -> bool:
        """Skip this word, if it comes next and does not go on."""
        self.space()
        stop = self.at + len(text)
        if not self.text.startswith(text, self.at, self.end):
            return False
        if stop < self.end and (self.text[stop].isalnum() or self.text[stop] in "_$"):
            return False
        self.at = stop
        return True

    def shown(self) -> str:
        """What comes next, for a message."""
        self.space()
        if self.at >= self.end:
            return "the end of the text"
        return repr(self.text[self.at : min(self.at + 20, self.end)].split("\n")[0])

    def balanced(self) -> str:
        """Skip a bracket and all up to the one that closes it; the text without both. Raises ReadError."""
        self.space()
        start = self.at
        open_brackets: list[str] = []
        for found in _BRACKET.finditer(self.text, start, self.end):
            text = found[0]
            if text in _CLOSING:
                open_brackets.append(_CLOSING[text])
            elif text[0] != '"':
                if not open_brackets or open_brackets.pop() != text:
                    raise self.fail(f"{text!r} closes nothing", found.start())
                if not open_brackets:
                    self.at = found.end()
                    return self.text[start + 1 : found.start()]
        raise self.fail("a bracket is not closed", start)

    def angle(self) -> str:
        """As `balanced`, for `<` and `>`; an arrow is not a bracket."""
        self.space()
        start = self.at
        depth = 0
        for found in _ANGLE.finditer(self.text, start, self.end):
            text = found[0]
            depth += {"<": 1, ">": -1}.get(text, 0)
            if depth == 0:
                self.at = found.end()
                return self.text[start + 1 : found.start()]
        raise self.fail("'<' is not closed", start)

    def location(self) -> bool:
        """Skip `loc(..)` if it comes next. Returns whether it did."""
        if self.match(_LOCATION) is None:
            return False
        self.balanced()
        return True

    def string(self) -> str | None:
        """Skip a string; what it says, None where none stands."""
        found = self.match(STRING)
        return None if found is None else re.sub(r"\\(.)", r"\1", found[1:-1])
