"""The generated pages of the VPUX room: ops, kernels, rules, from their tables."""

from collections.abc import Callable, Iterable, Sequence

from buda_emu.foreign.vpux.kernels import KERNELS
from buda_emu.foreign.vpux.reader.table import OPS, ROLES
from buda_emu.foreign.vpux.rules import BOOK
from buda_emu.foreign.vpux.support import NEVER_MOVES
from buda_emu.support.checker import Rule

Row = Sequence[str]
Table = Callable[[Row, Iterable[Row]], str]

OPS_PAGE = """\
# VPUX: operations

These are the ops that `buda-emu vpux` reads ([vpux.md](vpux.md)). For any other op only the name is kept, and a
function that contains one is not run. The form of each op is the line of the table that the reader interprets, similar
to MLIR's declarative formats.

{tables}"""

KERNELS_PAGE = """\
# VPUX: kernels

This page lists the software kernels by entry point ([vpux.md](vpux.md)).

* Elements are computed in float64, or int64, and rounded once to the output's type: floats to nearest even; floats to
  integers are truncated and saturate, NaN is 0; integers saturate.
* Functions such as e^x are made of additions, products, quotients and roots, so bits are the same on every machine. A
  kernel is `exact` if its results do not depend on how it is computed.
* An attribute `axis`, and those of reductions, count from the innermost dimension in memory of the first input, 0,
  outwards; negative ones are a fault (X046), because the compiler resolves them earlier.
* `x[n]` are as many as attribute n says; `x=0` may be left out. Too many attributes are ignored, too few are a fault
  (X046).

{tables}"""

RULES_PAGE = """\
# VPUX: rules

`buda-emu vpux check` checks a document against these rules ([vpux.md](vpux.md)); `buda-emu explain X014` prints one. Of
several broken rules about one buffer, view or map of shapes, only the first is reported. The limits are those of the
architecture: 37XX, or that of `--arch`.

{table}

{stages}

"""


def vpux_pages(table: Table) -> dict[str, str]:
    """Return the text of each page by its name."""
    return {
        "other-compilers/vpux-ops.md": OPS_PAGE.format(tables="\n".join(_ops(table))),
        "other-compilers/vpux-kernels.md": KERNELS_PAGE.format(tables="\n".join(_kernels(table))),
        "other-compilers/vpux-rules.md": _rules(table),
    }


def _ops(table: Table) -> Iterable[str]:
    """Yield a section for each role of ops."""
    for role, meaning in ROLES.items():
        rows = [(f"`{spec.name}`", spec.summary, _form(spec.formats)) for spec in OPS.values() if spec.role == role]
        note = " Never emulated: " + ", ".join(f"`{name}`" for name in NEVER_MOVES) + "." if role == "dma" else ""
        yield f"## {role}: {meaning}\n\n{note.strip()}\n\n{table(('op', 'what it is', 'form'), rows)}\n".replace(
            "\n\n\n", "\n"
        )


def _form(formats: Sequence[str]) -> str:
    """Return the forms of an op for a cell."""
    if formats == ("kernel",):
        return "`{} @kernel`, clauses in any order, `on tile N`, `->T`, `{..}`"
    return " or ".join(f"`{form}`" for form in formats)


def _kernels(table: Table) -> Iterable[str]:
    """Yield a section for each family of kernels."""
    families = dict.fromkeys(kernel.family for kernel in KERNELS.values())
    for name in families:
        rows = [
            (
                f"`{kernel.name}`",
                f"{kernel.inputs} / {kernel.outputs}",
                " ".join(f"`{attribute}`" for attribute in kernel.attributes) or "-",
                kernel.summary,
                "yes" if kernel.exact else "",
            )
            for kernel in KERNELS.values()
            if kernel.family == name
        ]
        yield f"## {name}\n\n{table(('entry', 'in / out', 'attributes', 'meaning', 'exact'), rows)}\n"


def _rules(table: Table) -> str:
    """Return the page of rules."""
    rows = [(rule.id, rule.severity, rule.stage, rule.summary, rule.fix) for rule in sorted_rules()]
    stages = "\n".join(f"* `{name}`: {meaning}" for name, meaning in BOOK.stages.items())
    return RULES_PAGE.format(table=table(("rule", "severity", "kind", "refused when", "to do"), rows), stages=stages)


def sorted_rules() -> list[Rule]:
    """Return the rules by number."""
    return sorted(BOOK.rules.values(), key=lambda rule: rule.id)
