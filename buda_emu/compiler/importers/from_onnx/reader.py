"""ONNX files: inline functions, fold what is constant, hand each node to its handler, name all that have none."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.graph.builder import MOST_ELEMENTS, Builder, shown_name
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output
from buda_emu.compiler.importers.arguments import RecordedAttributes, RecordedOperands, refuse_unread
from buda_emu.compiler.importers.from_onnx.call import ONNX, Call
from buda_emu.compiler.importers.from_onnx.external import by_reference, elsewhere, take_in
from buda_emu.compiler.importers.from_onnx.standard import (
    alone,
    body_of,
    computes,
    dims_of,
    dtype_of,
    evaluated,
    family,
    has_body,
    has_graph,
    operators,
    schema_of,
    seen_by,
    shapes_of,
    told_of,
    wrong_in_evaluator,
)
from buda_emu.compiler.importers.operators import REFUSED, NotSupportedError, OpenSizes, Refusals, how_to_give
from buda_emu.support.errors import BudaError, HostError, UnsupportedError

MOST_OPERATORS: Final = 1 << 17
"""Of a model with its own functions in their places: functions that call functions grow without bound."""


def prepared(model: Any, inputs: Sequence[Any] | None, sizes: OpenSizes) -> Any:
    """An onnx.ModelProto. Raises what onnx raises for a broken one."""
    return _inferred(_bound(_without_functions(model), inputs, sizes))


def _without_functions(model: Any) -> Any:
    """With the nodes of its own functions in their place. Raises UnsupportedError for too many."""
    if not model.functions:
        return model
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    counts: dict[Any, int] = {}

    def count(nodes: Iterable[Any]) -> int:
        return sum(
            counted((node.domain, node.op_type, node.overload))
            + sum(count(item.g.node) for item in node.attribute if item.HasField("g"))
            for node in nodes
        )

    def counted(key: Any) -> int:
        if key not in functions:
            return 1
        if key not in counts:
            counts[key] = 0  # of one that calls itself, which onnx refuses
            counts[key] = count(functions[key].node)
        return counts[key]

    if count(model.graph.node) > MOST_OPERATORS:
        raise UnsupportedError(f"compile: {MOST_OPERATORS:,} operators, and more, with its own functions in place")
    return inliner.inline_local_functions(model)


def _bound(model: Any, inputs: Sequence[Any] | None, sizes: OpenSizes) -> Any:
    """With the sizes of example inputs, or those that were given, in place of symbolic ones."""
    if inputs is None and not sizes.given:
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    held = {item.name for item in own.graph.initializer}
    values = [item for item in own.graph.input if item.name not in held]
    for value in values:
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                size = None
            else:
                size = sizes.of(value.name, place, dim.dim_param)
            if size is not None:
                dim.dim_value = size
    for value, array in zip(values, inputs or (), strict=False):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for size in np.shape(array):
            shape.dim.add().dim_value = size
    return own


def _inferred(model: Any) -> Any:
    if model.ByteSize() > 1 << 30:
        return model  # beyond what protobuf can hand over; exporters state the shapes
    sizes = (dim.dim_value for value in model.graph.input for dim in value.type.tensor_type.shape.dim)
    if max(sizes, default=0) > MOST_ELEMENTS:
        return model  # no tensor is as large, which is said below: onnx would take memory for it
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


class OnnxOrigin:
    """An onnx.ModelProto. `names`: of its values in the imported graph. `folder` of the files that large tensors lie
    in."""

    def __init__(self, model: Any, names: Mapping[str, str]) -> None:
        self.folder: Path | None = None
        self._model = model
        self._names = names

    @property
    def tool(self) -> str:
        """What runs it."""
        return f"onnxruntime {version('onnxruntime')}"

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs and inner values. Raises HostError without onnxruntime, or where it refuses the model."""
        try:
            runtime: Any = import_module("onnxruntime")
        except ImportError:
            raise HostError("compare: onnxruntime is not installed: pip install 'buda-emu[compare]'") from None
        own = onnx.ModelProto()
        own.CopyFrom(self._model)
        if self.folder is not None:
            take_in(own, self.folder)
        graph = own.graph
        results = [value.name for value in graph.output]
        given = {item.name for item in (*graph.initializer, *graph.input)}
        inner = [name for name, node in self._names.items() if node in wanted and name not in given and name]
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner if name not in results)
        held = {item.name for item in graph.initializer}
        feeds = [value.name for value in graph.input if value.name not in held]
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = runtime.InferenceSession(own.SerializeToString(), options, providers=["CPUExecutionProvider"])
            found = dict(
                zip(
                    [item.name for item in session.get_outputs()],
                    session.run(None, dict(zip(feeds, inputs, strict=True))),
                    strict=True,
                )
            )
        except Exception as error:  # noqa: BLE001 - onnxruntime raises kinds of its own
            raise HostError(f"compare: onnxruntime cannot run the model: {str(error).splitlines()[0]}") from None
        return [found[name] for name in results], {self._names[name]: found[name] for name in inner}


TYPES: Final = {
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
}  # fmt: skip
_SENTENCE: Final = 600
"""Letters of what onnx says, which repeats names of the model."""
RANDOM: Final = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}


def read_file(
    path: Path, inputs: Sequence[Any] | None, on_host: Sequence[str] = (), sizes: OpenSizes | None = None
) -> Graph:
    """Raises HostError for a file that is not an ONNX model, and what `read_proto` raises."""
    try:
        model = onnx.load(path, load_external_data=False)
    except FileNotFoundError:
        raise HostError(f"compile: {path}: no such file") from None
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise many kinds for damaged files
        raise HostError(f"compile: {path} is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise HostError(f"compile: {path} is not an ONNX model: it has no graph")
    apart = by_reference(model, path.parent)
    take_in(model, path.parent, large=False)
    graph = read_proto(model, inputs, path.stem, on_host, apart, sizes)
    if isinstance(graph.origin, OnnxOrigin):
        graph.origin.folder = path.parent
    return graph


def read_proto(
    model: Any,
    inputs: Sequence[Any] | None = None,
    name: str = "",
    on_host: Sequence[str] = (),
    apart: Mapping[str, Referenced] | None = None,
    sizes: OpenSizes | None = None,
) -> Graph:
    """The graph of an onnx.ModelProto; `apart`: initializers by reference, of which it has no bytes. Raises
    UnsupportedError naming every operator, HostError for a broken model."""
    name = shown_name(name or model.graph.name or "model")
    apart = apart or {}
    for tensor in (tensor for tensor in elsewhere(model) if tensor.name not in apart):
        raise HostError(
            f"compile: {name}: tensor '{shown_name(tensor.name)}' lies in another file: give the model's path, or load "
            "it with onnx.load, which puts all tensors into the model"
        )
    try:
        return _Reader(prepared(model, inputs, sizes or OpenSizes({})), name, on_host, apart).read()
    except (BudaError, MemoryError):
        raise
    except Exception as error:  # a model may be broken in more ways than one can list, and onnx raises what C++ does
        said = shown_name(" ".join(str(error).split()), _SENTENCE) or type(error).__name__
        raise HostError(f"compile: {name} is not a whole ONNX model (onnx.checker says more): {said}") from error


class _Reader:
    def __init__(self, model: Any, name: str, on_host: Sequence[str], apart: Mapping[str, Referenced]) -> None:
        self._apart = apart
        self._model = model
        self._on_host = on_host
        self._graph = Graph(name)
        self._b = Builder(self._graph, decompose=False)
        self._opset = {item.domain: item.version for item in model.opset_import}
        self._shapes: dict[str, tuple[int, ...] | None] = {}
        for value in (*model.graph.value_info, *model.graph.output):
            self._shapes[value.name] = dims_of(value.type)
        self._types: dict[str, str] = {}
        self._refused = Refusals()
        self._line = ""
        read = (name for node in model.graph.node for name in (*node.input, *seen_by(node)) if name)
        self._needed = {*read, *(value.name for value in model.graph.output)}

    def read(self) -> Graph:
        graph = self._model.graph
        if graph.sparse_initializer:
            self._refuse("sparse initializers", "")
        self._distinct(graph)
        values: dict[str, Node | None] = {}
        for tensor in graph.initializer:
            values[tensor.name] = self._initializer(tensor)
        for value in graph.input:
            if value.name not in values:
                values[value.name] = self._input(value)
        self._run(graph.node, values, "")
        self._outputs(graph.output, values)
        advice = "be.compile_in_parts (the command, without --no-host) leaves to the host what it can"
        self._refused.tell(self._graph.name, *([] if REFUSED in self._on_host else [advice]))
        made = {name: node.name for name, node in values.items() if node is not None and node.op != "constant"}
        self._graph.origin = OnnxOrigin(self._model, made)
        return self._graph

    def _outputs(self, outputs: Sequence[Any], values: Mapping[str, Node | None]) -> None:
        """Raises HostError for one that nothing gives, or that is declared as of another kind of type."""
        self._known(values, [value.name for value in outputs], "outputs")
        for value in outputs:
            found = values.get(value.name)
            dtype = dtype_of(value.type) or (found.dtype if found is not None else "float32")
            if dtype not in TYPES:
                self._refuse(f"output of type {dtype}", value.name)
            elif found is not None and 0 in found.shape:
                self._refuse("an output without elements", value.name)
            elif found is not None:
                told = self._types.get(value.name, dtype)
                if family(dtype) != family(told):
                    where = f"compile: {self._graph.name}: output '{shown_name(value.name)}'"
                    raise HostError(f"{where} is declared as {dtype}, but its source gives {told}")
                self._graph.outputs.append(Output(value.name, found.name, dtype))

    def _distinct(self, graph: Any) -> None:
        """Raises HostError where two values have one name: which of them is meant, nobody can tell."""
        defined = (name for node in graph.node for name in node.output if name)
        held = {item.name for item in graph.initializer}
        given = [item.name for item in graph.input]
        names = Counter([*given, *(held - {*given}), *defined])
        names += Counter(name for name, count in Counter(item.name for item in graph.initializer).items() if count > 1)
        if twice := [name for name, count in names.items() if count > 1]:
            raise HostError(f"compile: {self._graph.name}: '{shown_name(twice[0])}' is the name of two values")

    def _initializer(self, tensor: Any) -> Node | None:
        if tensor.name in self._apart:
            return self._b.constant(self._apart[tensor.name], name=tensor.name)
        try:
            array = numpy_helper.to_array(tensor)
        except (TypeError, ValueError, KeyError) as error:
            self._refuse(f"initializer of type {tensor.data_type} ({error})", tensor.name)
            return None
        if array.dtype.name not in TYPES:
            return self._refuse(f"initializer of type {array.dtype}", tensor.name)
        return self._b.constant(array, name=tensor.name)

    def _input(self, value: Any) -> Node | None:
        dtype = dtype_of(value.type)
        shape = dims_of(value.type)
        if dtype not in TYPES:
            return self._refuse(f"input of type {dtype or value.type.WhichOneof('value')}", value.name)
        if shape is None:
            for place, dim in enumerate(value.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value"):
                    return self._refuse(how_to_give(value.name, place, dim.dim_param), value.name)
            return self._refuse("an input without a fixed shape (give example inputs, or export one)", value.name)
        if min(shape, default=0) < 0:
            return self._refuse(f"an input of shape {list(shape)}", value.name)
        try:
            return self._b.input(value.name, shape, dtype)
        except UnsupportedError as error:
            return self._refuse(str(error), "")

    def _run(self, nodes: Sequence[Any], values: dict[str, Node | None], within: str) -> None:
        for node in nodes:
            self._known(values, node.input, within or node.name or node.op_type)
            poisoned = [name for name in node.input if name and values.get(name) is None]
            known = poisoned and node.op_type in ONNX
            if known:
                found = [None] * len(node.output)
            else:
                found = self._node(node, values, within, bool(poisoned))
            values.update(zip(node.output, found, strict=False))

    def _known(self, values: Mapping[str, Node | None], names: Iterable[str], where: str) -> None:
        if unknown := [name for name in names if name and name not in values]:
            raise HostError(
                f"compile: {self._graph.name}: {shown_name(where)}: nothing before gives '{shown_name(unknown[0])}'"
            )

    def _node(self, node: Any, values: dict[str, Node | None], within: str, poisoned: bool) -> Sequence[Node | None]:
        b = self._b
        b.scope = node.name or (node.output[0] if node.output else node.op_type)
        b.source = within or b.scope
        self._line = _line(node)
        nothing = [None] * len(node.output)
        told: Mapping[str, Any] = {}
        inputs = [values[name] if name else None for name in node.input]
        try:
            if poisoned:
                if not has_body(node, self._opset):
                    self._refuse(_named(node), within or b.scope)
                return nothing
            constant = all(item is None or item.op == "constant" for item in inputs)
            told = told_of(node, inputs, self._opset)
            self._types.update({} if within else {name: dtype_of(kind) for name, kind in told.items()})
            held = (item.value for item in inputs if item is not None and item.op == "constant")
            moved = node.op_type in ONNX and any(isinstance(value, Referenced) for value in held)
            if constant and not moved and node.op_type not in RANDOM and not has_graph(node):
                foreseen = shapes_of(told)
                for shape in foreseen.values():
                    b.grow(node.op_type, shape, (item for item in inputs if item is not None))
                try:
                    return self._folded(node, inputs, foreseen)
                except UnsupportedError:  # the evaluator does not know every operator in every version
                    if node.op_type not in ONNX:
                        raise
            if node.op_type in self._on_host:
                return self._hosted(node, values, told)
            if node.op_type in ONNX and node.domain in ("", "ai.onnx"):
                call = Call(
                    b=b,
                    op=node.op_type,
                    inputs=RecordedOperands(inputs),
                    attrs=RecordedAttributes({item.name: helper.get_attribute_value(item) for item in node.attribute}),
                    shapes=[self._shapes.get(name) for name in node.output],
                    opset=self._opset.get(node.domain, 1),
                )
                before = len(self._graph.nodes)
                found = ONNX[node.op_type].handler(call)
                refuse_unread("onnx", node.op_type, call.unread(schema_of(node, self._opset)))
                if isinstance(found, tuple):
                    results = list(found)
                else:
                    results = [found]
                missing = [name for name in node.output[len(results) :] if name in self._needed]
                if missing:
                    raise NotSupportedError(f"result {len(results)}")
                if results[0] is not None and len(self._graph.nodes) > before:
                    results[0] = b.alias(results[0], b.scope)
                return results
            body = body_of(node, inputs, self._opset)
            if body is None:
                raise NotSupportedError("")
            return self._inlined(node, body, inputs, within or b.scope)
        except UnsupportedError as error:
            if node.op_type in ONNX:
                body = body_of(node, inputs, self._opset)
            else:
                body = None
            if body is not None and not poisoned:
                try:
                    return self._inlined(node, body, inputs, within or b.scope)
                except UnsupportedError:
                    pass
            text = shown_name(str(error), _SENTENCE)
            if REFUSED in self._on_host and not within and node.op_type not in RANDOM:
                try:
                    return self._hosted(node, values, told, text or "no operator of the device")
                except NotSupportedError as other:
                    if text:
                        text = f"{text}; {other}"
                    else:
                        text = str(other)
            self._refuse(f"{_named(node)} ({text})" if text else _named(node), within or b.scope)
        except (BudaError, MemoryError):
            raise
        except Exception as error:
            where = shown_name(within or b.scope)
            said = shown_name(str(error), _SENTENCE)
            raise HostError(f"compile: {self._graph.name}: {where}: {_named(node)} cannot be: {said}") from error
        return nothing

    def _hosted(
        self, node: Any, values: Mapping[str, Node | None], told: Mapping[str, Any], why: str = "asked for"
    ) -> Sequence[Node | None]:
        """Left to onnx's own evaluator, when the model runs; branches and loops with what they see of the model."""
        names = dict.fromkeys(name for name in (*node.input, *seen_by(node)) if name)
        given = {name: item for name in names if (item := values.get(name)) is not None}
        results = [name for name in node.output if name]
        held = {item.name: item.type for item in (*self._model.graph.value_info, *self._model.graph.output)}
        types = {
            name: dtype_of(held[name]) if name in held else dtype_of(told[name])
            for name in results
            if name in held or name in told
        }
        known = {name: shapes_of(told).get(name, self._shapes.get(name)) for name in results}
        if any(shape is None or min(shape, default=0) < 0 or not types.get(name) for name, shape in known.items()):
            raise NotSupportedError("on the host: of a size that only the values tell")
        if unknown := [types[name] for name in results if types[name] not in TYPES]:
            raise NotSupportedError(f"on the host: of type {unknown[0]}")
        own = alone(node, {name: (item.shape, item.dtype) for name, item in given.items()}, self._model)
        computed = computes(own)
        work = {"kind": node.op_type, "form": "onnx", "data": own.SerializeToString(), "run": computed, "why": why}
        made: dict[str, Node | None] = {}
        for place, (name, shape) in enumerate(known.items()):
            made[name] = self._b.emit("host", *given.values(), dtype=types[name], place=place, shape=shape, **work)
        return [made.get(name) for name in node.output]

    def _folded(
        self, node: Any, inputs: Sequence[Node | None], foreseen: Mapping[str, tuple[int, ...]]
    ) -> Sequence[Node | None]:
        """Of constants alone: by onnx's own evaluator."""
        given = zip(node.input, inputs, strict=True)
        values = {name: np.asarray(item.value) for name, item in given if item is not None}
        try:
            found = evaluated(node, values, self._model)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the evaluator cannot do
            raise NotSupportedError(f"of constants: {error}") from None
        if wrong := wrong_in_evaluator(node, self._opset, found, foreseen):
            raise NotSupportedError(f"of constants: onnx's evaluator gives {wrong}")
        made: dict[str, Node | None] = {}
        for name, array in zip((name for name in node.output if name), found, strict=True):
            if array.dtype.name not in TYPES:
                raise NotSupportedError(f"of type {array.dtype}")
            made[name] = self._b.constant(array, name=name)
        return [made.get(name) for name in node.output]

    def _inlined(self, node: Any, body: Any, inputs: Sequence[Node | None], within: str) -> Sequence[Node | None]:
        inner: dict[str, Node | None] = dict(zip(body.input, inputs, strict=False))
        nodes = operators(node, body, inputs, within, self._opset)
        shapes = self._shapes
        self._shapes = {}
        opset = self._opset
        self._opset = {**self._opset, **{item.domain: item.version for item in body.opset_import}}
        before = self._refused.counts.copy()
        try:
            self._run(nodes, inner, within)
        finally:
            self._shapes = shapes
            self._opset = opset
        if self._refused.counts != before:
            inside = ", ".join(self._refused.counts - before)
            self._refused.counts = before
            raise NotSupportedError(f"made of {inside}")
        found = [inner.get(name) for name in body.output]
        if any(name and item is None for name, item in zip(node.output, found, strict=False)):
            raise NotSupportedError("a result that its definition does not give")
        return found

    # -------------------------------------------------------------------------------------------------- refusals
    def _refuse(self, what: str, where: str) -> None:
        self._refused.add(what, f"{shown_name(where)} {self._line}".strip())


def _named(node: Any) -> str:
    if node.domain not in ("", "ai.onnx"):
        name = f"{node.domain}.{node.op_type}"
    else:
        name = node.op_type
    return shown_name(name) or "an operator without a name"


def _line(node: Any) -> str:
    """The user's line, where the exporter noted it."""
    notes: Mapping[str, str] = {item.key: item.value for item in node.metadata_props}
    trace = notes.get("pkg.torch.onnx.stack_trace", "")
    lines: Iterator[str] = (line.strip() for line in trace.splitlines() if line.strip().startswith("File "))
    return next(iter(reversed(list(lines))), "")
