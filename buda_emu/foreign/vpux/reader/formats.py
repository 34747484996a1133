"""Interpret the formats of the op table: text and format become operands, attributes and types."""

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from buda_emu.foreign.vpux.model import Attribute, Op, Opaque, Type, Use, Value
from buda_emu.foreign.vpux.reader.scanner import VALUE, ReadError, Scanner
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.reader.values import ValueReader

_ENTRY = re.compile(r'\{\s*(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*")\s*[=:,]')
"""The beginning of a dictionary whose first entry has a value, or is not the only one."""
_LONE_WORD = re.compile(r'\{\s*([A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*")?\s*\}')
_END_OF_STATEMENT = re.compile(r"[ \t\r]*(?:\n|\}|\Z)")
_OF_ANY_TEXT: Final = ("entries", "tail")
"""Elements that take dictionaries and locations as they stand, well-formed or not."""

Scope: TypeAlias = ChainMap[str, Value]


@dataclass(slots=True)
class Parts:
    """The parts of an op that have been read so far."""

    operands: dict[str, tuple[Use, ...]] = field(default_factory=dict[str, tuple[Use, ...]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    types: tuple[Type, ...] = ()
    body: tuple[Op, ...] = ()
    blocks: int = 0


@dataclass(slots=True)
class FormatReader:
    """Reads one op by its format. `region` reads a region in braces, `skip` goes to the next statement."""

    scanner: Scanner
    values: ValueReader
    region: Callable[[Scope], tuple[tuple[Op, ...], int]]
    skip: Callable[[], None]
    scope: Scope

    def read(self, formats: tuple[str, ...]) -> Parts:
        """Read an op by the first format that fits. Raises the ReadError of the format that came furthest."""
        start = self.scanner.at
        worst: ReadError | None = None
        for text in formats:
            self.scanner.at = start
            try:
                parts = Parts()
                self._read_elements(text.split(), parts)
                return parts
            except ReadError as error:
                if worst is None or error.offset > worst.offset:
                    worst = error
        raise worst or self.scanner.fail("expected an op")

    def _read_elements(self, elements: list[str], parts: Parts) -> None:
        """Read the elements of a format in order, with the attributes in braces that may stand before each, into
        `parts`."""
        at = 0
        while at < len(elements):
            if elements[at] not in _OF_ANY_TEXT:
                self.annotations(parts, before_region="{..}" in elements[at:] or "{..}?" in elements[at:])
            if elements[at] == "any(":
                stop = elements.index(")", at)
                self._read_in_any_order(elements[at + 1 : stop], parts)
                at = stop
            elif elements[at] == ",":
                at += 1
                self._read_further(elements[at], parts)
            elif elements[at : at + 4] == [":", "(T)", "->", "T"]:
                self.scanner.expect(":")
                self.values.types()
                self.scanner.expect("->")
                parts.types = self.values.types()
                at += 3
            else:
                self._read_element(elements[at], parts)
            at += 1
        self.annotations(parts)

    def annotations(self, parts: Parts, *, before_region: bool = False) -> None:
        """Read attribute dictionaries and skip locations, which may stand between any two parts of an op and behind
        it. With `before_region` a region may come next, whose brace is not that of a dictionary."""
        scanner = self.scanner
        while True:
            skipped = scanner.location()
            if scanner.sees("{") and not (before_region and not self._sees_dictionary()):
                parts.attributes.update(self.values.dictionary())
            elif not skipped:
                return

    def _sees_dictionary(self) -> bool:
        """Return whether the brace that comes next is a dictionary's, not a region's.

        A lone word is a unit attribute if no op has that name. Empty braces are a dictionary if the op goes on behind
        them.
        """
        scanner = self.scanner
        if _ENTRY.match(scanner.text, scanner.at, scanner.end) is not None:
            return True
        lone = _LONE_WORD.match(scanner.text, scanner.at, scanner.end)
        if lone is None:
            return False
        if lone[1] and lone[1] not in OPS:
            return True
        start = scanner.at
        scanner.at = lone.end()
        if not scanner.location():
            scanner.at = lone.end()  # looking for a location skips the end of the line
        ends = _END_OF_STATEMENT.match(scanner.text, scanner.at, scanner.end) is not None
        goes_on = scanner.sees("{") or not ends
        scanner.at = start
        return goes_on

    def _read_in_any_order(self, elements: list[str], parts: Parts) -> None:
        """Read clauses, in any order, as long as one of them comes next. Raises ReadError where one that is not
        optional is missing."""
        remaining = list(elements)
        while True:
            self.annotations(parts)
            clause = next((element for element in remaining if self._sees_word(element)), None)
            if clause is None:
                break
            remaining.remove(clause)
            self._read_element(clause.removesuffix("?"), parts)
        missing = [element for element in remaining if not element.endswith("?")]
        if missing:
            raise self.scanner.fail(f"expected {missing[0]}, found {self.scanner.describe_next()}")

    def _sees_word(self, element: str) -> bool:
        """Return whether the word of an element comes next, without skipping it."""
        start = self.scanner.at
        begins = self.scanner.word(_leading_word(element))
        self.scanner.at = start
        return begins

    def _read_element(self, element: str, parts: Parts) -> None:
        """Read one element of a format into `parts`; one that ends with `?` may be absent."""
        scanner = self.scanner
        optional = element.endswith("?")
        plain = element.removesuffix("?")
        if plain in _SIMPLE:
            _SIMPLE[plain](self, parts, optional)
        elif plain[0] == "<":
            parts.attributes[plain[1:-1]] = self._read_parameter(plain)
        elif plain[0] == "[":
            if scanner.sees("[") or not optional:
                parts.attributes[plain[1:-1]] = self.values.integers()
        elif plain[0] == "@":
            if scanner.sees("@") or not optional:
                parts.attributes[plain[1:]] = self.values.symbol()
        elif plain[0] == "=":
            scanner.expect("=")
            parts.attributes[plain[1:]] = self.values.attribute()
        else:
            self._read_word(plain, optional, parts)

    def _read_word(self, plain: str, optional: bool, parts: Parts) -> None:
        """Read an element that begins with a word of the text, or a bare attribute. `plain` is the element without
        its `?`."""
        scanner = self.scanner
        word = _leading_word(plain)
        if plain == word:
            parts.attributes[word] = self.values.attribute()
            return
        if not scanner.word(word):
            if optional or plain.endswith("{}"):
                return
            raise scanner.fail(f"expected '{word}', found {scanner.describe_next()}")
        if plain.endswith("()"):
            parts.operands[word] = self.uses()
        elif plain.endswith("={..}"):
            _ = scanner.take(":") or scanner.take("=")
            parts.body += self.region(self.scope.new_child())[0]
        elif plain.endswith("{}"):
            parts.attributes.update(self.values.dictionary())
        else:
            _ = scanner.take(":") or scanner.take("=")
            parts.attributes[word] = self.values.attribute()

    def _read_parameter(self, plain: str) -> Attribute:
        """Read an attribute that is a string, or one word or number in angle brackets. `plain` names the element in
        the message."""
        if self.scanner.sees('"'):
            return self.scanner.string() or ""
        self.scanner.expect("<")
        attribute = self.values.attribute()
        self.scanner.expect(">")
        if isinstance(attribute, dict | tuple):
            raise self.scanner.fail(f"{plain} is one word or number")
        if isinstance(attribute, Opaque):
            return attribute.text
        return attribute

    def _read_further(self, name: str, parts: Parts) -> None:
        """Read attributes after commas, as many as there are, into one list under a name."""
        attributes: list[Attribute] = []
        while self.scanner.take(","):
            attribute = self.values.attribute()
            if isinstance(attribute, tuple):
                attributes += attribute
            else:
                attributes += (attribute,)
        parts.attributes[name] = tuple(attributes)

    # -------------------------------------------------------------------------------------------------- values
    def use(self) -> Use:
        """Read one operand, without its type. Raises ReadError."""
        name = self.scanner.need(VALUE, "a value")
        return Use(name, self.scope.get(name))

    def _read_use_as(self) -> Use:
        """Read one operand with the name that it has inside of the op, if any: `%a as %x`. Raises ReadError."""
        use = self.use()
        inner = None
        if self.scanner.word("as"):
            inner = Value(self.scanner.need(VALUE, "a value"), None)
        return Use(use.name, use.value, None, inner)

    def uses(self) -> tuple[Use, ...]:
        """Read operands: `(%a as %x: T, %b as %y: T)`, `(%a, %b : T, T)` or without types. Raises ReadError."""
        scanner = self.scanner
        scanner.expect("(")
        uses: list[Use] = []
        typed = 0
        while not scanner.sees(")"):
            if scanner.sees("%"):
                uses.append(self._read_use_as())
                behind = scanner.take(":")
            else:
                behind = typed > 0
                if not behind:
                    raise scanner.fail(f"expected a value, found {scanner.describe_next()}")
            if behind:
                if typed == len(uses):
                    raise scanner.fail("a type without a value")
                uses[typed] = _with_type(uses[typed], self.values.type())
                typed += 1
                scanner.location()
            if not scanner.take(","):
                break
        scanner.expect(")")
        return tuple(use if use.inner is None or use.inner.type else _with_type(use, use.type) for use in uses)

    # ---------------------------------------------------------------------------------------- simple elements
    def _read_braces(self, parts: Parts, _: bool) -> None:
        """Read attributes in braces, if there are any: element `{}` of a format."""
        if self.scanner.sees("{"):
            parts.attributes.update(self.values.dictionary())

    def _read_operand_list(self, parts: Parts, optional: bool) -> None:
        """Read a list of values in parentheses: element `()` of a format."""
        if self.scanner.sees("(") or not optional:
            parts.operands[""] = self.uses()

    def _read_one_value(self, parts: Parts, _: bool) -> None:
        """Read one value: element `%` of a format."""
        parts.operands[""] = (self.use(),)

    def _read_values(self, parts: Parts, _: bool) -> None:
        """Read values with commas between them, or none: element `%*` of a format."""
        uses: list[Use] = []
        while self.scanner.sees("%"):
            uses.append(self.use())
            if not self.scanner.take(","):
                break
        parts.operands[""] = tuple(uses)

    def _read_types_after_colon(self, parts: Parts, optional: bool) -> None:
        """Read types after a colon, and give them to the operands if there are as many: element `:T` of a format."""
        if self.scanner.take(":"):
            types = self.values.types()
            uses = parts.operands.get("", ())
            if len(types) == len(uses):
                parts.operands[""] = tuple(_with_type(use, of) for use, of in zip(uses, types, strict=True))
        elif not optional:
            raise self.scanner.fail(f"expected ':', found {self.scanner.describe_next()}")

    def _read_result_type_after_colon(self, parts: Parts, _: bool) -> None:
        """Read the type of the result after a colon: element `:=T` of a format."""
        self.scanner.expect(":")
        parts.types = (self.values.type(),)

    def _read_types_after_arrow(self, parts: Parts, optional: bool) -> None:
        """Read the types of the results after an arrow: element `->T` of a format."""
        if self.scanner.sees("->") or not optional:
            self.scanner.expect("->")
            parts.types = self.values.types()

    def _read_type_after_to(self, parts: Parts, _: bool) -> None:
        """Read the type of the result after `to`: element `toT` of a format."""
        self.scanner.expect("to")
        parts.types = (self.values.type(),)

    def _read_bare_type(self, parts: Parts, _: bool) -> None:
        """Read the type of the result, which stands alone: element `T` of a format."""
        parts.types = (self.values.type(),)

    def _read_constant(self, parts: Parts, _: bool) -> None:
        """Read the value of a constant up to the colon before its type: element `value` of a format."""
        start = self.scanner.at
        parts.attributes["value"] = self.values.attribute()
        stop = self.scanner.at
        colon = self.scanner.text.rfind(":", start, stop)
        self.scanner.at = stop if colon < 0 else colon

    def _read_region(self, parts: Parts, optional: bool) -> None:
        """Read a region in braces with its ops: element `{..}` of a format."""
        if self.scanner.sees("{") or not optional:
            parts.body, parts.blocks = self.region(self.scope.new_child())

    def _read_entries(self, parts: Parts, _: bool) -> None:
        """Read a name in quotes and attributes without braces, if either is there: element `entries` of a format."""
        if self.scanner.sees('"'):
            parts.attributes["name"] = self.scanner.string() or ""
        start = self.scanner.at
        try:
            parts.attributes.update(self.values.entries("{") if not self.scanner.sees("{") else {})
        except ReadError:
            self.scanner.at = start

    def _read_tail(self, parts: Parts, _: bool) -> None:
        """Skip to the next statement and keep the text up to there as an attribute: element `tail` of a format."""
        start = self.scanner.at
        self.skip()
        parts.attributes.setdefault("text", self.scanner.text[start : self.scanner.at].strip())


_SIMPLE: Mapping[str, Callable[[FormatReader, Parts, bool], None]] = MappingProxyType(
    {
        "{}": FormatReader._read_braces,  # pyright: ignore[reportPrivateUsage]  # a table of this class
        "()": FormatReader._read_operand_list,  # pyright: ignore[reportPrivateUsage]
        "%": FormatReader._read_one_value,  # pyright: ignore[reportPrivateUsage]
        "%*": FormatReader._read_values,  # pyright: ignore[reportPrivateUsage]
        ":T": FormatReader._read_types_after_colon,  # pyright: ignore[reportPrivateUsage]
        ":=T": FormatReader._read_result_type_after_colon,  # pyright: ignore[reportPrivateUsage]
        "->T": FormatReader._read_types_after_arrow,  # pyright: ignore[reportPrivateUsage]
        "toT": FormatReader._read_type_after_to,  # pyright: ignore[reportPrivateUsage]
        "T": FormatReader._read_bare_type,  # pyright: ignore[reportPrivateUsage]
        "value": FormatReader._read_constant,  # pyright: ignore[reportPrivateUsage]
        "{..}": FormatReader._read_region,  # pyright: ignore[reportPrivateUsage]
        "entries": FormatReader._read_entries,  # pyright: ignore[reportPrivateUsage]
        "tail": FormatReader._read_tail,  # pyright: ignore[reportPrivateUsage]
    }
)


def _leading_word(element: str) -> str:
    """Return the word that an element begins with: letters, digits and underscores."""
    stop = next((at for at, letter in enumerate(element) if not (letter.isalnum() or letter == "_")), len(element))
    return element[:stop]


def _with_type(use: Use, type_: Type | None) -> Use:
    """Return an operand with a type, which its inner name gets, too."""
    if use.inner is None:
        inner = None
    else:
        inner = Value(use.inner.name, type_)
    return Use(use.name, use.value, type_, inner)
