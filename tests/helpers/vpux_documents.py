"""Small documents for tests of the VPUX room: a network of a load, a kernel and a store, and pieces of it."""

from collections.abc import Iterable

from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.model import VpuxFile

MEMREF = "memref<1x16x4x8xf16"
CMX = f"{MEMREF}, [@CMX_NN, 0]>"
DDR = f"{MEMREF}, @DDR>"
NHWC = "#NHWC = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>\n"


def dma(source: str, target: str, source_type: str = DDR, target_type: str = CMX, attributes: str = "") -> str:
    """An NNDMA."""
    given = f"{{{attributes}}} " if attributes else ""
    return f"VPUIP.NNDMA {given}inputs({source} : {source_type}) outputs({target} : {target_type}) -> {target_type}"


def task(op: str, waits: str = "", updates: str = "") -> str:
    """A task."""
    clauses = "".join(
        f" {word}({', '.join(f'{name} : !VPURT.Barrier' for name in names.split())})"
        for word, names in (("waits", waits), ("updates", updates))
        if names
    )
    return f"VPURT.Task{clauses} {{\n{op}\n}}"


def kernel(
    inputs: Iterable[tuple[str, str]],
    outputs: Iterable[tuple[str, str]],
    attrs: str = "[]",
    name: str = "builtin_k",
    tile: int = 0,
    extra: str = "",
) -> str:
    """A software kernel with one run; operands are (value, type)."""
    sides = [list(inputs), list(outputs)]
    names = [[f"%{side}{n}" for n in range(len(items))] for side, items in zip("xy", sides, strict=True)]
    lists = [
        ", ".join(f"{value} as {inner}: {of}" for (value, of), inner in zip(items, inners, strict=True))
        for items, inners in zip(sides, names, strict=True)
    ]
    types = ", ".join(of for items in sides for _, of in items)
    results = ", ".join(of for _, of in sides[1])
    return (
        f"VPUIP.SW.Kernel {{{extra}}} @VPU.SW::@{name} inputs({lists[0]}) outputs({lists[1]}) on tile {tile} "
        f"-> ({results}) {{\nVPUIP.SW.Kernel.run {{attrs = {attrs}}}({', '.join(names[0] + names[1])}) : {types}\n}}"
    )


def module(body: str, entry: str = "activation_clamp", more: str = "", stack: int = 4096) -> str:
    """A network: runtime, one declared kernel, and functions."""
    return f"""{NHWC}module @network {{
VPURT.SW.Runtime entryPoint : @VPU.SW::@runtime stack_configuration : [{stack}, 4096]
module @VPU.SW {{
  func.func private @builtin_k(memref<*xf16>) attributes {{VPU.kernel_code = "k.cpp", VPU.kernel_entry = "{entry}"}}
  func.func private @runtime() attributes {{VPU.kernel_code = "nnActEntry"}}
{more}}}
{body}
}}
"""


def function(body: str, of: str = DDR) -> str:
    """@main from %arg0 to %arg1."""
    return f"func.func @main(%arg0: {of}, %arg1: {of}) -> {of} {{\n{body}\nreturn %arg1 : {of}\n}}"


def buffer(name: str, offset: int, of: str = CMX, section: str = "CMX_NN", index: str = "[0]") -> str:
    """A declared buffer."""
    return f"{name} = VPURT.DeclareBuffer <{section}> {index} <{offset}> -> {of}"


def barrier(name: str, number: int, attributes: str = "") -> str:
    """A physical barrier."""
    return f"{name} = VPURT.ConfigureBarrier<{number}> {attributes} -> !VPURT.Barrier"


BUFFERS = "\n".join([buffer("%in", 0), buffer("%out", 1024)])
BARRIERS = "\n".join([barrier("%b0", 0), barrier("%b1", 1)])
LOAD = task(dma("%arg0", "%in"), updates="%b0")
CLAMP = task(kernel([("%in", CMX)], [("%out", CMX)], "[-1.0, 2.5]"), "%b0", "%b1")
STORE = task(dma("%out", "%arg1", CMX, DDR), waits="%b1")
NETWORK = module(function("\n".join([BUFFERS, BARRIERS, LOAD, CLAMP, STORE])))
"""Load, clamp, store: valid, without a race."""


def changed(old: str, new: str, count: int = 1) -> str:
    """The network with one text replaced; fails where it does not hold it."""
    assert old in NETWORK, old
    return NETWORK.replace(old, new, count)


def rules(text: str, arch: str = "37XX") -> list[str]:
    """Ids of what `check` finds."""
    return [item.rule for item in vpux.read(text).check(arch)]


def document(text: str = NETWORK) -> VpuxFile:
    """Read."""
    return vpux.read(text)
