"""`buda-emu ops`: the op types of the netlist language and their attributes."""

import argparse
from collections.abc import Iterable, Iterator

from buda_emu.app.cli.output import complain, say
from buda_emu.report.terminal.text import table
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES, OpType
from buda_emu.spec.precision import PRECISIONS
from buda_emu.support.checker.suggest import nearest
from buda_emu.support.errors import Exit

EXAMPLE = "buda-emu ops"

OP_HEADERS = ("op", "inputs", "in fused ops", "what it computes")
ATTRIBUTE_HEADERS = ("attribute", "value", "default", "op types", "changes values", "meaning")
DEVICE_HEADERS = ("op", "exact on wormhole_b0 and blackhole for", "what was not compared, not counting other formats")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ops`: op types, and the precision that is described."""
    parser.add_argument("op", nargs="*", metavar="OP", help="only these op types, each with its attributes")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="format",
        help="device: how certain the bits of each op are on each architecture, and what is not known",
    )


def main(args: argparse.Namespace) -> int:
    """Print the table of ops, or the named ops with their attributes. Exit code 2 for an unknown op type."""
    if args.precision == "device" and not args.op:
        _print_claims()
        return 0
    if not args.op:
        say(table(OP_HEADERS, op_rows(), prose=(3,), whole=(0,)))
        say()
        _print_attributes(attribute_rows())
        say()
        say("`buda-emu ops OP` lists the attributes of one op type")
        return 0
    code = Exit.OK
    for number, name in enumerate(args.op):
        if name not in OP_TYPES:
            near = nearest(name, OP_TYPES)
            hint = f" (did you mean {near}?)" if near else ""
            complain(f"buda-emu ops: no op type {name}{hint}")
            code = Exit.REFUSED
            continue
        if number:
            say()
        _print_op(OP_TYPES[name], on_device=args.precision == "device")
    return code


def _print_op(op: OpType, *, on_device: bool) -> None:
    """Print an op type and its attributes, with `on_device` also how certain its bits are."""
    say(f"{op.name}: {op.doc}")
    say(f"  inputs: {op.inputs_text}; in fused ops: {'yes' if op.in_fused else 'no'}")
    if on_device:
        for _, formats, missing in (row for row in device_rows() if row[0] == op.name):
            say(f"  in precision device {DEVICE_HEADERS[1]}: {formats}; {DEVICE_HEADERS[2]}: {missing}")
    say()
    _print_attributes(attribute_row(spec) for spec in ATTRIBUTES.values() if is_legal_on(spec, op.name))


def _print_attributes(rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table of attributes."""
    say(table(ATTRIBUTE_HEADERS, rows, prose=(3, 5), whole=(0,)))


def _print_claims() -> None:
    """Print how certain the bits of each op are in precision "device", with every caveat."""
    from buda_emu.arithmetic.tensix.claims import NOT_CLAIMED
    from buda_emu.arithmetic.tensix.registers import CORES
    from buda_emu.emulator.ops.on_device.claims import MEANINGS, claim

    rows = [(op.name, *(claim(op.name, core) for core in CORES)) for op in OP_TYPES.values()]
    claims = ((name, *(word or "does not run" for word in words)) for name, *words in rows)
    say(table(("op", *CORES), claims, whole=(0,)))
    say()
    say(table(("claim", "meaning"), MEANINGS.items(), prose=(1,), whole=(0,)))
    say()
    say(table(DEVICE_HEADERS, device_rows(), prose=(1, 2), whole=(0,)))
    say()
    caveats = ((", ".join(caveat.cores), caveat.unit, caveat.text) for caveat in NOT_CLAIMED)
    say(table(("architectures", "of", "what is not claimed"), caveats, prose=(0, 1, 2)))


def op_rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each op type, under OP_HEADERS."""
    for op in OP_TYPES.values():
        yield op.name, op.inputs_text, "yes" if op.in_fused else "no", op.doc


def device_rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each op type that runs in precision "device", under DEVICE_HEADERS: the formats in which its bits
    are exact, and the cases that were not compared."""
    for op in OP_TYPES.values():
        if op.runs:
            exact = op.on_device.exact
            if len(exact) == len(NETLIST_FORMATS):
                formats = "every format"
            else:
                formats = ", ".join(exact) or "-"
            yield op.name, formats, op.on_device.open or "-"


def attribute_rows() -> Iterator[tuple[str, ...]]:
    """Return a row for each attribute, under ATTRIBUTE_HEADERS."""
    return map(attribute_row, ATTRIBUTES.values())


def attribute_row(spec: AttributeSpec) -> tuple[str, ...]:
    """Return the row of one attribute, under ATTRIBUTE_HEADERS."""
    value = spec.kind
    if spec.words and len(spec.words) < 8:
        value = "|".join(spec.words)
    if spec.types is None:
        types = "all"
    elif len(spec.types) > 8:
        types = "sfpu ops, matmul"
    else:
        types = " ".join(spec.types)
    name = "inputN" if spec.kind == "splice" else spec.name
    changes_values = "yes" if spec.has_effect else "no"
    return name, value, _default_text(spec), types, changes_values, spec.doc


def is_legal_on(spec: AttributeSpec, op_type: str) -> bool:
    """Return whether an op of this type may have the attribute."""
    return spec.types is None or op_type in spec.types


def _default_text(spec: AttributeSpec) -> str:
    """Return the default of an attribute as a netlist would write it, "-" for none."""
    if isinstance(spec.default, bool):
        return str(spec.default).lower()
    if spec.default in ("", ()):
        return "-"
    if isinstance(spec.default, tuple):
        return str(list(spec.default))  # type: ignore[arg-type]  # a tuple of plain values
    return str(spec.default)
