"""Read statements: modules, functions, aliases and operations. An unknown operation is skipped, and only its name is
kept (VPUX 3)."""

import re
from collections import ChainMap
from types import MappingProxyType
from typing import Final

from buda_emu.foreign.vpux.model import Attribute, Function, Module, Op, Split, Value, VpuxFile
from buda_emu.foreign.vpux.reader.formats import FormatReader, Parts, Scope
from buda_emu.foreign.vpux.reader.scanner import VALUE, ReadError, Scanner, blank_comments
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.reader.values import ValueReader
from buda_emu.support.errors import HostError

_RESULT = re.compile(r"%[\w$.]+(?:-[\w$.]+)*(?::(\d+))?")
_NAME = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_GENERIC = re.compile(r'"([A-Za-z_][\w$]*(?:\.[\w$]+)+)"(?=\s*\()')
_ALIAS_IS = re.compile(r"[#!][A-Za-z_][\w$-]*(?=\s*=)")
_BLOCK = re.compile(r"\^[\w$.-]+")
_BEGINS = re.compile(
    r"""[ \t\r]*(?:%[\w$.-]+(?::\d+)?(?:[ \t]*,[ \t]*%[\w$.-]+(?::\d+)?)*[ \t]*=(?!=)|[A-Za-z_][\w$]*\.[A-Za-z_]
    |"[\w$.]+"\s*\(|(?:return|module|func|alloc|dealloc|constant|call|DataInfo)\b|\}|\^\w|[#!][A-Za-z_][\w$-]*\s*=)""",
    re.VERBOSE,
)
_STOPS = re.compile(r'[()\[\]{}\n]|"(?:[^"\\\n]|\\.)*"')
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_EMPTY: Final = MappingProxyType[str, Attribute]({})
MOST_RESULTS: Final = 10_000  # so that a forged number of results does not fill memory
MOST_MODULES: Final = 1_000
"""The deepest nesting of modules that is read: a forged text could nest without end."""


class StatementReader:
    """Reads one split into a module."""

    def __init__(self, document: VpuxFile, text: str, start: int, end: int, split: int) -> None:
        self._document = document
        self._scanner = Scanner(text, start, end)
        self._values = ValueReader(self._scanner)
        self._split = split
        self._modules: list[Module] = []
        self.functions: list[Function] = []
        """Functions with a body, in program order."""

    def read(self) -> Module:
        """Read the whole split and return it as a module. Raises ReadError."""
        scanner = self._scanner
        root = Module("")
        self._modules.append(root)
        while True:
            self._read_module_body(self._modules[-1])
            if len(self._modules) == 1:
                break
            scanner.expect("}")
            scanner.location()
            self._modules.pop()
        if scanner.at < scanner.end:
            raise scanner.fail(f"{scanner.describe_next()} closes nothing")
        return root

    def _read_module_body(self, module: Module) -> None:
        """Read statements up to the end of the innermost module, entering modules that begin on the way."""
        scanner = self._scanner
        while not scanner.sees("}") and scanner.at < scanner.end:
            if self._read_alias():
                continue
            start = scanner.at
            if scanner.word("builtin.module") or scanner.word("module"):
                module.modules.append(self._read_module_head())
                module = module.modules[-1]
                continue
            if scanner.word("func.func") or scanner.word("func"):
                function = self._read_function(start)
                module.functions.append(function)
                if function.body is not None:
                    self.functions.append(function)
            else:
                module.ops.append(self._read_op(ChainMap()))
            scanner.location()

    def _read_module_head(self) -> Module:
        """Read the beginning of a module, up to its brace."""
        scanner = self._scanner
        if scanner.sees("@"):
            name = ".".join(self._values.symbol().path)
        else:
            name = ""
        if scanner.word("attributes"):
            attributes = self._values.dictionary()
        else:
            attributes = _EMPTY
        module = Module(name, attributes)
        if len(self._modules) > MOST_MODULES:
            raise scanner.fail(f"more than {MOST_MODULES} modules inside each other")
        scanner.expect("{")
        self._modules.append(module)
        return module

    def _read_alias(self) -> bool:
        """Read the definition of an alias if one comes next, and return whether it did."""
        scanner = self._scanner
        name = scanner.match(_ALIAS_IS)
        if name is None:
            return False
        scanner.expect("=")
        self._values.define(name)
        scanner.location()
        return True

    # ----------------------------------------------------------------------------------------------- functions
    def _read_function(self, start: int) -> Function:
        """Read a function, of which `func` at `start` was read, up to the end of its body, if it has one."""
        scanner = self._scanner
        for word in ("private", "public", "nested"):
            if scanner.word(word):
                break
        name = self._values.symbol()
        end = scanner.at
        arguments = self._read_arguments()
        if scanner.take("->"):
            results = self._values.types()
        else:
            results = ()
        scanner.location()
        if scanner.word("attributes"):
            attributes = self._values.dictionary()
        else:
            attributes = _EMPTY
        scanner.location()
        body: tuple[Op, ...] | None = None
        blocks = 0
        if scanner.sees("{"):
            body, blocks = self._read_region(ChainMap({value.name: value for value in arguments}))
        return Function(
            name=name.leaf,
            split=self._split,
            offset=start,
            end=end,
            arguments=arguments,
            results=results,
            attributes=attributes,
            body=body,
            blocks=blocks,
            modules=tuple(self._modules),
            document=self._document,
        )

    def _read_arguments(self) -> tuple[Value, ...]:
        """Read a function's arguments, `(%a: T {attributes}, T)`."""
        scanner = self._scanner
        scanner.expect("(")
        arguments: list[Value] = []
        while not scanner.sees(")"):
            name = scanner.match(VALUE)
            if name is not None:
                scanner.expect(":")
            arguments.append(Value(name or "", self._values.type(), len(arguments)))
            if scanner.sees("{"):
                self._values.dictionary()
            scanner.location()
            if not scanner.take(","):
                break
        scanner.expect(")")
        return tuple(arguments)

    def _read_region(self, scope: Scope) -> tuple[tuple[Op, ...], int]:
        """Read a region in braces, and return its ops and the number of blocks that they form."""
        scanner = self._scanner
        scanner.expect("{")
        ops: list[Op] = []
        blocks = 1
        with scanner.nest():
            while not scanner.sees("}"):
                if scanner.at >= scanner.end:
                    raise scanner.fail("a '}' is missing at the end of the text")
                if scanner.match(_BLOCK) is not None:
                    blocks += bool(ops)
                    for value in self._read_arguments() if scanner.sees("(") else ():
                        scope[value.name] = value
                    scanner.expect(":")
                elif not self._read_alias():
                    ops.append(self._read_op(scope))
                    scanner.location()
        scanner.expect("}")
        return tuple(ops), blocks

    # --------------------------------------------------------------------------------------------- operations
    def _read_op(self, scope: Scope) -> Op:
        """Read an op with its results, which become known in the scope. Of an op that the table does not have, only
        the names are kept."""
        scanner = self._scanner
        names = self._read_result_names()
        scanner.space()
        start = scanner.at
        generic = _GENERIC.match(scanner.text, start, scanner.end)
        if generic is not None:
            scanner.at = generic.end()
            self._skip_statement()
            return self._make_unknown_op(generic[1], start, generic.end(), names, scope)
        name = scanner.need(_NAME, "a statement")
        end = scanner.at
        spec = OPS.get(name)
        if spec is None:
            if "." not in name and not names:
                raise scanner.fail(f"expected a statement, found {name!r}", start)
            self._skip_statement()
            return self._make_unknown_op(name, start, end, names, scope)
        reader = FormatReader(
            scanner=scanner, values=self._values, region=self._read_region, skip=self._skip_statement, scope=scope
        )
        if spec.formats == ("kernel",):
            parts = self._read_kernel(reader)
        else:
            parts = reader.read(spec.formats)
        types = parts.types
        results = tuple(Value(result_name, types[n] if n < len(types) else None) for n, result_name in enumerate(names))
        scope.update((value.name, value) for value in results)
        self._add_result_aliases(names, results, scope)
        return Op(
            name=name,
            offset=start,
            end=end,
            known=True,
            results=results,
            types=types,
            operands=MappingProxyType(parts.operands),
            attributes=MappingProxyType(parts.attributes),
            body=parts.body,
            blocks=parts.blocks,
        )

    def _make_unknown_op(self, name: str, start: int, end: int, names: list[str], scope: Scope) -> Op:
        """Return an op that was skipped, with results of unknown types, which become known in the scope. `start`
        and `end` are the offsets of its name."""
        results = tuple(Value(result_name, None) for result_name in names)
        scope.update((value.name, value) for value in results)
        self._add_result_aliases(names, results, scope)
        return Op(name=name, offset=start, end=end, known=False, results=results)

    @staticmethod
    def _add_result_aliases(names: list[str], results: tuple[Value, ...], scope: Scope) -> None:
        """Make `%r#0` known as `%r`, too."""
        for name, value in zip(names, results, strict=True):
            if name.endswith("#0"):
                scope[name.removesuffix("#0")] = value

    def _read_result_names(self) -> list[str]:
        """Read the names of results, `%r, %s:2 =`, and return %r, %s#0 and %s#1."""
        scanner = self._scanner
        names: list[str] = []
        while scanner.sees("%"):
            text = scanner.need(_RESULT, "the name of a result")
            name, _, count = text.partition(":")
            if count:
                number = int(count[:9])
                if number > MOST_RESULTS:
                    raise scanner.fail(f"an op of more than {MOST_RESULTS} results")
                names += [f"{name}#{n}" for n in range(number)]
            else:
                names.append(name)
            if not scanner.take(","):
                scanner.expect("=")
                break
        return names

    def _read_kernel(self, reader: FormatReader) -> Parts:
        """Read a VPUIP.SW.Kernel: attributes, `@kernel`, clauses in any order, results, and a region that knows the
        inner names only."""
        scanner = self._scanner
        parts = Parts()
        reader.annotations(parts)
        symbol = self._values.symbol()
        parts.attributes["callee"] = symbol
        while True:
            reader.annotations(parts, before_region=True)
            if not self._read_kernel_clause(reader, parts):
                break
        if scanner.take("->"):
            parts.types = self._values.types()
        reader.annotations(parts, before_region=True)
        if scanner.sees("{"):
            uses = parts.operands.get("inputs", ()) + parts.operands.get("outputs", ())
            inner = [use.inner for use in uses if use.inner is not None]
            parts.body, parts.blocks = self._read_region(ChainMap({value.name: value for value in inner}))
            reader.annotations(parts)
        return parts

    def _read_kernel_clause(self, reader: FormatReader, parts: Parts) -> bool:
        """Read one clause of a VPUIP.SW.Kernel; return False if no clause follows."""
        scanner = self._scanner
        if scanner.word("on"):
            if not scanner.word("tile"):
                raise scanner.fail(f"expected 'tile', found {scanner.describe_next()}")
            parts.attributes["tile"] = self._values.attribute()
            return True
        if scanner.word("strides"):
            scanner.expect("(")
            parts.attributes["strides"] = self._values.attribute()
            scanner.expect(")")
            return True
        word = next((clause for clause in KERNEL_CLAUSES if scanner.word(clause)), None)
        if word is None:
            return False
        parts.operands[word] = reader.uses()
        return True

    def _skip_statement(self) -> None:
        """Skip to the next line that begins a statement, or to the bracket that ends the region."""
        scanner = self._scanner
        depth: list[str] = []
        for match in _STOPS.finditer(scanner.text, scanner.at, scanner.end):
            text = match[0]
            if text in "([{":
                depth.append(text)
            elif text in _PAIRS:
                if not depth:
                    scanner.at = match.start()
                    return
                if depth.pop() != _PAIRS[text]:
                    raise scanner.fail(f"{text!r} closes nothing", match.start())
            elif text == "\n" and not depth and _BEGINS.match(scanner.text, match.end(), scanner.end):
                scanner.at = match.end()
                return
        if depth:
            raise scanner.fail("a bracket is not closed")
        scanner.at = scanner.end


KERNEL_CLAUSES: Final = ("inputs", "outputs", "dynamicInputShapes", "dynamicOutputShapes", "profiling_data")
"""Clauses of VPUIP.SW.Kernel that list values."""


_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


def read_into(document: VpuxFile, split: int | None = None) -> None:
    """Add the content of a document's text to it: all its splits, or one. Raises HostError for a split that is not
    there."""
    text = document.text
    marks = [match.span() for match in _SPLIT.finditer(text)]
    starts = [0, *(end for _, end in marks)]
    ends = [*(start for start, _ in marks), len(text)]
    if split is not None and not 0 <= split < len(starts):
        raise HostError(f"{document.path} has splits 0 to {len(starts) - 1}, not {split}")
    parts = [(number, *span) for number, span in enumerate(zip(starts, ends, strict=True)) if split in (None, number)]
    plain = ""
    for number, start, end in parts:
        plain += text[len(plain) : start] + blank_comments(text[start:end])
        _read_split(document, plain, number, start, end)


def _read_split(document: VpuxFile, plain: str, number: int, start: int, end: int) -> None:
    """Add a split, from offset `start` to `end`, to a document, with the error where it cannot be read. `plain` is
    the text without comments."""
    reader = StatementReader(document=document, text=plain, start=start, end=end, split=number)
    try:
        module = reader.read()
    except ReadError as error:
        document.add(Split(number=number, start=start, end=end, module=None, error=(error.offset, str(error))), ())
        return
    document.add(Split(number, start, end, module), reader.functions)
