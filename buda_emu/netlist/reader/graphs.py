"""The `graphs` section: graphs and their ops (NETLIST 1.4)."""

from functools import partial

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.fields import GRAPH_FIELDS, INPUT_FIELDS, OP_FIELDS
from buda_emu.netlist.model import Graph, Op
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.attributes import AttributeState, check_splice, read_attributes
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, keyed, named, read_fields
from buda_emu.netlist.reader.queues import blocking_of
from buda_emu.netlist.reader.shaping import UNKNOWN, Shaping, is_shaping
from buda_emu.netlist.reader.values import NOT_LIST, NOT_MAP, kind_of, read_formats, readers, text_of
from buda_emu.spec.blocking import FULL_TILE

DUPLICATE = "V020"
_READERS = readers(OP_FIELDS)
del _READERS["in_df"]  # read by _read_op itself: it appends
_GRAPH_READERS = readers(GRAPH_FIELDS)


class GraphSection:
    """The graphs read so far. `devices`: chips of those written with a list; `op_lines`: where every op name stands."""

    __slots__ = ("devices", "graphs", "op_lines")

    def __init__(self, graphs: dict[str, Graph], devices: dict[str, tuple[int, ...]]) -> None:
        self.graphs = graphs
        self.devices = devices
        self.op_lines: dict[str, int] = {}


def read_graphs(context: Context, node: Node, section: GraphSection) -> None:
    """Read every graph of the section into `section`."""
    for name, key, value in named(context, node, "graph", DUPLICATE, section.graphs):
        section.graphs[name] = _read_graph(context, name, key, value, section)


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
            first = next((op for op in ops if (op.written_name or op.name) == op_name), None)  # in this graph
            hint = context.again(first.source, value) if first is not None else "choose another name for one of them"
            context.report(DUPLICATE, key, f"there is already an op of that name, in line {line}", hint)
        else:
            section.op_lines[op_name] = key.line
            read = partial(_read_op, context, op_name, key, value, name, device)
            ops.append(context.kept_or(value, (op_name, id(key), name, device, context.arch), read))
    return Graph(
        name=name, target_device=device, ops=tuple(ops), source=body, name_node=name_node, broken=broken, **values
    )


def _read_op(context: Context, name: str, name_node: Scalar, node: Node, graph: str, device: int) -> Op:
    findings = context.findings
    body = body_of(context, "an op", node)
    in_df: list[str] = []
    forks: dict[str, str] = {}
    later: list[tuple[str, Scalar, Node]] = []

    def other(key: str, key_node: Scalar, value: Node) -> None:
        if key == "in_df":
            in_df.extend(read_formats(context, OP_FIELDS[key], value) or ())  # NETLIST 11.3 C1: appended
        elif key == "forked_dram_inputs":
            forks.update(_read_forks(context, value))
        elif key == "attributes" or is_shaping(key):
            later.append((key, key_node, value))
        else:
            hint = "YAML merge keys are not followed" if key == "<<" else near(key, (*OP_FIELDS, *INPUT_FIELDS))
            context.report(UNKNOWN, key_node, f"unknown field {quoted(key)}", hint)

    values = read_fields(context, body, _READERS, other)
    inputs: tuple[str, ...] = values.get("inputs", ())
    op_type: str = values.get("type", "")
    known_inputs = len(inputs) if "inputs" in values or body.find("inputs") is None else None
    cells = values["grid_size"][0] * values["grid_size"][1] if "grid_size" in values else None
    attributes = AttributeState(op_type, known_inputs, cells)
    shaping = Shaping(op_type, known_inputs, tuple(in_df))
    # NETLIST 1.4: shaping and attributes are read in a second pass, so they may stand before `inputs`.
    for key, key_node, value in later:
        if key == "attributes":
            read_attributes(context, value, attributes)
        else:
            shaping.read(context, key, key_node, value)
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
                context.report(NOT_MAP, value, f"forked_dram_inputs: {queue} needs the name of an op")
    return forks
