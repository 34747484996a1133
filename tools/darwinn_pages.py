"""docs/other-compilers/darwinn-format.md from the tables that read packages: fields, rules, operators of the twin."""

from collections.abc import Callable, Iterable, Sequence

from buda_emu.foreign.darwinn import idl, tflite
from buda_emu.foreign.darwinn.flatbuffer import Table
from buda_emu.foreign.darwinn.flatbuffer.read import fields_of
from buda_emu.foreign.darwinn.rules import BOOK
from buda_emu.foreign.darwinn.twin.operators import OPERATORS

_PAGE = """\
# Edge TPU packages: tables, rules, operators

The reference for [darwinn.md](darwinn.md), field by field. Slots are in the order of the vtable.

{tables}
## Data types

{types}
## The `.tflite` around a package, and the models of twins

{models}
## Rules

`buda-emu explain D053` prints one of them.

{stages}

{rules}
## Operators of the twin

Everything else is refused by name.

{operators}"""


def format_page(table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """Return the page; `table` makes a Markdown table of headers and rows."""
    stages = "\n".join(f"* **{stage}**: {text}" for stage, text in BOOK.stages.items())
    declared = sorted(BOOK.rules.values(), key=lambda rule: rule.id)  # declared as imported
    rules = ((rule.id, rule.stage, rule.summary, rule.fix) for rule in declared)
    types = (
        (str(number), f"`{kind.name}`", str(kind.size), f"`{kind.dtype}`", "yes" if kind.signed else "")
        for number, kind in idl.ELEMENT_TYPES.items()
    )
    operators = ((str(op.code), f"`{op.name}`", op.types, op.says) for op in OPERATORS.values())
    return _PAGE.format(
        tables="\n".join(_fields(kind, table) for kind in idl.TABLES),
        types=table(("number", "name", "bytes", "in numpy", "sign bit flipped on the device"), types),
        models="\n".join(_fields(kind, table) for kind in tflite.TABLES),
        stages=stages,
        rules=table(("rule", "stage", "says", "to do"), rules),
        operators=table(("code", "operator", "types", "computes"), sorted(operators, key=lambda row: int(row[0]))),
    )


def _fields(kind: type[Table], table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """Return the section of one table of the format."""
    name = kind.__name__.removesuffix("Table")
    says = " ".join((kind.__doc__ or "").split())
    slots = fields_of(kind)
    if not slots:
        return f"### {name}\n\n{says}\n"
    rows = (
        (str(number), f"`{slot.name}`", slot.kind.name, _default(slot.default)) for number, slot in enumerate(slots)
    )
    return f"### {name}\n\n{says}\n\n{table(('slot', 'field', 'type', 'default'), rows)}"


def _default(value: object) -> str:
    return "absent" if value is None else str(value).lower()
