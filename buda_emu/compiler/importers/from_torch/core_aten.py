"""The operators of core ATen, into which torch.export decomposes models, and where each is computed, for `--ops` and
the documentation."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from buda_emu.compiler.importers.from_torch.declared import ATEN
from buda_emu.compiler.importers.from_torch.reader import ADVICE, decompositions
from buda_emu.compiler.importers.operators import Place


def core_overloads() -> dict[str, list[Any]]:
    """Return the overloads that torch tags as core, by operator, without those that write into an operand: an exported
    program has none of them."""
    core: dict[str, list[Any]] = {}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if hasattr(packet, "overloads"):
            overloads = [getattr(packet, word) for word in packet.overloads()]
        else:
            overloads = []
        tagged = [op for op in overloads if torch.Tag.core in op.tags and not op._schema.is_mutable]
        if tagged:
            core[name] = tagged
    return core


def list_coverage() -> Iterator[tuple[str, Place, str]]:
    """Yield each operator of core ATen, where it is computed, and how, or why it is refused."""
    decomposition_table = decompositions()
    for name, overloads in core_overloads().items():
        yield name, *_locate_operator(name, overloads, decomposition_table)


def _locate_operator(name: str, overloads: Sequence[Any], decomposable: Any) -> tuple[Place, str]:
    """Return where an operator is computed, and how; for one that is refused, why."""
    declared = ATEN.get(name)
    if any(torch.Tag.nondeterministic_seeded in op.tags for op in overloads):
        return "refused", "random numbers: give them as an input"
    if declared is not None:
        return declared.place, declared.becomes.rstrip(".")
    if all(op in decomposable for op in overloads):
        return "chip", "torch makes other operators of it"
    if not any(_takes_tensors(op) for op in overloads):
        return "compiler", "a constant"
    return "refused", ADVICE.get(name, "no handler")


def _takes_tensors(overload: Any) -> bool:
    """Return whether an overload of an operator has an argument that is a tensor or a list of tensors."""
    return any("Tensor" in str(argument.type) for argument in overload._schema.arguments)
