"""TMs inside a schedule (NETLIST V136, V137; 11.1 A10, 11.2 B5, 11.3 C5, C7; OPS 8.3.10)."""

from buda_emu.netlist.rules.context import Context, tms_mark
from buda_emu.netlist.rules.fused_use import FusedUse, Step, broadcasts
from buda_emu.netlist.rules.registry import Finding, Findings, fused_check
from buda_emu.netlist.rules.rule import rule


@fused_check(
    rule(
        "V136",
        "F",
        "a TM that scheduled ops do not have",
        "Inside a fused op there is no odd number of transposes, no pad and no broadcast of z. tile_broadcast "
        "works on input 1 of add, subtract and multiply, and not of Int32.",
        "{type: add, input_0_tms: [tile_broadcast: r]}",
        "{type: add, input_1_tms: [tile_broadcast: r]}",
        "NETLIST 2, 11.2 B5, 11.3 C7",
    )
)
def tms_known(_: Context, use: FusedUse) -> Findings:
    """Sub-ops work on ublocks: they turn no tiles and add none."""
    for step in use.steps:
        for index, tms in enumerate(step.sub.input_tms):
            names = [tm.name for tm in tms]
            if names.count("transpose") % 2:
                yield _finding(step, index, "a fused op cannot transpose")
            if "pad" in names:
                yield _finding(step, index, "a fused op cannot pad")
            if any(tm.args[0] == "z" for tm in broadcasts(step, index)):
                yield _finding(step, index, "a fused op cannot broadcast z")
            legal = step.sub.type in ("add", "subtract", "multiply") and index == 1 and not use.adds_int32(step)
            if "tile_broadcast" in names and not legal:
                what = "tile_broadcast works on input 1 of add, subtract and multiply, not of Int32"
                yield _finding(step, index, what)


@fused_check(
    rule(
        "V137",
        "F",
        "a broadcast that scheduled ops cannot do",
        "Only an intermed can be repeated, in one direction, and one tile row (r) or column (c) of it at a time: "
        "mblock and ublock are 1 there. A matmul repeats c on input 0 only, from 1 or m_k mblock columns. Not for"
        " the quantisation ops, maximum and adds of Int32.",
        "{inputs: [input0, input1], input_1_tms: [broadcast: {c: 4}]}",
        "{inputs: [input0, intermed0], input_1_tms: [broadcast: {c: 4}]}",
        "OPS 8.3, NETLIST 11.3 C5",
    ),
    unless=("V134",),
)
def broadcasts_possible(_: Context, use: FusedUse) -> Findings:
    """The repeated block must be one that the core holds as a whole."""
    for step in use.steps:
        for index, name in enumerate(step.sub.inputs):
            ways = {str(tm.args[0]) for tm in broadcasts(step, index)} & {"r", "c"}
            if not ways:
                continue
            if not name.startswith("intermed"):
                yield _finding(step, index, f"broadcasts {name}", "only an intermed can be broadcast r or c")
            elif step.quantizes or step.sub.type == "maximum" or use.adds_int32(step):
                yield _finding(step, index, f"{step.sub.type} cannot broadcast its inputs here")
            elif len(ways) == 2:
                yield _finding(step, index, "broadcasts both r and c on one input")
            elif reason := _shape_forbids(step, index, ways.pop()):
                yield _finding(step, index, reason)


def _shape_forbids(step: Step, index: int, way: str) -> str:
    known = step.known[index]
    matmul = step.sub.type == "matmul"
    if matmul and way == "r":
        return "a matmul cannot broadcast r"
    if matmul and index != 0:
        return "a matmul broadcasts c on input 0 only"
    if known is None:
        return ""  # a buffer that nothing wrote: V138
    rows, columns, ublock_rows, ublock_columns = known
    if matmul:
        legal = columns in (1, step.sub.attributes.m_k)
        return "" if legal else f"broadcast c of {columns} mblock columns on a matmul: must be 1 or m_k"
    if way == "c":
        legal = columns == ublock_columns == 1
        return "" if legal else f"broadcast c of {columns} mblock and {ublock_columns} ublock columns: both must be 1"
    if rows != 1 or ublock_rows != 1:
        return f"broadcast r of {rows} mblock and {ublock_rows} ublock rows: both must be 1"
    if step.sub.mblock[0] != 1 and columns != 1:
        return f"broadcast r of {columns} mblock columns into {step.sub.mblock[0]} mblock rows: one of them must be 1"
    return ""


def _finding(step: Step, index: int, message: str, hint: str = "") -> Finding:
    return step.about(tms_mark(step.sub, index), f"{message} (input {index})", hint)
