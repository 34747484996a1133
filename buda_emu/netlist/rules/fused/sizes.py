"""Do the blocks of scheduled ops fit together (NETLIST V139; 11.1 A5, A9, A10; OPS 8.3.12)."""

from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import Dims, FusedUse, Step, broadcast_factor
from buda_emu.netlist.rules.registry import Findings, fused_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.ops import OP_TYPES


@fused_check(
    rule(
        "V139",
        "F",
        "sizes of scheduled ops do not fit together",
        "Operands that a scheduled op wrote have known sizes: times their broadcast they fill the result, or, for"
        " matmul and reduce, the m_k and u_kt written on the scheduled op itself. Only element-wise ops, matmul "
        "and reduce over r or c can be scheduled.",
        "a: {output: intermed0, mblock: [2, 1]}, b: {inputs: [intermed0], mblock: [2, 2]}",
        "a: {output: intermed0, mblock: [2, 1]}, b: {inputs: [intermed0], input_0_tms: [broadcast: {c: 2}], "
        "mblock: [2, 2]}",
        "OPS 8.3, NETLIST 11.1 A5, A10",
    ),
    unless=("V040", "V133", "V134", "V135", "V137", "V138"),
)
def sizes_fit(_: Context, use: FusedUse) -> Findings:
    """Only buffers that a sub-op wrote have known dims; attributes are the sub-op's own."""
    for step in use.steps:
        known = OP_TYPES.get(step.sub.type)
        if known is not None and known.has("tile by tile"):
            for index in range(known.inputs[0]):
                yield from _elementwise(step, index)
        elif step.family == "reduce":
            yield from _reduce(step)
        elif step.family == "matmul":
            yield from _matmul(step)
        else:
            yield step.at(f"type '{step.sub.type}' cannot be scheduled", "type")


def _elementwise(step: Step, index: int) -> Findings:
    known = step.known[index]
    if known is None:
        return
    for axis, name in ((0, "rows"), (1, "columns")):
        factor = broadcast_factor(step, index, "rc"[axis])
        blocks, own = (known[axis], known[axis + 2]), (step.dims[axis], step.dims[axis + 2])
        if blocks[0] * blocks[1] * factor != own[0] * own[1] or blocks[0] > own[0] or blocks[1] > own[1]:
            repeated = f" broadcast {factor} times" if factor != 1 else ""
            has = f"{step.sub.inputs[index]} has {blocks[0]} * {blocks[1]} tile {name}{repeated}"
            yield step.at(f"{has}, the result {own[0]} * {own[1]}", "mblock")


def _reduce(step: Step) -> Findings:
    own = step.sub.attributes
    if own.dim not in ("r", "c"):
        what = f"a scheduled reduce cannot reduce over {own.dim}" if own.dim else "a scheduled reduce needs its own dim"
        yield step.at(what, "attributes")
        return
    axis = 0 if own.dim == "r" else 1
    if (step.dims[axis], step.dims[axis + 2]) != (1, 1):
        what = f"a reduce over {own.dim} writes one tile {('row', 'column')[axis]}"
        yield step.at(f"{what}, has {step.dims[axis]} * {step.dims[axis + 2]}", "mblock")
        return
    yield from _inner(step, 0, axis)
    yield from _outer(step, 0, 1 - axis)


def _matmul(step: Step) -> Findings:
    yield from _outer(step, 0, 0)
    yield from _outer(step, 1, 1)
    factor = broadcast_factor(step, 0, "c")
    known = step.known[0]
    if known is not None and factor != 1:
        inner = step.sub.attributes.m_k * step.sub.attributes.u_kt
        if known[1] * known[3] * factor != inner:
            has = f"{step.sub.inputs[0]} has {known[1]} * {known[3]} tile columns broadcast {factor} times"
            yield step.at(f"{has}, m_k * u_kt is {inner}", "attributes")
    else:
        yield from _inner(step, 0, 1)
    yield from _inner(step, 1, 0)


def _inner(step: Step, index: int, axis: int) -> Findings:
    """The reduced dimension of a known input is m_k mblocks of u_kt tiles."""
    own = step.sub.attributes
    known: Dims | None = step.known[index]
    if known is not None and (known[axis], known[axis + 2]) != (own.m_k, own.u_kt):
        given = [f"{key} {value}" for key, value in (("m_k", own.m_k), ("u_kt", own.u_kt)) if key in own.given]
        yield step.at(
            f"{step.sub.inputs[index]} has {known[axis]} * {known[axis + 2]} tiles along the inner dimension, "
            f"the sub-op gives {' and '.join(given) or 'neither m_k nor u_kt'}",
            "attributes",
            hint=f"write m_k: {known[axis]}, u_kt: {known[axis + 2]}",
        )


def _outer(step: Step, index: int, axis: int) -> Findings:
    known = step.known[index]
    if known is not None and (known[axis], known[axis + 2]) != (step.dims[axis], step.dims[axis + 2]):
        has = f"{step.sub.inputs[index]} has {known[axis]} * {known[axis + 2]} tile {('rows', 'columns')[axis]}"
        yield step.at(f"{has}, the result {step.dims[axis]} * {step.dims[axis + 2]}", "mblock")
