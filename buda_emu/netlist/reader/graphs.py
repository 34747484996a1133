"""Read the `graphs` section, graphs and their ops (NETLIST 1.4), and the definitions of `fused_ops` (NETLIST 2)."""

from functools import partial
from typing import Any

from buda_emu.netlist.fields import FUSED_FIELDS, GRAPH_FIELDS, INPUT_FIELDS, OP_FIELDS, PAD_FIELDS, SUB_OP_FIELDS
from buda_emu.netlist.model import FusedOp, Graph, Op, Pad, SubOp, Tm
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.attributes import AttributeState, check_splice, read_attributes, read_sub_op_attributes
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.queues import MALFORMED, blocking_of, check_transposes, input_index, read_tms
from buda_emu.netlist.reader.values import (
    NOT_LIST,
    NOT_MAP,
    body_of,
    kind_of,
    read_fields,
    read_float,
    read_formats,
    read_int,
    read_objects,
    read_pairs,
    read_single_pair,
    readers,
    text_of,
)
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote

UNKNOWN_PAD = "V022"
_NO_PAD = Pad()


def is_shaping(key: str) -> bool:
    """Return whether a key that is not a field of an op is about the shape of an input: its TMs, pad or unpad."""
    return "input" in key and ("tms" in key or "pad" in key)


class Shaping:
    """The TMs and padding of the inputs of one op. `inputs` is the number of inputs, None where their list could not
    be read."""

    __slots__ = ("_fill", "_pads", "_tms", "_unpads", "in_df", "inputs", "op_type")

    def __init__(self, op_type: str, inputs: int | None, in_df: tuple[str, ...]) -> None:
        self.op_type = op_type
        self.inputs = inputs
        self.in_df = in_df
        self._tms: dict[int, list[Tm]] = {}
        self._pads: dict[int, dict[str, int]] = {}
        self._unpads: dict[int, dict[str, int]] = {}
        self._fill: dict[int, float] = {}  # pad values: the one that is written last counts

    def read(self, context: Context, key: str, key_node: Scalar, node: Node) -> None:
        """Read one key about the shape of an input: its TMs, pad or unpad. Repeated TMs of an input are appended,
        repeated padding is overwritten.
        """
        index = input_index(context, key, key_node, self.inputs)
        if "tms" in key:
            tms = read_tms(context, key, node, "op")
            if index is not None:
                self._add_tms(context, key, tms, index)
                check_transposes(context, key, tms, self.op_type, index, self.in_df)
        elif index is not None:
            self._read_padding(context, key, node, index)

    def _add_tms(self, context: Context, name: str, tms: list[Tm], index: int) -> None:
        """Append TMs to those of input `index` (NETLIST 11.3 C1), and report a second pad among them."""
        earlier = self._tms.setdefault(index, [])
        for tm in tms:
            if tm.name == "pad":
                if any(other.name == "pad" for other in earlier):
                    context.report(MALFORMED, tm.mark, f"{name}: an input can be padded only once in its TMs")
                self._fill[index] = float(tm.args[2])
            earlier.append(tm)

    def _read_padding(self, context: Context, name: str, node: Node, index: int) -> None:
        """Read `input_N_pad: {rt, ct, pad_value}` or `input_N_unpad: {rt, ct}`, the field `name`, for input `index`."""
        unpad = "unpad" in name
        values = (self._unpads if unpad else self._pads).setdefault(index, {})
        for key, key_node, value in read_pairs(context, body_of(context, name, node)):
            field = PAD_FIELDS.get(key)
            if field is None or (unpad and field.kind == "float"):
                context.report(UNKNOWN_PAD, key_node, f"{name}: unknown field {quote(key)}", near(key, PAD_FIELDS))
            elif field.kind == "int":
                values[key] = read_int(context, field, value) or 0
            else:
                number = read_float(context, field, value)
                if number is not None:
                    self._fill[index] = number

    def tms(self, count: int) -> tuple[tuple[Tm, ...], ...]:
        """Return the TMs of each of `count` inputs; a pad TM shares its value with `input_N_pad` (OPS 7.3)."""
        if not self._tms:
            return ((),) * count
        return tuple(tuple(self._fill_pad(tm, index) for tm in self._tms.get(index, ())) for index in range(count))

    def _fill_pad(self, tm: Tm, index: int) -> Tm:
        """Return a pad TM with the pad value that was written last for the input; any other TM as it is."""
        if tm.name != "pad":
            return tm
        return Tm("pad", (tm.args[0], tm.args[1], self._fill[index]), tm.mark)

    def pads(self, count: int) -> tuple[Pad, ...]:
        """Return the padding `input_N_pad` of each of `count` inputs."""
        return _all_pads(self._pads, count, self._fill)

    def unpads(self, count: int) -> tuple[Pad, ...]:
        """Return the unpadding `input_N_unpad` of each of `count` inputs."""
        return _all_pads(self._unpads, count, {})


def _all_pads(written: dict[int, dict[str, int]], count: int, fill: dict[int, float]) -> tuple[Pad, ...]:
    """Return the padding of each of `count` inputs. `written` holds rows and columns by input, `fill` the value of
    the padding, 0 where there is none.
    """
    if not written:
        return (_NO_PAD,) * count
    pads: list[Pad] = []
    for index in range(count):
        size = written.get(index)
        if size is None:
            pads.append(_NO_PAD)
        else:
            pads.append(Pad(size.get("rt", 0), size.get("ct", 0), fill.get(index, 0.0)))
    return tuple(pads)


DUPLICATE = "V020"
_OP_READERS = readers(OP_FIELDS)
del _OP_READERS["in_df"]  # read by _read_op itself: it appends
_GRAPH_READERS = readers(GRAPH_FIELDS)


class GraphSection:
    """The graphs that were read so far. `devices` holds the chips of graphs that have a list of them, `op_lines` the
    line of every op name."""

    __slots__ = ("devices", "graphs", "op_lines")

    def __init__(self, graphs: dict[str, Graph], devices: dict[str, tuple[int, ...]]) -> None:
        self.graphs = graphs
        self.devices = devices
        self.op_lines: dict[str, int] = {}


def read_graphs(context: Context, node: Node, section: GraphSection) -> None:
    """Read every graph of a `graphs` section into `section`; a name that occurs twice is a finding."""
    for name, key, value in read_objects(context, node, "graph", DUPLICATE, section.graphs):
        section.graphs[name] = _read_graph(context, name, key, value, section)


def _read_graph(context: Context, name: str, name_node: Scalar, node: Node, section: GraphSection) -> Graph:
    """Read one graph and its ops: each key that is no field of a graph names an op. Names of ops are unique in all
    graphs.
    """
    findings = context.findings
    body = body_of(context, "a graph", node)
    written: list[tuple[str, Scalar, Node]] = []

    def other(key: str, key_node: Scalar, value: Node) -> None:
        """Put a key that is no field of a graph aside, to be read as an op."""
        written.append((key, key_node, value))

    values = read_fields(context, body, _GRAPH_READERS, other)
    broken = context.findings > findings
    device: int | tuple[int, ...] = values.pop("target_device", -1)
    if isinstance(device, tuple):
        section.devices[name] = device
        device = -1
    ops: list[Op] = []
    for op_name, key, value in written:
        context.subject = f"op {op_name}"
        if not isinstance(value, Mapping) and not (isinstance(value, Scalar) and value.is_null):
            hint = near(op_name, GRAPH_FIELDS)
            message = f"an op needs a map, not {kind_of(value)}"
            context.report(UNKNOWN_PAD, key, message, hint or "a graph has target_device, input_count and ops")
            broken = True
        elif op_name in section.op_lines:
            # One of another graph is never the same again: each has to stay where it is.
            first = next((op for op in ops if (op.written_name or op.name) == op_name), None)
            context.report_repetition(DUPLICATE, "op", key, value, first, section.op_lines[op_name])
        else:
            section.op_lines[op_name] = key.line
            read = partial(_read_op, context, op_name, key, value, name, device)
            ops.append(context.reuse_or_read(value, (op_name, id(key), name, device, context.arch), read))
    return Graph(
        name=name, target_device=device, ops=tuple(ops), source=body, name_node=name_node, broken=broken, **values
    )


def _grid_cells(values: dict[str, Any]) -> int | None:
    """Return the cores of an op by the fields that were read, None without a grid."""
    if "grid_size" not in values:
        return None
    rows, columns = values["grid_size"]
    return rows * columns


def _read_op(context: Context, name: str, name_node: Scalar, node: Node, graph: str, device: int) -> Op:
    """Read one op of the graph `graph` on chip `device` (-1: a list of chips). Attributes and the shaping of inputs
    are read last, as they depend on type and inputs.
    """
    findings = context.findings
    body = body_of(context, "an op", node)
    in_df: list[str] = []
    forks: dict[str, str] = {}
    later: list[tuple[str, Scalar, Node]] = []

    def other(key: str, key_node: Scalar, value: Node) -> None:
        """Read a key of an op that has no reader of its own: `in_df` and `forked_dram_inputs` are collected over
        repetitions, attributes and shaping of inputs are put into `later`, any other key is a finding."""
        if key == "in_df":
            in_df.extend(read_formats(context, OP_FIELDS[key], value) or ())  # NETLIST 11.3 C1: appended
        elif key == "forked_dram_inputs":
            forks.update(_read_forks(context, value))
        elif key == "attributes" or is_shaping(key):
            later.append((key, key_node, value))
        else:
            if key == "<<":
                hint = "YAML merge keys are not followed"
            else:
                hint = near(key, (*OP_FIELDS, *INPUT_FIELDS))
            context.report(UNKNOWN_PAD, key_node, f"unknown field {quote(key)}", hint)

    values = read_fields(context, body, _OP_READERS, other)
    inputs: tuple[str, ...] = values.get("inputs", ())
    op_type: str = values.get("type", "")
    input_count = _input_count(values, body)
    attributes = AttributeState(op_type, input_count, _grid_cells(values))
    shaping = Shaping(op_type, input_count, tuple(in_df))
    _read_second_pass(context, later, attributes, shaping)
    if op_type == "splice" and context.findings == findings:
        check_splice(context, body.find("attributes") or name_node, attributes)
    return Op(
        name=name,
        written_name=name,
        graph=graph,
        target_device=device,
        blocking=blocking_of(
            values.pop("grid_size", (0, 0)),
            values.pop("t", -1),
            values.pop("mblock", (-1, -1)),
            values.pop("ublock", (-1, -1)),
            values.pop("ublock_order", ""),
            values.pop("tile_dim", FULL_TILE),
        ),
        in_df=tuple(in_df),
        forked_dram_inputs=tuple(forks.items()),
        input_tms=shaping.tms(len(inputs)),
        input_pad=shaping.pads(len(inputs)),
        input_unpad=shaping.unpads(len(inputs)),
        attributes=attributes.result(),
        source=body,
        name_node=name_node,
        broken=context.findings > findings,
        **values,
    )


def _read_second_pass(
    context: Context, fields: list[tuple[str, Scalar, Node]], attributes: AttributeState, shaping: Shaping
) -> None:
    """Read shaping and attributes, which may stand before `inputs` (NETLIST 1.4)."""
    for key, key_node, value in fields:
        if key == "attributes":
            read_attributes(context, value, attributes)
        else:
            shaping.read(context, key, key_node, value)


def _input_count(values: dict[str, Any], body: Mapping) -> int | None:
    """Return the number of inputs of an op, or None where their list could not be read."""
    if "inputs" in values:
        return len(values["inputs"])
    return 0 if body.find("inputs") is None else None


def _read_forks(context: Context, node: Node) -> dict[str, str]:
    """Read a list [{queue: op}, ...]; of a repeated queue the last op counts (NETLIST 11.2 B4)."""
    forks: dict[str, str] = {}
    if not isinstance(node, Sequence):
        if not (isinstance(node, Scalar) and node.is_null):
            context.report(
                NOT_LIST, node, f"forked_dram_inputs needs a list of maps {{queue: op}}, not {kind_of(node)}"
            )
        return forks
    for entry in node.items:
        if not isinstance(entry, Mapping) or len(entry.pairs) != 1:
            message = f"forked_dram_inputs: an entry needs a map {{queue: op}}, not {kind_of(entry)}"
            context.report(NOT_MAP, entry, message)
            continue
        for queue, _, value in read_pairs(context, entry):
            if isinstance(value, Scalar):
                forks[queue] = text_of(value)
            else:
                context.report(NOT_MAP, value, f"forked_dram_inputs: {queue} needs the name of an op")
    return forks


MALFORMED_SCHEDULE = "V130"
UNKNOWN_IN_SCHEDULE = "V190"
_READERS = readers(FUSED_FIELDS)
_SUB_OP_READERS = readers(SUB_OP_FIELDS)
_SUB_OP_NAMES = (*SUB_OP_FIELDS, "input_N_tms")


def read_fused_ops(context: Context, node: Node, fused_ops: dict[str, FusedOp]) -> None:
    """Read every definition into `fused_ops`; the first definition of a repeated id counts (NETLIST 11.3 C1)."""
    context.subject = "fused_ops"
    for name, key, value in read_pairs(context, body_of(context, "the section", node)):
        context.subject = f"fused op {name}"
        fused_op = _read_fused_op(context, name, key, value)
        fused_ops.setdefault(name, fused_op)
        context.subject = "fused_ops"


def _read_fused_op(context: Context, name: str, name_node: Scalar, node: Node) -> FusedOp:
    """Read one definition of a fused op. Keys that no fused op has are ignored without a finding."""
    findings = context.findings
    body = body_of(context, "a fused op", node, MALFORMED_SCHEDULE)
    schedules: list[tuple[SubOp, ...]] = []

    def other(key: str, _: Scalar, value: Node) -> None:
        """Read the schedules; those of a repeated key are appended."""
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
    """Read a list of schedules, each a list of scheduled ops. Entries that cannot be read are left out after a
    finding.
    """
    if not isinstance(node, Sequence):
        context.report(MALFORMED_SCHEDULE, node, f"schedules needs a list of schedules, not {kind_of(node)}")
        return []
    schedules: list[tuple[SubOp, ...]] = []
    for schedule in node.items:
        if not isinstance(schedule, Sequence):
            context.report(MALFORMED_SCHEDULE, schedule, f"a schedule needs a list of ops, not {kind_of(schedule)}")
            continue
        sub_ops = (_read_entry(context, entry) for entry in schedule.items)
        schedules.append(tuple(sub_op for sub_op in sub_ops if sub_op is not None))
    return schedules


def _read_entry(context: Context, node: Node) -> SubOp | None:
    """Read an entry {name: op} of a schedule; None, after a finding, for anything else."""
    entry = read_single_pair(context, "an entry of a schedule needs a map {name: op}", node, MALFORMED_SCHEDULE)
    if entry is None:
        return None
    name, key, value = entry
    fused_op = context.subject
    context.subject = f"{fused_op}, op {name}"
    sub_op = _read_sub_op(context, name, key, value)
    context.subject = fused_op
    return sub_op


def _read_sub_op(context: Context, name: str, name_node: Scalar, node: Node) -> SubOp:
    """Read one op in the schedule of a fused op, and report what is wrong to `context`. Attributes and TMs are read
    last, as they depend on type and inputs."""
    findings = context.findings
    body = body_of(context, "a scheduled op", node, MALFORMED_SCHEDULE)
    later: list[tuple[str, Scalar, Node]] = []
    pops: dict[str, list[str]] = {"pop": [], "pop_last": []}

    def other(key: str, key_node: Scalar, value: Node) -> None:
        """Read a list of pops, which add up when repeated, put attributes and TMs aside, and report an unknown
        field.
        """
        if key in pops:
            field, reader = _POP_READERS[key]
            pops[key].extend(reader(context, field, value) or ())  # NETLIST 11.3 C1: appended
        elif key == "attributes" or ("input" in key and "tms" in key):
            later.append((key, key_node, value))
        else:
            context.report(UNKNOWN_IN_SCHEDULE, key_node, f"unknown field {quote(key)}", near(key, _SUB_OP_NAMES))

    values = read_fields(context, body, _SUB_OP_READERS, other)
    inputs: tuple[str, ...] = values.get("inputs", ())
    input_count = _input_count(values, body)
    attributes = AttributeState(values.get("type", ""), input_count, scheduled=True)
    tms: dict[int, list[Tm]] = {}
    for key, key_node, value in later:
        if key == "attributes":
            read_sub_op_attributes(context, value, attributes)
            continue
        index = input_index(context, key, key_node, input_count)
        input_tms = read_tms(context, key, value, "scheduled op")
        if index is not None:
            tms.setdefault(index, []).extend(input_tms)
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
