"""A cursor over text that skips white space and reads words and balanced brackets. Text that cannot be read raises
`ReadError` with its place."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

MOST_NESTED: Final = 64
"""Brackets, types and regions inside each other; deeper text is refused, long before Python's limit of recursion."""

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
    """An error in the text, which cannot be read from `offset` on."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def blank_comments(text: str) -> str:
    """Return the text with blanks in place of comments and resource blocks, and every other character where it was."""
    return _HIDDEN.sub(_blank_match, text)


def _blank_match(match: re.Match[str]) -> str:
    """Return blanks for a comment. Strings stay, and so does a comment that is not closed."""
    text = match[0]
    closing = {"/*": "*/", "{-": "#-}"}.get(text[:2], "")
    complete = text.endswith(closing) and len(text) >= 2 * len(closing)
    if text[0] == '"' or not complete:
        return text
    return re.sub(r"[^\n]", " ", text)


class Scanner:
    """A position in a text that moves forward; `end` is where the text to be read ends."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.at = start
        self.end = end
        self._nested = 0

    def fail(self, message: str, offset: int | None = None) -> ReadError:
        """Return the error to be raised at `offset`, or at the current position."""
        return ReadError(self.at if offset is None else offset, message)

    @contextmanager
    def nest(self) -> Generator[None]:
        """Count one bracket more while the context lasts. Raises ReadError where there are too many."""
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise self.fail(f"more than {MOST_NESTED} brackets inside each other")
        try:
            yield
        finally:
            self._nested -= 1

    def space(self) -> None:
        """Skip white space."""
        match = SPACE.match(self.text, self.at, self.end)
        if match is not None:
            self.at = match.end()

    def sees(self, text: str) -> bool:
        """Return whether this text comes next."""
        self.space()
        return self.text.startswith(text, self.at, self.end)

    def take(self, text: str) -> bool:
        """Skip this text if it comes next, and return whether it did."""
        if not self.sees(text):
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        """Skip this text. Raises ReadError where something else comes next."""
        if not self.take(text):
            raise self.fail(f"expected {text!r}, found {self.describe_next()}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Skip what the pattern matches and return it; None where it does not match."""
        self.space()
        match = pattern.match(self.text, self.at, self.end)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def need(self, pattern: re.Pattern[str], expected: str) -> str:
        """Skip what the pattern matches and return it. Raises ReadError where it does not match."""
        text = self.match(pattern)
        if text is None:
            raise self.fail(f"expected {expected}, found {self.describe_next()}")
        return text

    def word(self, text: str) -> bool:
        """Skip this word if it comes next as a whole word, and return whether it did."""
        self.space()
        stop = self.at + len(text)
        if not self.text.startswith(text, self.at, self.end):
            return False
        if stop < self.end and (self.text[stop].isalnum() or self.text[stop] in "_$"):
            return False
        self.at = stop
        return True

    def describe_next(self) -> str:
        """Return the text that comes next, for a message."""
        self.space()
        if self.at >= self.end:
            return "the end of the text"
        return repr(self.text[self.at : min(self.at + 20, self.end)].split("\n")[0])

    def skip_brackets(self) -> str:
        """Skip a bracket and everything up to the one that closes it, and return the text between them. Raises
        ReadError."""
        self.space()
        start = self.at
        open_brackets: list[str] = []
        for match in _BRACKET.finditer(self.text, start, self.end):
            text = match[0]
            if text in _CLOSING:
                open_brackets.append(_CLOSING[text])
            elif text[0] != '"':
                if not open_brackets or open_brackets.pop() != text:
                    raise self.fail(f"{text!r} closes nothing", match.start())
                if not open_brackets:
                    self.at = match.end()
                    return self.text[start + 1 : match.start()]
        raise self.fail("a bracket is not closed", start)

    def skip_angle(self) -> str:
        """Skip everything from a `<` to the `>` that closes it, and return the text between them. An arrow is not a
        bracket. Raises ReadError."""
        self.space()
        start = self.at
        depth = 0
        for match in _ANGLE.finditer(self.text, start, self.end):
            text = match[0]
            depth += {"<": 1, ">": -1}.get(text, 0)
            if depth == 0:
                self.at = match.end()
                return self.text[start + 1 : match.start()]
        raise self.fail("'<' is not closed", start)

    def location(self) -> bool:
        """Skip a location, `loc(..)`, which may stand behind any statement and value; return whether one came next."""
        if self.match(_LOCATION) is None:
            return False
        self.skip_brackets()
        return True

    def string(self) -> str | None:
        """Skip a string and return its content; None where no string comes next."""
        text = self.match(STRING)
        if text is None:
            return None
        return re.sub(r"\\(.)", r"\1", text[1:-1])
