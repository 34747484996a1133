"""Verbs of `buda-emu vpux` that run nothing: `check` of documents, and `layout` of a tensor."""

import argparse
from collections.abc import Sequence
from typing import Final, NamedTuple

from buda_emu.app.cli.output import say, say_json
from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.foreign.vpux.layout import DimsOrder, StrideReqs, address, alloc_bits
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError

KIND = kind_by_name("vpux")


def check_verb(args: argparse.Namespace) -> int:
    """Check every document against the rules and print the findings. Exit code 0 when none has errors, 2 otherwise."""
    return check.print_results(args, check.check_files(args, KIND), arch=args.arch)


def layout_verb(args: argparse.Namespace) -> int:
    """Print memory shape, strides and codes of a tensor layout. Exit code 2 for an impossible one."""
    shape = _parse_numbers(args.shape, "x")
    order = _parse_order(args.order, len(shape))
    memory = order.to_memory(shape)
    strides = StrideReqs([_parse_requirement(text) for text in args.req]).calculate(args.bits, memory)
    bits = None
    if args.index is not None:
        bits = address(_parse_numbers(args.index, ","), order, strides)
    layout = _Layout(order, memory, strides, alloc_bits(memory, strides, args.bits), bits)
    figures = LAYOUT.as_json(layout)
    if args.json:
        say_json(figures)
    else:
        for name, value in figures.items():
            say(f"{name.replace('_', ' '):13} {value}")
    return 0


class _Layout(NamedTuple):
    """A layout in memory: its order, the shape and strides there, the bits that it takes, and the place of an
    element where one was asked for."""

    order: DimsOrder
    memory: Sequence[int]
    strides: Sequence[int]
    bits: int
    address: int | None


LAYOUT: Final = Columns[_Layout](
    Column("order", str, lambda layout: layout.order.name),
    Column("permutation", list[int], lambda layout: layout.order.perm),
    Column("code", str, lambda layout: hex(layout.order.code)),
    Column("kernel_code", str, lambda layout: hex(layout.order.kernel_code)),
    Column("affine_map", str, lambda layout: layout.order.to_affine_map()),
    Column("mem_shape", list[int], lambda layout: layout.memory),
    Column("mem_strides", list[int], lambda layout: layout.strides),
    Column("strides", list[int], lambda layout: layout.order.to_logical(layout.strides)),
    Column("alloc_bits", int, lambda layout: layout.bits),
    Column("address_bits", int, lambda layout: layout.address, optional=True),
)
"""The JSON of `vpux layout --json`."""


def _parse_order(text: str | None, rank: int) -> DimsOrder:
    """Return the order that a name, a code (0x...) or an affine map denotes; the logical one of that rank for None.
    Raises HostError for another text."""
    if text is None:
        return DimsOrder.identity(rank)
    if text.startswith("0x"):
        try:
            return DimsOrder.from_code(int(text, 16))
        except ValueError:
            raise HostError(f"--order {text}: not a code") from None
    if text.startswith("affine_map"):
        return DimsOrder.from_affine_map(text)
    return DimsOrder.from_name(text)


def _parse_numbers(text: str, between: str) -> tuple[int, ...]:
    """Parse numbers with `between`, such as x, between them. Raises HostError for another text."""
    parts = text.split(between)
    if not all(part.strip().isdecimal() and len(part) < 12 for part in parts):
        raise HostError(f"{text}: expected numbers with {between!r} between them")
    return tuple(int(part) for part in parts)


def _parse_requirement(text: str) -> tuple[object, ...]:
    """Parse `DIM:KIND` or `DIM:KIND:BITS`, a requirement on a stride, into the form that `StrideReqs` takes. Raises
    HostError for another text."""
    dim, _, rest = text.partition(":")
    kind, _, value = rest.partition(":")
    if not dim.isdecimal() or (value and not value.isdecimal()):
        raise HostError(f"--req {text}: expected DIM:KIND or DIM:KIND:BITS")
    if value:
        return (int(dim), kind, int(value))
    return (int(dim), kind)
