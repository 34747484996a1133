"""The language of conditions and messages: its tree, its parser, its functions and its values at a moment of a run."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

Values = NDArray[Any]

OF_TENSOR: Final[Mapping[str, tuple[str, Callable[[Values], float]]]] = MappingProxyType(
    {
        "nan": ("how many elements are NaN", lambda a: float(np.isnan(a).sum())),
        "inf": ("how many elements are infinite", lambda a: float(np.isinf(a).sum())),
        "zeros": ("how many elements are zero", lambda a: float((a == 0).sum())),
        "absmax": ("the largest magnitude", lambda a: float(np.abs(a).max())),
        "max": ("the largest element", lambda a: float(a.max())),
        "min": ("the smallest element", lambda a: float(a.min())),
        "mean": ("the mean", lambda a: float(a.mean(dtype=np.float64))),
        "rms": ("the root of the mean square", lambda a: float(np.sqrt(np.square(a.astype(np.float64)).mean()))),
    }
)


def _pcc(a: Values, b: Values) -> float:
    from buda_emu.testing.verify.comparison import pcc, replace_special

    rows = [replace_special(item.reshape(1, -1).astype(np.float64), nan_is_zero=True) for item in (a, b)]
    return float(pcc(rows[0], rows[1], rows[0].size)[0][0])


OF_TWO: Final[Mapping[str, tuple[str, Callable[[Values, Values], float]]]] = MappingProxyType(
    {
        "pcc": ("the correlation of two tensors, as tests measure it", _pcc),
        "maxdiff": ("the largest difference of two tensors", lambda a, b: float(np.abs(a - b).max())),
    }
)

OF_POINTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rd": "rd_ptr_global of a queue or ram",
        "wr": "wr_ptr_global of a queue or ram",
        "local": "rd_ptr_local of a queue",
        "occupancy": "how many entries a queue holds",
    }
)

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input": "which input of the epoch it is, from 1",
        "inputs": "how many inputs the epoch has",
        "instruction": "how many instructions have begun",
    }
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or a truth as 1 or 0."""

    value: float


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` of the running program."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """`input`, `inputs` or `instruction`."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """`op:NAME`, `queue:NAME`, or a name that is looked for among both; `slot`: of a queue, default its newest."""

    name: str
    kind: Literal["", "op", "queue"] = ""
    slot: int | None = None

    def __str__(self) -> str:
        slot = f"[{self.slot}]" if self.slot is not None else ""
        return f"{self.kind}:{self.name}{slot}" if self.kind else f"{self.name}{slot}"


@dataclass(frozen=True, slots=True)
class Ideal:
    """In place of a tensor: the other one, as precision "ideal" has it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of tensors, or of a queue's pointers."""

    name: str
    arguments: "tuple[Tensor | Ideal, ...]"


@dataclass(frozen=True, slots=True)
class Unary:
    """`-` or `not`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, a comparison, `and`, `or`."""

    operator: str
    left: "Node"
    right: "Node"


Node: TypeAlias = Number | Variable | Word | Call | Unary | Binary


def calls(node: Node) -> Iterator[Call]:
    """Every call in it."""
    match node:
        case Call():
            yield node
        case Unary():
            yield from calls(node.operand)
        case Binary():
            yield from calls(node.left)
            yield from calls(node.right)
        case _:
            pass


class Scope(Protocol):
    """What names mean. Every method raises HostError for what is not there."""

    def tensor(self, which: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        """Its values."""
        ...

    def pointer(self, queue: Tensor, which: str) -> int:
        """A key of OF_POINTERS."""
        ...

    def variable(self, name: str) -> int:
        """Of the running program, by `$name`."""
        ...

    def word(self, name: str) -> int:
        """A key of WORDS."""
        ...


# Arithmetic is that of floats from the first operator on: products of integers would grow without end.
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = MappingProxyType(
    {
        "+": lambda a, b: float(a) + float(b),
        "-": lambda a, b: float(a) - float(b),
        "*": lambda a, b: float(a) * float(b),
        "/": lambda a, b: float(np.float64(a) / np.float64(b)),  # by zero it is infinite, as everywhere here
        "%": lambda a, b: float(np.mod(np.float64(a), np.float64(b))),
        "<": lambda a, b: float(a < b),
        "<=": lambda a, b: float(a <= b),
        ">": lambda a, b: float(a > b),
        ">=": lambda a, b: float(a >= b),
        "==": lambda a, b: float(a == b),
        "!=": lambda a, b: float(a != b),
    }
)


def evaluate(node: Node, scope: Scope) -> float:
    """Its value; a truth is 1 or 0. Raises HostError."""
    with np.errstate(all="ignore"):
        return _value(node, scope)


def _value(node: Node, scope: Scope) -> float:
    match node:
        case Number():
            return node.value
        case Variable():
            return scope.variable(node.name)
        case Word():
            return scope.word(node.name)
        case Call():
            return _call(node, scope)
        case Unary(operator="not"):
            return float(not _value(node.operand, scope))
        case Unary():
            return -_value(node.operand, scope)
        case Binary(operator="and"):
            return float(bool(_value(node.left, scope)) and bool(_value(node.right, scope)))
        case Binary(operator="or"):
            return float(bool(_value(node.left, scope)) or bool(_value(node.right, scope)))
        case Binary():
            return _OPERATORS[node.operator](_value(node.left, scope), _value(node.right, scope))


def _call(call: Call, scope: Scope) -> float:
    first = next(item for item in call.arguments if isinstance(item, Tensor))
    if call.name in OF_POINTERS:
        return scope.pointer(first, call.name)
    if call.name in OF_TENSOR:
        return OF_TENSOR[call.name][1](scope.tensor(first))
    values = [
        scope.tensor(first, ideal=True) if isinstance(item, Ideal) else scope.tensor(item) for item in call.arguments
    ]
    a, b = values
    if a.size != b.size:
        raise HostError(f"{call.name}: the tensors have {a.size} and {b.size} elements")
    return OF_TWO[call.name][1](a, b)


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
    place = 0
    end = len(text.rstrip())
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


Piece = str | Node | Tensor
Pieces = tuple[Piece, ...]
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


def pieces_of(text: str, expression: Callable[[str], Node]) -> Pieces:
    """Words, and between braces expressions, or tensors by their names alone. Raises HostError."""
    if not text.strip():
        raise HostError("the text to print is missing")
    found = [_between(part, expression) if number % 2 else part for number, part in enumerate(_BRACES.split(text))]
    return tuple(piece for piece in found if piece != "")


def _between(text: str, expression: Callable[[str], Node]) -> Piece:
    try:
        which = tensor(text)
    except HostError:
        return expression(text)
    return expression(text) if which.name in WORDS and not which.kind else which


def told(pieces: Pieces, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    """The text, in which what cannot be told says why."""
    return "".join(piece if isinstance(piece, str) else _one(piece, value, words) for piece in pieces)


def _one(piece: Node | Tensor, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    try:
        return words(piece) if isinstance(piece, Tensor) else f"{value(piece):g}"
    except HostError as error:
        return f"<{error}>"
