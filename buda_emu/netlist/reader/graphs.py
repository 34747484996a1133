"""The `graphs` section: graphs and their ops (NETLIST 1.4)."""

from typing import Any

from buda_emu.netlist.fields import GRAPH_FIELDS, INPUT_FIELDS, OP_FIELDS, PAD_FIELDS
from buda_emu.netlist.model import Graph, Op, Pad, Tm
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.attributes import AttributeState, check_splice, read_attributes
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, keyed, read_fields
from buda_emu.netlist.reader.queues import blocking_of
from buda_emu.netlist.reader.tms import MALFORMED, check_transposes, input_index, read_tms
from buda_emu.netlist.reader.values import (
    NOT_LIST,
    NOT_MAP,
    NOT_SCALAR,
    kind_of,
    read_float,
    read_int,
    readers,
    text_of,
)
from buda_emu.netlist.suggest import near, quoted
from buda_emu.spec.blocking import FULL_TILE

DUPLICATE, UNKNOWN = "V020", "V022"
_READERS = readers(OP_FIELDS)
_GRAPH_READERS = readers(GRAPH_FIELDS)
_NO_PAD = Pad()


class GraphSection:
    """The graphs read so far. `devices`: chips of those written with a list; `op_lines`: where every op name stands."""

    __slots__ = ("devices", "graphs", "op_lines")

    def __init__(self, graphs: dict[str, Graph], devices: dict[str, tuple[int, ...]]) -> None:
        self.graphs = graphs
        self.devices = devices
        self.op_lines: dict[str, int] = {}


def read_graphs(context: Context, node: Node, section: GraphSection) -> None:
    """Read every graph of the section into `section`."""
    context.subject = "graphs"
    for name, key, value in keyed(context, body_of(context, "the section", node)):
        context.subject = f"graph {name}"
        first = section.graphs.get(name)
        if first is not None:
            line = first.name_node.line if first.name_node is not None else 0
            context.report(DUPLICATE, key, f"a graph of that name stands in line {line} already")
        else:
            section.graphs[name] = _read_graph(context, name, key, value, section)
        context.subject = "graphs"


def _read_graph(context: Context, name: str, name_node: Scalar, node: Node, section: GraphSection) -> Graph:
    findings = context.findings
    body = body_of(context, "a graph", node)
    written: list[tuple[str, Scalar, Node]] = []

    def other(key: str, key_node: Scalar, value: Node) -> None:
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
            context.report(UNKNOWN, key, message, hint or "a graph has target_device, input_count and ops")
            broken = True
        elif op_name in section.op_lines:
            line = section.op_lines[op_name]
            context.report(DUPLICATE, key, f"an op of that name stands in line {line} already")
        else:
            section.op_lines[op_name] = key.line
            ops.append(_read_op(context, op_name, key, value, name, device))
    return Graph(
        name=name, target_device=device, ops=tuple(ops), source=body, name_node=name_node, broken=broken, **values
    )


class _Inputs:
    """What is written for each input: `pads` and `unpads` hold fields, `fill` the pad value that was written last."""

    __slots__ = ("fill", "pads", "tms", "unpads")

    def __init__(self) -> None:
        self.tms: dict[int, list[Tm]] = {}
        self.pads: dict[int, dict[str, Any]] = {}
        self.unpads: dict[int, dict[str, Any]] = {}
        self.fill: dict[int, float] = {}


def _read_op(context: Context, name: str, name_node: Scalar, node: Node, graph: str, device: int) -> Op:
    findings = context.findings
    body = body_of(context, "an op", node)
    later: list[tuple[str, Scalar, Node]] = []

    def other(key: str, key_node: Scalar, value: Node) -> None:
        # NETLIST 1.4: TMs, padding and attributes are read in a second pass, so they may stand before `inputs`
        if key == "attributes" or ("input" in key and ("tms" in key or "pad" in key)):
            later.append((key, key_node, value))
        elif key == "in_df":
            read_in_df(value)
        elif key == "forked_dram_inputs":
            forks.update(_read_forks(context, value))
        else:
            hint = "YAML merge keys are not followed" if key == "<<" else near(key, (*OP_FIELDS, *INPUT_FIELDS))
            context.report(UNKNOWN, key_node, f"unknown field {quoted(key)}", hint)

    def read_in_df(value: Node) -> None:
        formats = in_df_reader(context, in_df_field, value)
        if formats is not None:
            in_df.extend(formats)  # NETLIST 11.3 C1: a repeated in_df is appended

    in_df: list[str] = []
    forks: dict[str, str] = {}
    in_df_field, in_df_reader = _ALL_READERS["in_df"]
    values = read_fields(context, body, _READERS, other)
    inputs: tuple[str, ...] = values.get("inputs", ())
    known_inputs = len(inputs) if "inputs" in values or body.find("inputs") is None else None
    op_type: str = values.get("type", "")
    cells = values["grid_size"][0] * values["grid_size"][1] if "grid_size" in values else None
    attributes = AttributeState(op_type, known_inputs, cells)
    shaping = _Inputs()
    for key, key_node, value in later:
        if key == "attributes":
            read_attributes(context, value, attributes)
            continue
        index = input_index(context, key, key_node, known_inputs)
        if "tms" in key:
            tms = read_tms(context, key, value, "op")
            if index is not None:
                _add_tms(context, key, tms, index, shaping)
                check_transposes(context, key, tms, op_type, index, tuple(in_df))
        elif index is not None:
            _read_padding(context, key, value, index, shaping)
    if op_type == "splice" and context.findings == findings:
        check_splice(context, body.find("attributes") or name_node, attributes)
    count = len(inputs)
    return Op(
        name=name,
        written_name=name,
        graph=graph,
        target_device=device,
        blocking=blocking_of(
            values.pop("grid_size", (0, 0)), values.pop("t", -1), values.pop("mblock", (-1, -1)),
            values.pop("ublock", (-1, -1)), values.pop("ublock_order", ""), values.pop("tile_dim", FULL_TILE),
        ),
        in_df=tuple(in_df),
        forked_dram_inputs=tuple(forks.items()),
        input_tms=tuple(_with_fill(shaping, index) for index in range(count)) if shaping.tms else ((),) * count,
        input_pad=_all_pads(shaping.pads, count, shaping.fill),
        input_unpad=_all_pads(shaping.unpads, count, {}),
        attributes=attributes.result(),
        source=body,
        name_node=name_node,
        broken=context.findings > findings,
        **values,
    )  # fmt: skip


_ALL_READERS = dict(_READERS)
del _READERS["in_df"]  # read by _read_op itself: it appends


def _read_forks(context: Context, node: Node) -> dict[str, str]:
    """[{queue: op}, ...]; a repeated queue collapses (NETLIST 11.2 B4)."""
    forks: dict[str, str] = {}
    if not isinstance(node, Sequence):
        if not (isinstance(node, Scalar) and node.is_null):
            context.report(
                NOT_LIST, node, f"forked_dram_inputs needs a list of maps {{queue: op}}, not {kind_of(node)}"
            )
        return forks
    for item in node.items:
        if not isinstance(item, Mapping) or len(item.pairs) != 1:
            message = f"forked_dram_inputs: an entry needs a map {{queue: op}}, not {kind_of(item)}"
            context.report(NOT_MAP, item, message)
            continue
        for queue, _, value in keyed(context, item):
            if isinstance(value, Scalar):
                forks[queue] = text_of(value)
            else:
                context.report(NOT_SCALAR, value, f"forked_dram_inputs: {queue} needs the name of an op")
    return forks


def _add_tms(context: Context, name: str, tms: list[Tm], index: int, shaping: _Inputs) -> None:
    """Append (NETLIST 11.3 C1); only one pad is allowed for an input."""
    have = shaping.tms.setdefault(index, [])
    for tm in tms:
        if tm.name == "pad":
            if any(other.name == "pad" for other in have):
                context.report(MALFORMED, tm.mark, f"{name}: an input can be padded only once in its TMs")
            shaping.fill[index] = float(tm.args[2])
        have.append(tm)


def _with_fill(shaping: _Inputs, index: int) -> tuple[Tm, ...]:
    """The TMs of an input; a pad TM shares its value with input_N_pad, the later one in the file wins (OPS 7.3)."""
    return tuple(
        Tm("pad", (tm.args[0], tm.args[1], shaping.fill[index]), tm.mark) if tm.name == "pad" else tm
        for tm in shaping.tms.get(index, ())
    )


def _read_padding(context: Context, name: str, node: Node, index: int, shaping: _Inputs) -> None:
    """`input_N_pad: {rt, ct, pad_value}` or `input_N_unpad: {rt, ct}`."""
    unpad = "unpad" in name
    values = (shaping.unpads if unpad else shaping.pads).setdefault(index, {})
    for key, key_node, value in keyed(context, body_of(context, name, node)):
        known = PAD_FIELDS.get(key)
        if known is None or (unpad and known.kind == "float"):
            context.report(UNKNOWN, key_node, f"{name}: unknown field {quoted(key)}", near(key, PAD_FIELDS))
        elif known.kind == "int":
            values[key] = read_int(context, known, value) or 0
        else:
            number = read_float(context, known, value)
            if number is not None:
                shaping.fill[index] = number


def _all_pads(written: dict[int, dict[str, Any]], count: int, fill: dict[int, float]) -> tuple[Pad, ...]:
    if not written:
        return (_NO_PAD,) * count
    counts = [written.get(index) for index in range(count)]
    return tuple(
        _NO_PAD if size is None else Pad(size.get("rt", 0), size.get("ct", 0), fill.get(index, 0.0))
        for index, size in enumerate(counts)
    )
