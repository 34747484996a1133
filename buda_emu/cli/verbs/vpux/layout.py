"""`buda-emu vpux layout`: memory shape, strides and codes of a tensor layout."""

import argparse
from typing import Any

from buda_emu.cli.arguments import add_json
from buda_emu.cli.output import say, say_json
from buda_emu.errors import HostError
from buda_emu.vpux.layout import DimsOrder, StrideReqs, address, alloc_bits

EXAMPLE = "buda-emu vpux layout --shape 1x16x49x1 --order NHWC --bits 16 --req 2:aligned:1024"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sub-verb's own arguments."""
    parser.add_argument("--shape", required=True, metavar="NxCx..", help="logical dimensions")
    parser.add_argument(
        "--order", metavar="ORDER", help="a name, a code such as 0x1342, an affine_map; default logical"
    )
    parser.add_argument("--bits", type=int, default=16, help="of an element (16)")
    parser.add_argument(
        "--req", action="append", default=[], metavar="DIM:KIND[:BITS]",
        help="of the stride of a memory dimension, 0 outermost: compact, aligned or fixed",
    )  # fmt: skip
    parser.add_argument("--index", metavar="N,C,..", help="a logical index whose address is wanted")
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Work it out. Exit code 2 for what is impossible."""
    shape = _numbers(args.shape, "x")
    order = _order(args.order, len(shape))
    memory = order.to_memory(shape)
    strides = StrideReqs([_requirement(item) for item in args.req]).calculate(args.bits, memory)
    found: dict[str, Any] = {
        "order": order.name, "permutation": list(order.perm), "code": hex(order.code),
        "kernel_code": hex(order.kernel_code), "affine_map": order.to_affine_map(), "mem_shape": list(memory),
        "mem_strides": list(strides), "strides": list(order.to_logical(strides)),
        "alloc_bits": alloc_bits(memory, strides, args.bits),
    }  # fmt: skip
    if args.index is not None:
        found["address_bits"] = address(_numbers(args.index, ","), order, strides)
    if args.json:
        say_json(found)
    else:
        for name, value in found.items():
            say(f"{name.replace('_', ' '):13} {value}")
    return 0


def _order(text: str | None, rank: int) -> Any:
    if text is None:
        return DimsOrder.identity(rank)
    if text.startswith("0x"):
        try:
            return DimsOrder.from_code(int(text, 16))
        except ValueError:
            raise HostError(f"--order {text}: not a code") from None
    return DimsOrder.from_affine_map(text) if text.startswith("affine_map") else DimsOrder.from_name(text)


def _numbers(text: str, between: str) -> tuple[int, ...]:
    parts = text.split(between)
    if not all(part.strip().isdecimal() and len(part) < 12 for part in parts):
        raise HostError(f"{text}: expected numbers with {between!r} between them")
    return tuple(int(part) for part in parts)


def _requirement(text: str) -> tuple[object, ...]:
    dim, _, rest = text.partition(":")
    kind, _, value = rest.partition(":")
    if not dim.isdecimal() or (value and not value.isdecimal()):
        raise HostError(f"--req {text}: expected DIM:KIND or DIM:KIND:BITS")
    return (int(dim), kind, int(value)) if value else (int(dim), kind)
