"""The language of conditions and log messages: its tree, its parser, its functions, and evaluation at a moment of a
run."""

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

TENSOR_FUNCTIONS: Final[Mapping[str, tuple[str, Callable[[Values], float]]]] = MappingProxyType(
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
    """Return the Pearson correlation of two tensors, with NaN taken as zero, as the tests' comparison measures it."""
    from buda_emu.testing.verify.comparison import pcc, replace_special

    first = replace_special(a.reshape(1, -1).astype(np.float64), nan_is_zero=True)
    second = replace_special(b.reshape(1, -1).astype(np.float64), nan_is_zero=True)
    return float(pcc(first, second, first.size)[0][0])


PAIR_FUNCTIONS: Final[Mapping[str, tuple[str, Callable[[Values, Values], float]]]] = MappingProxyType(
    {
        "pcc": ("the correlation of two tensors, as tests measure it", _pcc),
        "maxdiff": ("the largest difference of two tensors", lambda a, b: float(np.abs(a - b).max())),
    }
)

POINTER_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
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
    """A numeric literal."""

    value: float


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable `$name` of the running program."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """One of the words of `WORDS`: `input`, `inputs` or `instruction`."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A reference to a tensor: `op:NAME`, `queue:NAME`, or a name that is looked up among both. `slot` selects an entry
    of a queue; None means its newest."""

    name: str
    kind: Literal["", "op", "queue"] = ""
    slot: int | None = None

    def __str__(self) -> str:
        prefix = f"{self.kind}:" if self.kind else ""
        slot = f"[{self.slot}]" if self.slot is not None else ""
        return f"{prefix}{self.name}{slot}"


@dataclass(frozen=True, slots=True)
class Ideal:
    """Stands in a call for the other tensor as precision "ideal" computes it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of tensors or of a queue's pointers."""

    name: str
    arguments: "tuple[Tensor | Ideal, ...]"


@dataclass(frozen=True, slots=True)
class Unary:
    """Negation `-` or `not`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator of two operands: arithmetic, a comparison, `and`, `or`."""

    operator: str
    left: "Node"
    right: "Node"


Node: TypeAlias = Number | Variable | Word | Call | Unary | Binary


def calls_in(node: Node) -> Iterator[Call]:
    """Yield every call in an expression, from left to right."""
    match node:
        case Call():
            yield node
        case Unary():
            yield from calls_in(node.operand)
        case Binary():
            yield from calls_in(node.left)
            yield from calls_in(node.right)
        case _:
            pass


class Scope(Protocol):
    """Meaning of the names in an expression. Every method raises HostError for a name that has no value."""

    def tensor(self, reference: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        """Return the elements of a tensor [t, rows, columns]; `ideal` selects those that precision "ideal" computes."""
        ...

    def pointer(self, queue: Tensor, name: str) -> int:
        """Return a pointer of a queue or ram, or its occupancy; `name` is a key of `POINTER_FUNCTIONS`."""
        ...

    def variable(self, name: str) -> int:
        """Return the value of a variable of the running program, named with its `$`."""
        ...

    def word(self, name: str) -> int:
        """Return the value of a key of `WORDS`."""
        ...


# Arithmetic is that of floats from the first operator on: products of integers would grow without end.
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = MappingProxyType(
    {
        "+": lambda a, b: float(a) + float(b),
        "-": lambda a, b: float(a) - float(b),
        "*": lambda a, b: float(a) * float(b),
        "/": lambda a, b: float(np.float64(a) / np.float64(b)),  # numpy division: by zero it is infinite, and no error
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
    """Return the value of an expression; truths are 1 and 0. Raises HostError for names without a value and tensors of
    different sizes."""
    with np.errstate(all="ignore"):
        return _evaluate_node(node, scope)


def _evaluate_node(node: Node, scope: Scope) -> float:
    """Return the value of an expression, by recursion over its tree."""
    match node:
        case Number():
            return node.value
        case Variable():
            return scope.variable(node.name)
        case Word():
            return scope.word(node.name)
        case Call():
            return _evaluate_call(node, scope)
        case Unary(operator="not"):
            return float(not _evaluate_node(node.operand, scope))
        case Unary():
            return -_evaluate_node(node.operand, scope)
        case Binary():
            return _binary_value(node, scope)


def _binary_value(node: Binary, scope: Scope) -> float:
    """Return the value of an operator of two operands; `and` and `or` evaluate the second only if it matters."""
    left = _evaluate_node(node.left, scope)
    if node.operator == "and" and not left:
        return 0.0
    if node.operator == "or" and left:
        return 1.0
    right = _evaluate_node(node.right, scope)
    if node.operator in ("and", "or"):
        return float(bool(right))
    return _OPERATORS[node.operator](left, right)


def _evaluate_call(call: Call, scope: Scope) -> float:
    """Return the value of a function of one or two tensors, or of a queue's pointers. Raises HostError for tensors of
    different sizes."""
    first = next(argument for argument in call.arguments if isinstance(argument, Tensor))
    if call.name in POINTER_FUNCTIONS:
        return scope.pointer(first, call.name)
    if call.name in TENSOR_FUNCTIONS:
        return TENSOR_FUNCTIONS[call.name][1](scope.tensor(first))
    a, b = (_operand_values(argument, first, scope) for argument in call.arguments)
    if a.size != b.size:
        raise HostError(f"{call.name}: the tensors have {a.size} and {b.size} elements")
    return PAIR_FUNCTIONS[call.name][1](a, b)


def _operand_values(argument: Tensor | Ideal, other: Tensor, scope: Scope) -> Values:
    """Return the elements of an operand of a function of two tensors; for the word `ideal`, those of `other` in
    precision "ideal"."""
    if isinstance(argument, Ideal):
        return scope.tensor(other, ideal=True)
    return scope.tensor(argument)


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
_MAX_DEPTH: Final = 50  # far from Python's limit of recursion
_MAX_OPERATORS: Final = 200  # likewise: a sum of so many terms is a tree as deep
_MAX_SLOT_DIGITS: Final = 9  # so that any slot fits 32 bits
_ERROR_CONTEXT: Final = 60
"""Characters of a text on each side of an error."""
_ARGUMENTS: Final = {
    **dict.fromkeys(TENSOR_FUNCTIONS, 1),
    **dict.fromkeys(PAIR_FUNCTIONS, 2),
    **dict.fromkeys(POINTER_FUNCTIONS, 1),
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def parse(text: str) -> Node:
    """Parse an expression. Raises HostError that names the column and suggests what was probably meant."""
    parser = _Parser(text)
    tree = parser.disjunction(0)
    parser.expect_end()
    return tree


def parse_tensor(text: str) -> Tensor:
    """Parse a reference to a tensor: `op:NAME`, `queue:NAME` or NAME, each with or without `[slot]`. Raises
    HostError."""
    parser = _Parser(text)
    reference = parser.tensor()
    parser.expect_end()
    return reference


def _tokens(text: str) -> list[_Token]:
    """Split a text into tokens, with a token "end" after the last. Raises HostError for characters that begin none."""
    tokens: list[_Token] = []
    place = 0
    end = len(text.rstrip())
    while place < end:
        token = _TOKEN.match(text, place)
        if token is None or token.lastgroup is None:
            remainder = text[place:]
            column = place + len(remainder) - len(remainder.lstrip())
            raise _error_at(text, column, f"{text[column]!r} means nothing here")
        tokens.append(_Token(token.lastgroup, token[token.lastgroup], token.start(token.lastgroup)))
        place = token.end()
    return [*tokens, _Token("end", "", end)]


def _error_at(text: str, column: int, problem: str) -> HostError:
    """Return a HostError on a problem at a column of a text; it quotes the text, or the part around the column of a
    long one."""
    if len(text) <= 2 * _ERROR_CONTEXT:
        quote = repr(text.strip())
    else:
        part = text[max(0, column - _ERROR_CONTEXT) : column + _ERROR_CONTEXT]
        quote = f"a text of {len(text)} characters, near {part.strip()!r}"
    return HostError(f"{problem} (column {column + 1} of {quote})")


class _Parser:
    """Recursive-descent parser of expressions, one method for each level of precedence."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._operators = 0

    @property
    def _token(self) -> _Token:
        """Return the next token without consuming it."""
        return self._tokens[self._next]

    def _error_here(self, problem: str, token: _Token | None = None) -> HostError:
        """Return a HostError on a problem at a token, by default the next one."""
        return _error_at(self._text, (token or self._token).column, problem)

    def _take(self, *texts: str) -> str:
        """Consume the next token and return its text if it is one of `texts`; else leave it and return ""."""
        text = self._token.text
        if self._token.kind not in ("sign", "name") or text not in texts:
            return ""
        self._next += 1
        return text

    def _expect(self, text: str) -> None:
        """Consume the next token. Raises HostError if it does not have this text."""
        if not self._take(text):
            raise self._error_here(f"{text!r} is missing")

    def _join_operands(self, operator: str, left: Node, right: Node) -> Node:
        """Return the node of an operator of two operands. Raises HostError beyond `_MAX_OPERATORS`: the tree is walked
        by recursion, and a chain of operators is as deep as it is long."""
        self._operators += 1
        if self._operators > _MAX_OPERATORS:
            raise self._error_here(f"more than {_MAX_OPERATORS} operators in one expression")
        return Binary(operator, left, right)

    def expect_end(self) -> None:
        """Raise HostError if there are tokens left."""
        if self._token.kind != "end":
            raise self._error_here(f"{self._token.text!r} is too much")

    def disjunction(self, depth: int) -> Node:
        """Parse a complete expression, at the level of `or`; `depth` counts the parentheses and signs around it."""
        self._require_depth(depth)
        left = self._conjunction(depth)
        while self._take("or"):
            left = self._join_operands("or", left, self._conjunction(depth))
        return left

    def _conjunction(self, depth: int) -> Node:
        """Parse at the level of `and`."""
        left = self._negation(depth)
        while self._take("and"):
            left = self._join_operands("and", left, self._negation(depth))
        return left

    def _negation(self, depth: int) -> Node:
        """Parse a comparison, with `not` before it any number of times."""
        if self._take("not"):
            self._require_depth(depth)
            return Unary("not", self._negation(depth + 1))
        left = self._sum(depth)
        operator = self._take(*_COMPARISONS)
        if not operator:
            return left
        return self._join_operands(operator, left, self._sum(depth))

    def _require_depth(self, depth: int) -> None:
        """Raise HostError beyond `_MAX_DEPTH`: parser and evaluation recurse."""
        if depth > _MAX_DEPTH:
            raise self._error_here(f"more than {_MAX_DEPTH} parentheses and signs within each other")

    def _sum(self, depth: int) -> Node:
        """Parse at the level of `+` and `-`."""
        left = self._product(depth)
        while operator := self._take("+", "-"):
            left = self._join_operands(operator, left, self._product(depth))
        return left

    def _product(self, depth: int) -> Node:
        """Parse at the level of `*`, `/` and `%`."""
        left = self._factor(depth)
        while operator := self._take("*", "/", "%"):
            left = self._join_operands(operator, left, self._factor(depth))
        return left

    def _factor(self, depth: int) -> Node:
        """Parse an operand with its signs."""
        self._require_depth(depth)
        if self._take("-"):
            return Unary("-", self._factor(depth + 1))
        return self._atom(depth)

    def _atom(self, depth: int) -> Node:
        """Parse a number, variable, word, call, or an expression in parentheses."""
        token = self._token
        if self._take("("):
            inner = self.disjunction(depth + 1)
            self._expect(")")
            return inner
        self._next += token.kind != "end"
        match token.kind:
            case "number":
                return Number(float(token.text))
            case "variable":
                return Variable(token.text)
            case "name" if self._token.text == "(":
                return self._parse_call(token)
            case "name" if token.text in WORDS:
                return Word(token.text)
            case "name":
                problem = f"{token.text!r} is not a number: a tensor goes into a function, such as absmax({token.text})"
                hint = near(token.text, (*WORDS, *_ARGUMENTS))
                if hint:
                    problem = f"{problem}; {hint}"
                raise self._error_here(problem, token)
            case "end":
                raise self._error_here("something is missing at the end", token)
            case _:
                raise self._error_here(f"{token.text!r} means nothing here", token)

    def _parse_call(self, name: _Token) -> Call:
        """Parse the arguments of a function, whose name has been read."""
        count = _ARGUMENTS.get(name.text)
        if count is None:
            hint = near(name.text, _ARGUMENTS)
            functions = f"functions: {', '.join(_ARGUMENTS)}"
            if hint:
                functions = f"{hint}; {functions}"
            raise self._error_here(f"no function {name.text!r} ({functions})", name)
        self._expect("(")
        arguments = [self._parse_argument(name.text)]
        while self._take(","):
            arguments.append(self._parse_argument(name.text))
        self._expect(")")
        if len(arguments) != count or all(isinstance(argument, Ideal) for argument in arguments):
            expected = {1: "one tensor", 2: "two tensors, one of which may be `ideal`"}[count]
            raise self._error_here(f"{name.text} takes {expected}", name)
        return Call(name.text, tuple(arguments))

    def _parse_argument(self, function: str) -> Tensor | Ideal:
        """Parse an argument of a call: a tensor, or `ideal` in a function of two tensors."""
        if self._token.text == "ideal" and self._token.kind == "name" and function in PAIR_FUNCTIONS:
            self._next += 1
            return Ideal()
        return self.tensor()

    def tensor(self) -> Tensor:
        """Parse a reference to a tensor, with or without a slot."""
        token = self._token
        if token.kind != "name":
            raise self._error_here("the name of a queue or op is missing")
        self._next += 1
        name = token.text
        kind: Literal["", "op", "queue"] = ""
        if name.startswith("op:"):
            kind = "op"
            name = name.removeprefix("op:")
        elif name.startswith("queue:"):
            kind = "queue"
            name = name.removeprefix("queue:")
        slot = None
        if self._take("["):
            number = self._token
            if number.kind != "number" or not number.text.isdecimal() or len(number.text) > _MAX_SLOT_DIGITS:
                raise self._error_here(f"a slot is a number of 0 or more, of at most {_MAX_SLOT_DIGITS} digits")
            self._next += 1
            self._expect("]")
            slot = int(number.text)
        return Tensor(name.strip("'"), kind, slot)


Piece = str | Node | Tensor
Pieces = tuple[Piece, ...]
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


def parse_pieces(text: str, expression: Callable[[str], Node]) -> Pieces:
    """Split the text of a log point into plain text and, from between braces, references to tensors and expressions;
    `expression` parses the latter. Raises HostError."""
    if not text.strip():
        raise HostError("the text to print is missing")
    pieces: list[Piece] = []
    for number, part in enumerate(_BRACES.split(text)):
        if number % 2:  # what the group of `_BRACES` matched
            pieces.append(_parse_piece(part, expression))
        elif part:
            pieces.append(part)
    return tuple(pieces)


def _parse_piece(text: str, expression: Callable[[str], Node]) -> Piece:
    """Parse the text between two braces: a tensor by its name alone, else an expression."""
    try:
        reference = parse_tensor(text)
    except HostError:
        return expression(text)
    if reference.name in WORDS and not reference.kind:
        return expression(text)
    return reference


def format_pieces(pieces: Pieces, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    """Return the text of a log point: `value` evaluates its expressions, `words` describes its tensors. One that has no
    value is replaced by the reason in angle brackets."""
    return "".join(_format_piece(piece, value, words) for piece in pieces)


def _format_piece(piece: Piece, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    """Return the text for one piece of a log point."""
    if isinstance(piece, str):
        return piece
    try:
        if isinstance(piece, Tensor):
            return words(piece)
        return f"{value(piece):g}"
    except HostError as error:
        return f"<{error}>"
