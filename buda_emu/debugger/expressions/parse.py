"""Text to tree, by recursive descent: or, and, not, comparison, sum, product, sign, atom."""

import re
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.debugger.expressions.functions import OF_POINTERS, OF_TENSOR, OF_TWO, WORDS
from buda_emu.debugger.expressions.tree import Binary, Call, Ideal, Node, Number, Tensor, Unary, Variable, Word
from buda_emu.errors import HostError
from buda_emu.records import dataclass

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)
    |(?P<variable>\$\w+)
    |(?P<name>(?:(?:op|queue):)?(?:'[^']*'|[A-Za-z_][\w.]*))
    |(?P<sign><=|>=|==|!=|[-+*/%<>()\[\],])
    )""",
    re.VERBOSE,
)
_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
_MOST_DEPTH: Final = 50
_MOST_OPERATORS: Final = 200
_MOST_SLOT_DIGITS: Final = 9
_SHOWN: Final = 60
"""Characters of a text on each side of an error."""
_ARGUMENTS: Final = {**dict.fromkeys(OF_TENSOR, 1), **dict.fromkeys(OF_TWO, 2), **dict.fromkeys(OF_POINTERS, 1)}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def parse(text: str) -> Node:
    """Raises HostError that names the place and what was probably meant."""
    parser = _Parser(text)
    found = parser.either(0)
    parser.end()
    return found


def tensor(text: str) -> Tensor:
    """`op:NAME`, `queue:NAME`, NAME, each with or without `[slot]`. Raises HostError."""
    parser = _Parser(text)
    found = parser.tensor()
    parser.end()
    return found


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        token = _TOKEN.match(text, place)
        if token is None or token.lastgroup is None:
            rest = text[place:]
            column = place + len(rest) - len(rest.lstrip())
            raise _error(text, column, f"{text[column]!r} means nothing here")
        found.append(_Token(token.lastgroup, token[token.lastgroup], token.start(token.lastgroup)))
        place = token.end()
    return [*found, _Token("end", "", end)]


def _error(text: str, column: int, problem: str) -> HostError:
    if len(text) <= 2 * _SHOWN:
        shown = repr(text.strip())
    else:
        shown = f"a text of {len(text)} characters, near {text[max(0, column - _SHOWN) : column + _SHOWN].strip()!r}"
    return HostError(f"{problem} (column {column + 1} of {shown})")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._operators = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _fail(self, problem: str, token: _Token | None = None) -> HostError:
        return _error(self._text, (token or self._token).column, problem)

    def _take(self, *texts: str) -> str:
        """The next token's text where it is one of these, else ""."""
        text = self._token.text
        if self._token.kind not in ("sign", "name") or text not in texts:
            return ""
        self._next += 1
        return text

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._fail(f"{text!r} is missing")

    def _join(self, operator: str, left: Node, right: Node) -> Node:
        """An operator with its operands. The tree is walked by recursion, and a chain is as deep as it is long."""
        self._operators += 1
        if self._operators > _MOST_OPERATORS:
            raise self._fail(f"more than {_MOST_OPERATORS} operators in one expression")
        return Binary(operator, left, right)

    def end(self) -> None:
        """Nothing may follow."""
        if self._token.kind != "end":
            raise self._fail(f"{self._token.text!r} is too much")

    def either(self, depth: int) -> Node:
        """The whole."""
        if depth > _MOST_DEPTH:
            raise self._fail(f"more than {_MOST_DEPTH} parentheses and signs within each other")
        left = self._both(depth)
        while self._take("or"):
            left = self._join("or", left, self._both(depth))
        return left

    def _both(self, depth: int) -> Node:
        left = self._negated(depth)
        while self._take("and"):
            left = self._join("and", left, self._negated(depth))
        return left

    def _negated(self, depth: int) -> Node:
        if self._take("not"):
            if depth > _MOST_DEPTH:
                raise self._fail(f"more than {_MOST_DEPTH} parentheses and signs within each other")
            return Unary("not", self._negated(depth + 1))
        left = self._sum(depth)
        operator = self._take(*_COMPARISONS)
        return self._join(operator, left, self._sum(depth)) if operator else left

    def _sum(self, depth: int) -> Node:
        left = self._product(depth)
        while operator := self._take("+", "-"):
            left = self._join(operator, left, self._product(depth))
        return left

    def _product(self, depth: int) -> Node:
        left = self._signed(depth)
        while operator := self._take("*", "/", "%"):
            left = self._join(operator, left, self._signed(depth))
        return left

    def _signed(self, depth: int) -> Node:
        if depth > _MOST_DEPTH:
            raise self._fail(f"more than {_MOST_DEPTH} parentheses and signs within each other")
        return Unary("-", self._signed(depth + 1)) if self._take("-") else self._atom(depth)

    def _atom(self, depth: int) -> Node:
        token = self._token
        if self._take("("):
            inner = self.either(depth + 1)
            self._need(")")
            return inner
        self._next += token.kind != "end"
        match token.kind:
            case "number":
                return Number(float(token.text))
            case "variable":
                return Variable(token.text)
            case "name" if self._token.text == "(":
                return self._call(token)
            case "name" if token.text in WORDS:
                return Word(token.text)
            case "name":
                hint = near(token.text, (*WORDS, *_ARGUMENTS))
                what = f"{token.text!r} is not a number: a tensor goes into a function, such as absmax({token.text})"
                raise self._fail(f"{what}; {hint}" if hint else what, token)
            case "end":
                raise self._fail("something is missing at the end", token)
            case _:
                raise self._fail(f"{token.text!r} means nothing here", token)

    def _call(self, name: _Token) -> Call:
        count = _ARGUMENTS.get(name.text)
        if count is None:
            hint = near(name.text, _ARGUMENTS)
            known = ", ".join(_ARGUMENTS)
            raise self._fail(f"no function {name.text!r} ({f'{hint}; ' if hint else ''}functions: {known})", name)
        self._need("(")
        arguments = [self._argument(name.text)]
        while self._take(","):
            arguments.append(self._argument(name.text))
        self._need(")")
        if len(arguments) != count or all(isinstance(item, Ideal) for item in arguments):
            wanted = "one tensor" if count == 1 else "two tensors, one of which may be `ideal`"
            raise self._fail(f"{name.text} takes {wanted}", name)
        return Call(name.text, tuple(arguments))

    def _argument(self, function: str) -> Tensor | Ideal:
        if self._token.text == "ideal" and self._token.kind == "name" and function in OF_TWO:
            self._next += 1
            return Ideal()
        return self.tensor()

    def tensor(self) -> Tensor:
        """A tensor, with or without a slot."""
        token = self._token
        if token.kind != "name":
            raise self._fail("the name of a queue or op is missing")
        self._next += 1
        before, colon, after = token.text.partition(":")
        kind, name = (before, after) if colon and before in ("op", "queue") else ("", token.text)
        slot = None
        if self._take("["):
            number = self._token
            if number.kind != "number" or not number.text.isdecimal() or len(number.text) > _MOST_SLOT_DIGITS:
                raise self._fail(f"a slot is a number of 0 or more, of at most {_MOST_SLOT_DIGITS} digits")
            self._next += 1
            self._need("]")
            slot = int(number.text)
        return Tensor(name.strip("'"), kind, slot)
