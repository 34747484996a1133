"""The `fused_ops` section: schedules of scheduled ops (NETLIST 2 "Fused ops", OPS 8)."""

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.fields import FUSED_FIELDS, SUB_OP_FIELDS
from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.netlist.nodes import Node, Scalar, Sequence
from buda_emu.netlist.reader.attributes import AttributeState, read_sub_op_attributes
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, keyed, of_one_key, read_fields
from buda_emu.netlist.reader.tms import input_index, read_tms
from buda_emu.netlist.reader.values import kind_of, readers

MALFORMED, UNKNOWN = "V130", "V190"
_READERS = readers(FUSED_FIELDS)
_SUB_OP_READERS = readers(SUB_OP_FIELDS)
_SUB_OP_NAMES = (*SUB_OP_FIELDS, "input_N_tms")


def read_fused_ops(context: Context, node: Node, fused_ops: dict[str, FusedOp]) -> None:
    """Read every definition into `fused_ops`; of a repeated id the first one counts (NETLIST 11.3 C1)."""
    context.subject = "fused_ops"
    for name, key, value in keyed(context, body_of(context, "the section", node)):
        context.subject = f"fused op {name}"
        fused_op = _read_fused_op(context, name, key, value)
        fused_ops.setdefault(name, fused_op)
        context.subject = "fused_ops"


def _read_fused_op(context: Context, name: str, name_node: Scalar, node: Node) -> FusedOp:
    findings = context.findings
    body = body_of(context, "a fused op", node, MALFORMED)
    schedules: list[tuple[SubOp, ...]] = []

    def other(key: str, _: Scalar, value: Node) -> None:
        if key == "schedules":  # other unknown keys are ignored
            schedules.extend(_read_schedules(context, value))

    values = read_fields(context, body, _READERS, other)
    return FusedOp(
        id=name,
        schedules=tuple(schedules),
        source=body,
        name_node=name_node,
        broken=context.findings > findings,
        **values,
    )


def _read_schedules(context: Context, node: Node) -> list[tuple[SubOp, ...]]:
    if not isinstance(node, Sequence):
        context.report(MALFORMED, node, f"schedules needs a list of schedules, not {kind_of(node)}")
        return []
    schedules: list[tuple[SubOp, ...]] = []
    for schedule in node.items:
        if not isinstance(schedule, Sequence):
            context.report(MALFORMED, schedule, f"a schedule needs a list of ops, not {kind_of(schedule)}")
            continue
        schedules.append(tuple(op for item in schedule.items for op in _read_entry(context, item)))
    return schedules


def _read_entry(context: Context, node: Node) -> list[SubOp]:
    entry = of_one_key(context, "an entry of a schedule needs a map {name: op}", node, MALFORMED)
    fused_op = context.subject
    sub_ops: list[SubOp] = []
    for name, key, value in keyed(context, entry) if entry is not None else ():
        context.subject = f"{fused_op}, op {name}"
        sub_ops.append(_read_sub_op(context, name, key, value))
    context.subject = fused_op
    return sub_ops


def _read_sub_op(context: Context, name: str, name_node: Scalar, node: Node) -> SubOp:
    findings = context.findings
    body = body_of(context, "a scheduled op", node, MALFORMED)
    later: list[tuple[str, Scalar, Node]] = []
    pops: dict[str, list[str]] = {"pop": [], "pop_last": []}

    def other(key: str, key_node: Scalar, value: Node) -> None:
        if key in pops:
            field, reader = _POP_READERS[key]
            pops[key].extend(reader(context, field, value) or ())  # NETLIST 11.3 C1: appended
        elif key == "attributes" or ("input" in key and "tms" in key):
            later.append((key, key_node, value))
        else:
            context.report(UNKNOWN, key_node, f"unknown field {quoted(key)}", near(key, _SUB_OP_NAMES))

    values = read_fields(context, body, _SUB_OP_READERS, other)
    inputs: tuple[str, ...] = values.get("inputs", ())
    known_inputs = len(inputs) if "inputs" in values or body.find("inputs") is None else None
    attributes = AttributeState(values.get("type", ""), known_inputs, scheduled=True)
    tms: dict[int, list[Tm]] = {}
    for key, key_node, value in later:
        if key == "attributes":
            read_sub_op_attributes(context, value, attributes)
            continue
        index = input_index(context, key, key_node, known_inputs)
        read = read_tms(context, key, value, "scheduled op")
        if index is not None:
            tms.setdefault(index, []).extend(read)
    return SubOp(
        name=name,
        pop=tuple(pops["pop"]),
        pop_last=tuple(pops["pop_last"]),
        input_tms=tuple(tuple(tms.get(index, ())) for index in range(len(inputs))),
        attributes=attributes.result(),
        source=body,
        name_node=name_node,
        broken=context.findings > findings,
        **values,
    )


_POP_READERS = {name: _SUB_OP_READERS.pop(name) for name in ("pop", "pop_last")}
