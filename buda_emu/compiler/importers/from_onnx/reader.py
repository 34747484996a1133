"""Reader of ONNX models: inline functions, fold constants, hand each node to its handler, and report all operators that
have none."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.graph.builder import Builder, printable_name
from buda_emu.compiler.graph.examples import Examples, in_order
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output
from buda_emu.compiler.importers.arguments import RecordedAttributes, RecordedOperands, refuse_unread
from buda_emu.compiler.importers.from_onnx.call import ONNX, Call
from buda_emu.compiler.importers.from_onnx.decided import DecidedShapes
from buda_emu.compiler.importers.from_onnx.evaluator import evaluate_node, find_shape_fault
from buda_emu.compiler.importers.from_onnx.host import RANDOM, SIZE_BY_VALUES, Foreseen, HostOperators
from buda_emu.compiler.importers.from_onnx.initializers import (
    iterate_external_tensors,
    load_external_tensors,
    map_large_initializers,
    read_initializer,
)
from buda_emu.compiler.importers.from_onnx.preparation import inputs_of, prepare_model
from buda_emu.compiler.importers.from_onnx.standard import (
    TYPES,
    captured_names,
    element_type,
    find_body,
    has_body,
    has_inner_graph,
    infer_results,
    instantiate_body,
    schema_of,
    static_dims,
    static_shapes,
    type_family,
)
from buda_emu.compiler.importers.operators import (
    REFUSED,
    NotSupportedError,
    OpenSizes,
    Refusals,
    innermost_line,
    missing_size_text,
)
from buda_emu.support.errors import BudaError, HostError, UnsupportedError


def _examples_by_label(model: Any, inputs: Examples) -> dict[str, Any]:
    """Return the example inputs by the names of the model's inputs; empty without examples. Raise HostError for a name
    that no input has."""
    names = [value.name for value in inputs_of(model)]
    return dict(zip(names, in_order(inputs, names) or (), strict=False))


class OnnxOrigin:
    """An onnx.ModelProto, run by onnxruntime. `names` maps its values to nodes of the imported graph; `folder` holds
    the files of large tensors."""

    def __init__(self, model: Any, names: Mapping[str, str]) -> None:
        self.folder: Path | None = None
        self._model = model
        self._names = names

    @property
    def tool(self) -> str:
        """The name and version of onnxruntime."""
        return f"onnxruntime {version('onnxruntime')}"

    def _inner_values(self, graph: Any, node_names: Container[str]) -> list[str]:
        """Return the names of the computed values of an onnx.GraphProto for which the nodes `node_names` of the
        imported graph stand."""
        defined_names = {entry.name for entry in (*graph.initializer, *graph.input)}
        return [name for name, node in self._names.items() if node in node_names and name not in defined_names and name]

    def values(self, inputs: Sequence[Array], node_names: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Run the model and return its outputs, and the values for which the nodes `node_names` stand, by these names.
        Raise HostError without onnxruntime, or if it refuses the model."""
        try:
            runtime: Any = import_module("onnxruntime")
        except ImportError:
            raise HostError("compare: onnxruntime is not installed: pip install 'buda-emu[compare]'") from None
        copy = onnx.ModelProto()
        copy.CopyFrom(self._model)
        if self.folder is not None:
            load_external_tensors(copy, self.folder)
        graph = copy.graph
        results = [value.name for value in graph.output]
        initializer_names = {entry.name for entry in graph.initializer}
        inner = self._inner_values(graph, node_names)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner if name not in results)
        inputs_of_graph = [value for value in graph.input if value.name not in initializer_names]
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = runtime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
            pairs = zip(inputs_of_graph, inputs, strict=True)
            arrays = session.run(None, {value.name: _in_type_of(value, array) for value, array in pairs})
            output_names = [entry.name for entry in session.get_outputs()]
            values = dict(zip(output_names, arrays, strict=True))
        except Exception as error:  # noqa: BLE001 - onnxruntime raises kinds of its own
            raise HostError(f"compare: onnxruntime cannot run the model: {str(error).splitlines()[0]}") from None
        return [values[name] for name in results], {self._names[name]: values[name] for name in inner}


def _in_type_of(value: onnx.ValueInfoProto, array: Array) -> Array:
    """Return an array in the element type that the model states for an input, which onnxruntime insists on."""
    element_type = value.type.tensor_type.elem_type
    return array.astype(helper.tensor_dtype_to_np_dtype(element_type), copy=False)


_SENTENCE: Final = 600
"""Limit for the letters of onnx's messages, which repeat names of the model."""


def read_file(path: Path, inputs: Examples, on_host: Sequence[str] = (), sizes: OpenSizes | None = None) -> Graph:
    """Import an ONNX file. Raise HostError for a file that is not an ONNX model or is broken, UnsupportedError naming
    every operator that is not supported."""
    try:
        model = onnx.load(path, load_external_data=False)
    except FileNotFoundError:
        raise HostError(f"compile: {path}: no such file") from None
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise many kinds for damaged files
        raise HostError(f"compile: {path} is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise HostError(f"compile: {path} is not an ONNX model: it has no graph")
    references = map_large_initializers(model, path.parent)
    load_external_tensors(model, path.parent, large=False)
    graph = read_proto(model, inputs, path.stem, on_host, references, sizes)
    if isinstance(graph.origin, OnnxOrigin):
        graph.origin.folder = path.parent
    return graph


def read_proto(
    model: Any,
    inputs: Examples = None,
    name: str = "",
    on_host: Sequence[str] = (),
    references: Mapping[str, Referenced] | None = None,
    sizes: OpenSizes | None = None,
) -> Graph:
    """Import an onnx.ModelProto; `references` holds initializers whose bytes are not in the model. Raise
    UnsupportedError naming every operator that is not supported, HostError for a broken model."""
    name = printable_name(name or model.graph.name or "model")
    references = references or {}
    for tensor in (tensor for tensor in iterate_external_tensors(model) if tensor.name not in references):
        raise HostError(
            f"compile: {name}: tensor '{printable_name(tensor.name)}' lies in another file: give the model's path, or "
            "load it with onnx.load, which puts all tensors into the model"
        )
    sizes = sizes or OpenSizes({})
    try:
        prepared = prepare_model(model, inputs, sizes)
        sizes.check(name)
        return _Reader(prepared, name, on_host, references, _examples_by_label(model, inputs)).read()
    except (BudaError, MemoryError):
        raise
    except Exception as error:  # a model may be broken in more ways than one can list, and onnx raises what C++ does
        reason = printable_name(" ".join(str(error).split()), _SENTENCE) or type(error).__name__
        raise HostError(f"compile: {name} is not a whole ONNX model (onnx.checker says more): {reason}") from error


class _Reader:
    def __init__(
        self,
        model: Any,
        name: str,
        on_host: Sequence[str],
        references: Mapping[str, Referenced],
        examples: Mapping[str, Any],
    ) -> None:
        self._references = references
        self._model = model
        self._on_host = on_host
        self._graph = Graph(name)
        self._b = Builder(self._graph, decompose=False)
        self._opset = {entry.domain: entry.version for entry in model.opset_import}
        self._shapes: dict[str, tuple[int, ...] | None] = {}
        for value in (*model.graph.value_info, *model.graph.output):
            self._shapes[value.name] = static_dims(value.type)
        self._types: dict[str, str] = {}
        self._host = HostOperators(self._b, model)
        self._refused = Refusals()
        self._host_takes_all = True  # whether the host could compute every operator that is refused
        self._line = ""
        self._decided = DecidedShapes(self._graph, examples)
        read = filter(None, chain.from_iterable((*node.input, *captured_names(node)) for node in model.graph.node))
        self._needed = {*read, *(value.name for value in model.graph.output)}

    def read(self) -> Graph:
        """Read the model and return its graph. Raises UnsupportedError that lists all constructs that are not
        supported."""
        graph = self._model.graph
        self._check_names(graph)
        values: dict[str, Node | None] = {}
        for sparse in graph.sparse_initializer:
            values[sparse.values.name] = self._refuse("sparse initializers", sparse.values.name)
        for tensor in graph.initializer:
            values[tensor.name] = self._add_initializer(tensor)
        for value in graph.input:
            if value.name not in values:
                values[value.name] = self._add_input(value)
        refused_inputs = len(self._refused.counts)
        self._add_nodes(graph.node, values, "")
        self._declare_outputs(graph.output, values)
        advice: list[str] = []
        has_refused_operators = len(self._refused.counts) > refused_inputs
        if REFUSED not in self._on_host and has_refused_operators and self._host_takes_all:
            advice.append("be.compile_in_parts (the command, without --no-host) leaves to the host what it can")
        if any(SIZE_BY_VALUES in construct for construct in self._refused.counts):
            advice.append("keep sizes fixed in the model (TopK, or Where with a mask) and select from its results")
        self._refused.raise_if_any(self._graph.name, *advice)
        node_names = {name: node.name for name, node in values.items() if node is not None and node.op != "constant"}
        self._decided.put_into_graph()
        self._graph.origin = OnnxOrigin(self._model, node_names)
        return self._graph

    def _declare_outputs(self, outputs: Sequence[Any], values: Mapping[str, Node | None]) -> None:
        """Declare the model's outputs from the `values` by name; types that are not supported are noted. Raise
        HostError for an output that no node computes, or that is declared with another kind of type."""
        self._require_values(values, [value.name for value in outputs], "outputs")
        for value in outputs:
            node = values.get(value.name)
            dtype = element_type(value.type) or (node.dtype if node is not None else "float32")
            if dtype not in TYPES:
                self._refuse(f"output of type {dtype}", value.name)
            elif node is not None and 0 in node.shape:
                self._refuse("an output without elements", value.name)
            elif node is not None:
                self._check_declared_type(value, dtype)
                self._graph.outputs.append(Output(value.name, node.name, dtype))

    def _check_declared_type(self, value: Any, dtype: str) -> None:
        """Raise HostError for an output whose value is of another kind of type than the model declares. The declared
        shape is not read: exporters leave stale ones, of which onnxruntime only warns."""
        inferred = self._types.get(value.name, dtype)
        if type_family(dtype) != type_family(inferred):
            name = printable_name(value.name)
            raise HostError(
                f"compile: {self._graph.name}: output '{name}' is declared as {dtype}, but its source gives {inferred}"
            )

    def _check_names(self, graph: Any) -> None:
        """Raise HostError if two values have one name, since a reference to it would be ambiguous."""
        defined = filter(None, chain.from_iterable(node.output for node in graph.node))
        initializer_names = {entry.name for entry in graph.initializer}
        input_names = [entry.name for entry in graph.input]
        names = Counter([*input_names, *(initializer_names - {*input_names}), *defined])
        names += Counter(
            name for name, count in Counter(entry.name for entry in graph.initializer).items() if count > 1
        )
        if duplicates := [name for name, count in names.items() if count > 1]:
            raise HostError(f"compile: {self._graph.name}: '{printable_name(duplicates[0])}' is the name of two values")

    def _add_initializer(self, tensor: Any) -> Node | None:
        """Add an initializer as a constant, those in `_references` without reading their file; None if its element type
        is not supported, which is noted. Raise HostError for one that is broken."""
        if tensor.name in self._references:
            return self._b.constant(self._references[tensor.name], name=tensor.name)
        try:
            return self._b.constant(read_initializer(tensor), name=tensor.name)
        except NotSupportedError as error:
            return self._refuse(str(error), tensor.name)
        except ValueError as error:
            context = f"compile: {self._graph.name}: initializer '{printable_name(tensor.name)}'"
            raise HostError(f"{context}: {error}") from None

    def _add_input(self, value: Any) -> Node | None:
        """Add an input of the model; None if its element type or shape is not supported, which is noted."""
        dtype = element_type(value.type)
        shape = static_dims(value.type)
        if dtype not in TYPES:
            return self._refuse(f"input of type {dtype or value.type.WhichOneof('value')}", value.name)
        if shape is None:
            for place, dim in enumerate(value.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value"):
                    return self._refuse(missing_size_text(value.name, place, dim.dim_param), value.name)
            return self._refuse("an input without a fixed shape (give example inputs, or export one)", value.name)
        if min(shape, default=0) < 0:
            return self._refuse(f"an input of shape {list(shape)}", value.name)
        try:
            return self._b.input(value.name, shape, dtype)
        except UnsupportedError as error:
            return self._refuse(str(error), "")

    def _add_nodes(self, nodes: Sequence[Any], values: dict[str, Node | None], within: str) -> None:
        """Add nodes to the graph in order and enter their results in `values`; None stands for a value that is not
        supported. `within`: the node whose function body they are, "" in the model itself. Raises HostError for an
        operand that no earlier node computes."""
        for node in nodes:
            self._require_values(values, node.input, within or node.name or node.op_type)
            poisoned = [name for name in node.input if name and values.get(name) is None]
            is_refused_anyway = poisoned and node.op_type in ONNX
            if is_refused_anyway:
                results = [None] * len(node.output)
            else:
                results = self._import_node(node, values, within, bool(poisoned))
            values.update(zip(node.output, results, strict=False))

    def _require_values(self, values: Mapping[str, Node | None], names: Iterable[str], context: str) -> None:
        """Raise HostError if one of the names, operands of the node `context`, has no value yet."""
        if unknown := [name for name in names if name and name not in values]:
            raise HostError(
                f"compile: {self._graph.name}: {printable_name(context)}: nothing before gives "
                f"'{printable_name(unknown[0])}'"
            )

    def _import_node(
        self, node: Any, values: dict[str, Node | None], within: str, poisoned: bool
    ) -> Sequence[Node | None]:
        """Import a node and return its results, None where it is refused. `within`: the node whose function body
        contains it, "" in the model itself; `poisoned`: one of its operands was refused. Raise HostError for a broken
        node."""
        b = self._b
        b.scope = node.name or (node.output[0] if node.output else node.op_type)
        b.source = within or b.scope
        self._line = _user_line(node)
        refused = [None] * len(node.output)
        result_types: dict[str, Any] = {}
        try:
            if poisoned:
                may_be_done_by_host = not within and REFUSED in self._on_host and node.op_type not in RANDOM
                if not has_body(node, self._opset) and not may_be_done_by_host:
                    self._refuse(_operator_name(node), within or b.scope)
                return refused
            inputs = [values[name] if name else None for name in node.input]
            result_types |= infer_results(node, inputs, self._opset)
            if not within:
                self._types.update((name, element_type(proto)) for name, proto in result_types.items())
            try:
                return self._read_operator(node, inputs, values, result_types, within)
            except UnsupportedError as error:
                return self._read_otherwise(node, inputs, values, result_types, within, error)
        except UnsupportedError as error:
            text = str(error)
            self._refuse(f"{_operator_name(node)} ({text})" if text else _operator_name(node), within or b.scope)
        except (BudaError, MemoryError):
            raise
        except Exception as error:
            context = f"{printable_name(within or b.scope)}: {_operator_name(node)}"
            reason = printable_name(str(error), _SENTENCE)
            raise HostError(f"compile: {self._graph.name}: {context} cannot be: {reason}") from error
        return refused

    def _read_operator(
        self,
        node: Any,
        inputs: Sequence[Node | None],
        values: Mapping[str, Node | None],
        result_types: Mapping[str, Any],
        within: str,
    ) -> Sequence[Node | None]:
        """Fold a node, leave it to the host, hand it to its handler, or inline its definition, whichever applies first.
        Raise UnsupportedError if none does."""
        if self._is_foldable(node, inputs):
            shapes = static_shapes(result_types)
            self._count_results(node, inputs, shapes)
            try:
                return self._fold(node, inputs, shapes)
            except UnsupportedError:  # the evaluator does not know every operator in every version
                if node.op_type not in ONNX:
                    raise
        if node.op_type in self._on_host:
            return self._host.leave(node, values, Foreseen(result_types, self._shapes))
        if node.op_type in ONNX and node.domain in ("", "ai.onnx"):
            results = self._call_handler(node, inputs)
            named_results = zip(node.output, results, strict=False)
            return [self._with_stated_type(name, result, result_types) for name, result in named_results]
        body = find_body(node, inputs, self._opset)
        if body is None:
            raise NotSupportedError("")
        return self._inline(node, body, inputs, within or self._b.scope)

    def _is_foldable(self, node: Any, inputs: Sequence[Node | None]) -> bool:
        """Return whether a node depends on constants alone. A handled operator on constants by reference does not
        count, since it moves them without reading them."""
        if node.op_type in RANDOM or has_inner_graph(node):
            return False
        operands = [operand for operand in inputs if operand is not None]
        if not all(operand.op == "constant" for operand in operands):
            return False
        return node.op_type not in ONNX or not any(isinstance(operand.value, Referenced) for operand in operands)

    def _call_handler(self, node: Any, inputs: Sequence[Node | None]) -> Sequence[Node | None]:
        """Let the handler of an operator build it, and return its results. Raise NotSupportedError for arguments that
        it did not read, and for results that the model needs and the handler does not give."""
        b = self._b
        call = Call(
            b=b,
            op=node.op_type,
            inputs=RecordedOperands(inputs),
            attrs=RecordedAttributes({entry.name: helper.get_attribute_value(entry) for entry in node.attribute}),
            shapes=[self._shapes.get(name) for name in node.output],
            opset=self._opset.get(node.domain, 1),
            results=node.output,
            decided=self._decided,
        )
        before = len(self._graph.nodes)
        output = ONNX[node.op_type].handler(call)
        refuse_unread("onnx", node.op_type, call.unread(schema_of(node, self._opset)))
        if isinstance(output, tuple):
            results = list(output)
        else:
            results = [output]
        missing = [name for name in node.output[len(results) :] if name in self._needed]
        if missing:
            raise NotSupportedError(f"result {len(results)}")
        if results[0] is not None and len(self._graph.nodes) > before:
            results[0] = b.alias(results[0], b.scope)
        return results

    def _with_stated_type(self, name: str, result: Node | None, result_types: Mapping[str, Any]) -> Node | None:
        """Return a result under the type of integers or truth values that the standard infers for it. Handlers compute
        in float32, and what reads the result has to be of the same type as the standard's."""
        if result is None or name not in result_types:
            return result
        stated = element_type(result_types[name])
        if stated in ("int32", "int64", "bool") and result.dtype != stated:
            return self._b.retype(result, stated)
        return result

    def _count_results(self, node: Any, inputs: Sequence[Node | None], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Count the sizes of a node's results against the limit of what a small file may grow to. Raises
        UnsupportedError beyond it."""
        for shape in shapes.values():
            self._b.count_growth(node.op_type, shape, (operand for operand in inputs if operand is not None))

    def _read_otherwise(
        self,
        node: Any,
        inputs: Sequence[Node | None],
        values: Mapping[str, Node | None],
        result_types: Mapping[str, Any],
        within: str,
        error: UnsupportedError,
    ) -> Sequence[Node | None]:
        """Import a node whose handler refused it by its definition in the standard, or leave it to the host. Raise
        NotSupportedError with all reasons if neither is possible."""
        body = find_body(node, inputs, self._opset) if node.op_type in ONNX else None
        if body is not None:
            with suppress(UnsupportedError):
                return self._inline(node, body, inputs, within or self._b.scope)
        text = printable_name(str(error), _SENTENCE)
        foreseen = Foreseen(result_types, self._shapes)
        if REFUSED in self._on_host and not within and node.op_type not in RANDOM:
            try:
                return self._host.leave(node, values, foreseen, text or "no operator of the device")
            except NotSupportedError as other:
                text = "; ".join(filter(None, (text, str(other))))
        elif not within:
            self._host_takes_all &= self._host.may_compute(node, foreseen)
        raise NotSupportedError(text)

    def _fold(
        self, node: Any, inputs: Sequence[Node | None], foreseen: Mapping[str, tuple[int, ...]]
    ) -> Sequence[Node | None]:
        """Compute a node of constants by onnx's evaluator and return its results as constants; `foreseen` are the
        shapes that the standard infers for them. Raise NotSupportedError if the evaluator cannot, or is known to be
        wrong."""
        pairs = zip(node.input, inputs, strict=True)
        values = {name: np.asarray(operand.value) for name, operand in pairs if operand is not None}
        try:
            arrays = evaluate_node(node, values, self._model)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the evaluator cannot do
            raise NotSupportedError(f"of constants: {error}") from None
        if fault := find_shape_fault(node, arrays, foreseen):
            raise NotSupportedError(f"of constants: {fault}")
        constants: dict[str, Node | None] = {}
        for name, array in zip((name for name in node.output if name), arrays, strict=True):
            if array.dtype.name not in TYPES:
                raise NotSupportedError(f"of type {array.dtype}")
            constants[name] = self._b.constant(array, name=name)
        return [constants.get(name) for name in node.output]

    def _inline(self, node: Any, body: Any, inputs: Sequence[Node | None], within: str) -> Sequence[Node | None]:
        """Add the body of a function in place of a node and return its results. A body with operators that are not
        supported raises NotSupportedError, which names them, and counts as one operator that is refused."""
        inner: dict[str, Node | None] = dict(zip(body.input, inputs, strict=False))
        nodes = instantiate_body(node, body, inputs, within, self._opset)
        shapes = self._shapes
        self._shapes = {}
        opset = self._opset
        self._opset = {**self._opset, **{entry.domain: entry.version for entry in body.opset_import}}
        before = self._refused.counts.copy()
        try:
            self._add_nodes(nodes, inner, within)
        finally:
            self._shapes = shapes
            self._opset = opset
        if self._refused.counts != before:
            inside = ", ".join(self._refused.counts - before)
            self._refused.counts = before
            raise NotSupportedError(f"made of {inside}")
        results = [inner.get(name) for name in body.output]
        if any(name and entry is None for name, entry in zip(node.output, results, strict=False)):
            raise NotSupportedError("a result that its definition does not give")
        return results

    # -------------------------------------------------------------------------------------------------- refusals
    def _refuse(self, construct: str, context: str) -> None:
        """Note a construct that is not supported, with the name of its node or value and the current source line."""
        self._refused.add(construct, f"{printable_name(context)} {self._line}".strip())


def _operator_name(node: Any) -> str:
    """Return the name of a node's operator for messages, with its domain if that is not the standard's."""
    if node.domain not in ("", "ai.onnx"):
        name = f"{node.domain}.{node.op_type}"
    else:
        name = node.op_type
    return printable_name(name) or "an operator without a name"


def _user_line(node: Any) -> str:
    """Return the user's source line if the exporter recorded it, else ""."""
    notes: Mapping[str, str] = {entry.key: entry.value for entry in node.metadata_props}
    trace = notes.get("pkg.torch.onnx.stack_trace", "")
    return innermost_line([line.strip() for line in trace.splitlines() if line.strip().startswith("File ")])
