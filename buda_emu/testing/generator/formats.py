"""Formats that go together in one op (FORMATS 2, NETLIST V090 to V103)."""

from typing import Final

from buda_emu.netlist.rules.ops.formats import A_FORMATS, B_FORMATS
from buda_emu.spec.archs import Arch
from buda_emu.spec.formats import FORMATS
from buda_emu.testing.generator.draft import Formats, NetlistDraft

_OPERANDS: Final = {
    family: tuple(
        spec.name
        for spec in FORMATS.values()
        if spec.netlist_legal and spec.kind in ("float", "block") and (spec.family or "a") == family
    )
    for family in ("a", "b")
}
"""By family; Fp8_e4m3 is packed as Lf8 is."""
_SUMS: Final = {"b": ("Float16_b", "Float32", "Bfp8_b"), "a": ("Float16", "Bfp8")}


def operands(draft: NetlistDraft) -> tuple[str, ...]:
    """Formats that operands of the open graph may have; 4-bit exponents are blackhole's (FORMATS 6.5)."""
    names = _OPERANDS[draft.graph.family]
    return names if draft.arch.name == "blackhole" else tuple(name for name in names if FORMATS[name].family)


def chosen(draft: NetlistDraft, *, out: tuple[str, ...] = (), sums: bool = False, gradient: bool = False) -> Formats:
    """Formats of an op of the open graph: results in one of `out`; `sums`: it keeps partial sums between blocks;
    `gradient`: it adds to its result of before."""
    draw, family, arch = draft.draw, draft.graph.family, draft.arch
    acc = draw.pick(_accumulators(family, arch))
    legal = out or operands(draft)
    if sums and arch.name == "grayskull":  # V090
        legal = [name for name in legal if name in (*A_FORMATS, *B_FORMATS, "Float32")]
    result = draw.pick(legal)
    if gradient:
        result = "Float32" if acc == "Float32" and draw.chance(60) else draw.pick(_SUMS[family])
        return Formats(result, result, acc)
    between = draw.pick(_SUMS[family] if sums else (result, *_SUMS[family]))
    if not out and not sums and draw.sometimes(8, "other family"):  # only the packer knows of it (DEVICE_NUMERICS 4.1)
        result = draw.pick(_of_other_family(draft))
        between = _SUMS[family][0]
    if sums and arch.name == "grayskull":
        between = result if result in _SUMS[family] else _SUMS[family][0]
    if sums and acc == "Float32" and family == "b":
        between = "Float32"
    return Formats(result, between, acc)


def _of_other_family(draft: NetlistDraft) -> tuple[str, ...]:
    """Formats that no op of the open graph reads; Grayskull changes the exponents of 16-bit results only."""
    names = _OPERANDS["a" if draft.graph.family == "b" else "b"]
    if draft.arch.name == "grayskull":
        return tuple(name for name in names if name in ("Float16", "Float16_b"))
    return names if draft.arch.name == "blackhole" else tuple(name for name in names if FORMATS[name].family)


def _accumulators(family: str, arch: Arch) -> tuple[str, ...]:
    usual = _SUMS[family][0]
    if arch.name == "grayskull":
        return (usual, usual, "")
    return (usual, usual, "", "Float32")


def in_ublock(draft: NetlistDraft, formats: Formats) -> int:
    """Tiles of a ublock that fit dest (V040)."""
    return draft.arch.dest_tiles // (2 if formats.acc in ("Float32", "Int32") else 1)
