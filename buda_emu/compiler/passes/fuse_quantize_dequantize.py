"""Values that are rounded to integers of 8 bits and scaled back become the two ops that the device has for this."""

from dataclasses import dataclass, replace

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node

_WHOLE = {"int8": -128, "uint8": 0}
"""Types with 256 numbers, and the least of each."""


@dataclass(frozen=True, slots=True)
class _Codes:
    """One scale and one zero point for a whole tensor. The device has 255 numbers, -127 to 127 (OPS 4.3): `shift` is
    what they are more than the model's, so that of 256 the least is left out, or the greatest where 0 is the least."""

    scale: Array
    zero: float
    shift: float


def fuse_quantize_dequantize(graph: Graph) -> Graph:
    """`dequantize(quantize(x, s, z), s, z)` becomes `from_int8(to_int8(x, 1 / s), s)`, where nobody else reads the
    integers, and s and z are one number each."""
    shown = {output.value for output in graph.outputs}
    nodes = dict(graph.nodes)
    made: dict[str, Node] = {}
    for name, readers in graph.users().items():
        whole = graph[name]
        codes = _codes(graph, whole) if whole.op == "quantize" and name not in shown and readers else None
        if codes is None or any(not _undone(graph, whole, graph[reader]) for reader in readers):
            continue
        zero = codes.zero + codes.shift
        for number, value in (("factor", np.asarray(1 / codes.scale, np.float32)), ("scale", codes.scale)):
            made[f"{name}.{number}"] = Node(f"{name}.{number}", "constant", (), {"value": value}, ())
        nodes[name] = replace(
            whole,
            name=f"{name}.int8",
            op="to_int8",
            inputs=(whole.inputs[0], f"{name}.factor"),
            attrs={"zero": zero},
            dtype="int8",
        )
        for reader in readers:
            nodes[reader] = replace(
                graph[reader], op="from_int8", inputs=(f"{name}.int8", f"{name}.scale"), attrs={"zero": zero}
            )
    made |= {node.name: node for node in nodes.values()}
    return Graph(graph.name, made, graph.inputs, graph.outputs)


def _codes(graph: Graph, whole: Node) -> _Codes | None:
    scale, zero = (graph[name] for name in whole.inputs[1:])
    if scale.op != "constant" or zero.op != "constant" or scale.value.size != 1 or zero.value.size != 1:
        return None
    least, point = _WHOLE[whole.attrs["type"]], float(zero.value.reshape(-1)[0])
    step = np.asarray(scale.value, np.float32).reshape(())
    if not (np.isfinite(step) and step > 0):
        return None
    return _Codes(step, point, float(-128 - least + (point == least)))


def _undone(graph: Graph, whole: Node, reader: Node) -> bool:
    """Whether a reader scales back by the same numbers."""
    if reader.op != "dequantize" or reader.inputs[0] != whole.name or whole.name in reader.inputs[1:]:
        return False
    return all(
        one == two
        or (
            graph[two].op == "constant"
            and graph[two].value.size == 1
            and float(graph[one].value.reshape(-1)[0]) == float(graph[two].value.reshape(-1)[0])
        )
        for one, two in zip(whole.inputs[1:], reader.inputs[1:], strict=True)
    )
