"""Reader of PyTorch models: torch.export traces them and decomposes operators to core ATen; each node goes to its
handler."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import numpy as np
import torch
from torch._ops import HigherOrderOperator, OpOverload

from buda_emu.arithmetic.tensor.mapped import FileMappings
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.graph.builder import Builder, printable_name
from buda_emu.compiler.graph.examples import Examples, in_order
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output
from buda_emu.compiler.importers.from_torch.archive import read_checked_archive
from buda_emu.compiler.importers.from_torch.declared import ATEN, Handler, reduces_scalar_dim, run_handler
from buda_emu.compiler.importers.from_torch.fast_paths import fast_paths
from buda_emu.compiler.importers.from_torch.operators.complex_numbers import complex_constant, find_complex_handler
from buda_emu.compiler.importers.from_torch.parameters import (
    named_tensors,
    parameter_constant,
    program_with_parameters,
    refuse_missing_data,
    with_parameters,
)
from buda_emu.compiler.importers.from_torch.trace import (
    TRACING,
    Arguments,
    TorchOrigin,
    array_of,
    distinct_tensors,
    input_labels,
    input_shapes,
    is_plain_constant,
    layer_names,
    named_arguments,
    silence_loggers,
    trace_module,
)
from buda_emu.compiler.importers.operators import (
    ARGUMENT_ERRORS,
    NotSupportedError,
    OpenSizes,
    Refusals,
    innermost_line,
    reason_of,
)
from buda_emu.compiler.importers.signals import Complex
from buda_emu.support.errors import HostError, UnsupportedError


def read_pt2(path: Path, parameters: Path | None, inputs_and_sizes: tuple[Examples, OpenSizes]) -> Graph:
    """Import a file of torch.export.save. `parameters` names a file with the parameters of a program that was exported
    on the device "meta"; `inputs_and_sizes` are example inputs, and sizes that the program leaves open. Raise HostError
    for a file that is damaged or may run code, and for parameters that are not the program's; UnsupportedError naming
    every operator that is not supported."""
    archive = read_checked_archive(path)
    try:
        program = torch.export.load(archive)
    except Exception as error:  # noqa: BLE001 - torch raises many kinds for damaged files
        raise HostError(f"compile: {path} is not a file of torch.export.save: {error}") from None
    if parameters is not None:
        program = program_with_parameters(program, parameters)
    return read_program(program, path.stem, inputs_and_sizes=inputs_and_sizes)


def read_torch(source: Any, inputs: Examples, parameters: Path | None, sizes: OpenSizes) -> Graph:
    """Import a module with example inputs, or an ExportedProgram. `parameters` names a file with the parameters of the
    module. Raise HostError if torch cannot trace the module, and for parameters that are not the module's;
    UnsupportedError naming every operator that is not supported."""
    if isinstance(source, torch.export.ExportedProgram):
        if parameters is not None:
            raise HostError("compile: parameters: an ExportedProgram has its own: give the torch module")
        return read_program(source, "model", inputs_and_sizes=(inputs, sizes))
    if not isinstance(source, torch.nn.Module):
        raise HostError(f"compile: {type(source).__name__} is not a torch.nn.Module")
    if inputs is None:
        raise HostError("compile: a torch module needs example inputs: compile(module, (tensor, ...))")
    name = type(source).__name__
    if parameters is not None:
        source = with_parameters(source, parameters)
    refuse_missing_data(named_tensors(source), name, _GIVE_PARAMETERS)
    if isinstance(inputs, Mapping):
        examples = named_arguments(source, inputs)
    else:
        examples = Arguments(distinct_tensors(inputs))
    program, asserted = trace_module(source, examples, name)
    return read_program(program, name, asserted=asserted)


_GIVE_PARAMETERS: Final = (
    "name the file that has them, with --parameters for a .pt2, in Python with compile(..., parameters=)"
)


def read_program(
    program: Any,
    name: str,
    *,
    asserted: bool = False,
    inputs_and_sizes: tuple[Examples, OpenSizes] | None = None,
) -> Graph:
    """Import an ExportedProgram. `asserted` says that it is right only if its assertions hold; `inputs_and_sizes` are
    example inputs, and sizes that the program leaves open. Raise UnsupportedError naming every operator that is not
    supported, HostError for sizes out of bounds."""
    refuse_missing_data(chain(program.state_dict.items(), program.constants.items()), name, _GIVE_PARAMETERS)
    inputs, sizes = inputs_and_sizes or (None, OpenSizes({}))
    shapes = input_shapes(program, name, in_order(inputs, list(input_labels(program).values())), sizes)
    with torch.no_grad(), silence_loggers():
        try:
            program = decompose(program, ASSERTED if asserted else ())
        except Exception as error:  # noqa: BLE001 - torch raises many kinds
            _refuse_whole(program, name, error)
    refuse_changes(program.graph_signature, name)
    return Reader(program, name, shapes).read()


def refuse_changes(signature: Any, name: str, *, keeps_buffers: bool = False) -> None:
    """Raise UnsupportedError for a program that changes tensors in place, which its next call or its caller would see.
    With `keeps_buffers`, as in training, it may change buffers."""
    if keeps_buffers:
        buffers = {}
    else:
        buffers = signature.buffers_to_mutate
    parameters: dict[str, str] = getattr(signature, "parameters_to_mutate", {})  # from torch 2.9
    kinds = (
        ("buffer", buffers, "call eval() on a norm; take a state as an input and return it"),
        ("input", signature.user_inputs_to_mutate, "change a clone of it, and return that where the caller needs it"),
        ("parameter", parameters, "compile_training trains a module"),
    )
    changes = [
        f"{kind} {', '.join(map(printable_name, dict.fromkeys(changed.values())))} ({advice})"
        for kind, changed, advice in kinds
        if changed
    ]
    if changes:
        raise UnsupportedError(
            f"compile: {name}: not supported: each call changes in place: {'; '.join(changes)}. What a model keeps "
            "from call to call, compile_programs keeps on the machine"
        )


def _refuse_whole(program: Any, name: str, error: Exception) -> NoReturn:
    """Raise UnsupportedError for a program that torch cannot decompose: with its operators that depend on data, the
    usual cause, or else with the reason that torch gives."""
    refused = Refusals()
    for node in program.graph.nodes:
        word = str(node.target).removeprefix("aten.")
        advice = ADVICE.get(_operator_name(word).removesuffix("_numpy"))
        if node.op == "call_function" and advice:
            refused.add(f"{word} ({advice})", _user_line(node))
    refused.raise_if_any(name)
    reason = str(error).strip().splitlines() or [repr(error)]
    raise UnsupportedError(
        f"compile: {name}: torch cannot take it apart into its core operators: {reason[0]}"
    ) from None


def decompose(program: Any, keep: Sequence[str] = ()) -> Any:
    """Decompose an ExportedProgram to core ATen, without torch's warnings about deprecations in its own code, and drop
    assertions except those to `keep`; none of `ASSERTED` where a number of a tensor became a constant of the program,
    which is right for that number alone."""
    if any(map(_is_fixed_number, program.graph.nodes)):
        keep = ASSERTED
    with TRACING, warnings.catch_warnings(action="ignore", category=FutureWarning):
        core_program = program.run_decompositions(decompositions())
    _drop_assertions(core_program.graph, keep)
    return core_program


_ASSERTIONS = (
    "_assert_scalar", "_assert_async", "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size",
)  # fmt: skip
"""Operators without results, which stop the program if the data differ from what the model's author assumed."""
ASSERTED = ("_assert_scalar",)
"""The assertions by which torch records its decisions by example inputs."""


def _is_fixed_number(node: Any) -> bool:
    """Return whether a node reads a number of a tensor that an assertion of the model fixes: torch writes it in place
    of the node. That all of a mask is true, which `torch._check_tensor_all` asserts, is no number to compute with."""
    if node.op != "call_function" or _operator_name(_operator_text(node)) not in ("item", "_local_scalar_dense"):
        return False
    if _operator_name(_operator_text(node.args[0])) == "_is_all_true":
        return False
    number = node.meta.get("val")
    if isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return not number.node.expr.free_symbols
    return isinstance(number, (bool, int, float))


def _drop_assertions(graph: Any, keep: Sequence[str]) -> None:
    """Remove assertions about data, except the operators to `keep`, and what was computed for them alone."""
    before = len(graph.nodes)
    for node in reversed(graph.nodes):
        name = str(node.target).removeprefix("aten.").split(".")[0]
        if node.op == "call_function" and not node.users and name in _ASSERTIONS and name not in keep:
            graph.erase_node(node)
    if len(graph.nodes) < before:
        graph.eliminate_dead_code()


def decompositions() -> Any:
    """Return torch's decompositions to core ATen and ours, without operators that are kept whole."""
    table = torch.export.default_decompositions()
    table.update(fast_paths())
    for op in ATEN.values():
        if op.intact:
            packet = getattr(torch.ops.aten, op.name, None)
        else:
            packet = None
        for overload in packet.overloads() if packet is not None else ():
            table.pop(getattr(packet, overload), None)
    return table


class Reader:
    """A reader of the nodes of an ExportedProgram in order. Subclasses override how placeholders or outputs are
    read."""

    def __init__(self, program: Any, name: str, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Prepare to read a program. `shapes` are those of inputs whose sizes it leaves open, by name."""
        self._program = program
        self._input_shapes = shapes or {}
        self._labels = input_labels(program)
        self._graph = Graph(name)
        self._b = Builder(self._graph, decompose=False)
        self._values: dict[Any, Any] = {}
        self._refused = Refusals()
        self._layers = layer_names(program.graph)
        self._is_in_called_graph = False
        self._mappings = FileMappings()

    def read(self) -> Graph:
        """Import the program and return the graph. Raise UnsupportedError naming every operator that is not
        supported."""
        program = self._program
        signature = program.graph_signature
        tensors = {**program.state_dict, **program.constants, **dict(program.named_buffers())}
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        names |= signature.inputs_to_lifted_tensor_constants
        for node in program.graph.nodes:
            if node.op == "placeholder" and node.name in signature.input_tokens:
                self._values[node] = None  # orders operators with effects, which are refused
            elif node.op == "placeholder":
                self._values[node] = self._placeholder(node, names, tensors)
            elif node.op == "call_function":
                self._values[node] = self._import_call(node)
            elif node.op == "output":
                self._outputs(node, signature)
            elif node.op == "get_attr":
                module = attrgetter(node.target)(program.graph_module)
                is_graph = isinstance(module, torch.fx.GraphModule)
                self._values[node] = partial(self._call_graph, module) if is_graph else None
        advice: list[str] = []
        if any("(" not in construct for construct in self._refused.counts):  # others say what to do instead
            advice.append(_ON_HOST)
        self._refused.raise_if_any(self._graph.name, *advice)
        node_names = {node: value.name for node, value in self._values.items() if isinstance(value, Node)}
        self._graph.origin = TorchOrigin(
            program, {node: name for node, name in node_names.items() if node.op != "placeholder"}
        )
        return self._graph

    def _placeholder(self, node: Any, names: dict[str, str], tensors: dict[str, Any]) -> Node | Complex | None:
        """Add what a placeholder stands for: a constant for a parameter or buffer (`names` maps it to its key in
        `tensors`), or else an input; None for a constant of Python. Raises UnsupportedError for an input that is
        complex or no tensor."""
        if node.name in names:
            name = names[node.name]
            if tensors[name].is_complex():
                return complex_constant(self._b, array_of(tensors[name]))
            return self._b.constant(parameter_constant(tensors[name].detach(), name, self._mappings), name=name)
        example = node.meta["val"]
        if is_plain_constant(example) and not node.users:
            return None
        if not isinstance(example, torch.Tensor):
            raise UnsupportedError(f"compile: input {node.name} is not a tensor")
        if example.is_complex():
            raise UnsupportedError(f"compile: input {node.name} is complex: give its torch.view_as_real")
        shape = self._input_shapes.get(node.name) or tuple(int(size) for size in example.shape)
        return self._b.input(self._labels[node.name], shape, dtype_name(example.dtype))

    def _import_call(self, node: Any) -> Any:
        """Import the call of an operator and return its result, `_POISONED` if it is refused."""
        self._b.scope = self._b.source = self._layers[node]
        word = _operator_text(node)
        arguments = [self._imported_argument(value) for value in node.args]
        options = {key: self._imported_argument(value) for key, value in node.kwargs.items()}
        operands = [*_flatten(arguments), *_flatten(options.values())]
        if any(operand is _POISONED for operand in operands):
            self._refuse_operator(node, word)
            return _POISONED
        nodes = [*chain.from_iterable(map(_nodes_of_operand, operands))]
        if self._is_foldable(node, word, nodes):
            return self._fold(node, word, arguments, options, nodes)
        if "getitem" in word:
            return self._take_result(node, arguments)
        example = node.meta.get("val")
        if _is_empty(example):
            return self._b.constant(np.zeros(tuple(example.shape), dtype_name(example.dtype)))
        try:
            handler = self._find_handler(_operator_name(word), operands, example)
            return self._call_handler(handler, node, arguments, options)
        except ARGUMENT_ERRORS as error:
            self._refuse(f"{word}{reason_of(error)}", node)
            return _POISONED

    def _call_graph(self, module: Any, *values: Any) -> Any:
        """Import a graph that an operator runs, such as a mask's function of places, of these `values`, and return its
        result. They may have more dimensions than the graph was traced with. Raise NotSupportedError if one of its
        operators is refused."""
        self._layers |= dict.fromkeys(module.graph.nodes, self._b.scope)
        operands = iter(values)
        result = None
        self._is_in_called_graph = True
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = next(operands)
            elif node.op == "call_function":
                self._values[node] = self._import_call(node)
            elif node.op == "output":
                result = self._imported_argument(node.args[0])
        self._is_in_called_graph = False
        if any(part is _POISONED for part in _flatten([result])):
            raise NotSupportedError("an operator of a function that it calls")
        return result

    def _refuse_operator(self, node: Any, word: str) -> None:
        """Report the operator `word` of a node that has no handler, even if one of its operands is refused. One that
        takes sizes alone is not reported, since it is computed as soon as these are known."""
        takes_tensors = any(isinstance(operand.meta.get("val"), torch.Tensor) for operand in node.all_input_nodes)
        name = _operator_name(word)
        is_operator = isinstance(node.target, _OPERATORS) and name not in _ASSERTIONS
        if is_operator and takes_tensors and name not in ATEN:
            advice = ADVICE.get(name)
            self._refuse(f"{word} ({advice})" if advice else word, node)

    def _is_foldable(self, node: Any, word: str, operands: Sequence[Node]) -> bool:
        """Return whether torch shall compute a node, the operator `word`: all its operands are constants in memory, and
        it is no getitem, no higher-order operator, no random operator with a handler, and no product of floats, whose
        sums depend on torch's threads."""
        if "getitem" in word or isinstance(node.target, HigherOrderOperator):
            return False
        if not all(operand.op == "constant" and not isinstance(operand.value, Referenced) for operand in operands):
            return False
        has_own_rule = _is_random(node.target) and _operator_name(word) in ATEN
        return not has_own_rule and not self._is_product(node, word)

    def _take_result(self, node: Any, arguments: Sequence[Any]) -> Any:
        """Return the result of an operator that a `getitem` takes, or note a refusal and return `_POISONED` if the
        handler does not give it."""
        output = arguments[0][arguments[1]]
        if callable(output):  # built where it is read: few models ask for places of the largest
            output = self._with_types(output(), node.meta.get("val")) if _reads_places_alone(node) else None
        # A handler gives no such result; backward passes find by themselves what the forward one keeps for them.
        if output is None and not all("_backward" in str(user.target) for user in node.users):
            self._refuse(f"result {arguments[1]} of {node.args[0].target}", node)
            return _POISONED
        return output

    def _call_handler(self, handler: Handler, node: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        """Run a handler and return its results, in the shapes and element types that torch gives them, the first one
        under the name of its layer. Raises what the handler raises."""
        example = node.meta.get("val")
        if _operator_name(_operator_text(node)) in ("as_strided", "as_strided_scatter"):
            options["stored"] = _memory_layout(node.args[0].meta["val"])
        before = len(self._graph.nodes)
        if reduces_scalar_dim(node.target, arguments):
            rows = [self._in_shape(value, (1,)) if _has_no_dimensions(value) else value for value in arguments]
            output = self._with_shapes(run_handler(handler, self._b, node.target, rows, options), example)
        else:
            output = run_handler(handler, self._b, node.target, arguments, options)
        output = self._with_types(output, example)
        if len(self._graph.nodes) > before:
            output = self._name_result(output)
        return output

    def _in_shape(self, node: Node, shape: Sequence[int]) -> Node:
        """Reshape a node that does not have the shape already."""
        if node.shape == tuple(shape):
            return node
        return self._b.reshape(node, shape=tuple(shape))

    def _with_shapes(self, output: Any, value: Any) -> Any:
        """Reshape results, `output`, to the shapes that torch gives them in its example `value`."""
        if isinstance(output, list):
            return [self._with_shapes(part, example) for part, example in zip(output, value, strict=True)]
        if isinstance(output, Node):
            return self._in_shape(output, value.shape)
        return output

    @staticmethod
    def _is_product(node: Any, word: str) -> bool:
        """Return whether a node is a product of floats, which torch sums in an order that depends on its number of
        threads."""
        declared = ATEN.get(_operator_name(word))
        value = node.meta.get("val")
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return floats and declared is not None and declared.family == "products"

    def _find_handler(self, name: str, operands: Sequence[Any], value: Any) -> Handler:
        """Return the handler of an operator, that for complex numbers if operands or the result (`value`) are complex.
        Raise NotSupportedError if there is none."""
        gives = isinstance(value, torch.Tensor) and value.is_complex()
        if gives or any(isinstance(operand, Complex) for operand in operands):
            handler = find_complex_handler(name)
            if handler is None:
                raise NotSupportedError("of complex numbers")
            return handler
        declared = ATEN.get(name)
        if declared is None:
            raise NotSupportedError(ADVICE.get(name, ""))
        return declared.handler

    def _with_types(self, output: Any, value: Any) -> Any:
        """Convert results, `output`, to the element types that torch gives them in its example `value`."""
        if isinstance(output, list) and isinstance(value, (list, tuple)):
            return [self._with_types(part, example) for part, example in zip(output, value, strict=False)] + output[
                len(value) :
            ]
        if isinstance(output, Node) and isinstance(value, torch.Tensor) and dtype_name(value.dtype) != output.dtype:
            return self._b.retype(output, dtype_name(value.dtype))
        return output

    def _add_constant(self, array: Array, **words: Any) -> Node | Complex:
        """Add a constant, as a pair of nodes if it is complex."""
        if array.dtype.kind == "c":
            return complex_constant(self._b, array)
        return self._b.constant(array, **words)

    def _name_result(self, output: Any) -> Any:
        """Give a layer's first result the name of the layer."""
        if isinstance(output, Node):
            return self._b.alias(output, self._b.scope)
        if isinstance(output, list) and isinstance(output[0], Node):
            return [self._b.alias(output[0], self._b.scope), *output[1:]]
        return output

    def _imported_argument(self, fx_value: Any) -> Any:
        """Return what stands for an argument of a node of torch: the imported value of another node, or itself."""
        if isinstance(fx_value, torch.fx.Node):
            return self._values[fx_value]
        if isinstance(fx_value, (list, tuple)):
            return [self._imported_argument(part) for part in fx_value]
        return fx_value

    def _fold(self, node: Any, word: str, arguments: Any, options: Any, operands: Sequence[Node]) -> Any:
        """Compute a node of constants, the operator `word`, by torch itself, and return its result, `_POISONED` if it
        is refused."""
        if _is_random(node.target):
            self._refuse(f"{word} (random numbers: give them as an input)", node)
            return _POISONED
        try:
            self._count_results(word, node.meta.get("val"), operands)
        except UnsupportedError as error:
            self._refuse(str(error), node)
            return _POISONED
        try:
            with torch.no_grad():
                words = {key: _to_torch(value) for key, value in options.items() if key not in _PLACES_OF_TENSORS}
                output = _run_by_torch(node.target, _to_torch(arguments), words)
        except Exception as error:  # noqa: BLE001 - an operator of a library raises what it likes
            reason = str(error).strip().splitlines() or [repr(error)]
            self._refuse(f"{word} (of constants: {reason[0]})", node)
            return _POISONED
        if isinstance(output, torch.Tensor) and _operator_name(word).startswith(_EMPTY):
            # Memory that nobody wrote may hold anything, NaN, too: zeros are as right, and the same every time.
            output = torch.zeros_like(output)
        if isinstance(output, (list, tuple)):
            return [self._constant_or_other(part) for part in output]
        return self._constant_or_other(output)

    def _constant_or_other(self, result: Any) -> Any:
        """Return a computed tensor as a constant of the graph, and anything else as it is: a number, or an assertion of
        the model, which held."""
        return self._add_constant(array_of(result)) if isinstance(result, torch.Tensor) else result

    def _count_results(self, word: str, examples: Any, operands: Sequence[Node]) -> None:
        """Account for the results of folded operands, `examples`, of the operator `word`. Raise UnsupportedError if
        they are too large. Within a called graph, which is traced with single numbers, they have the shape to which the
        operands are broadcast."""
        if self._is_in_called_graph:
            self._b.count_growth(word, _broadcast_shape([operand.shape for operand in operands]), operands)
            return
        for example in examples if isinstance(examples, (list, tuple)) else (examples,):
            sizes: tuple[Any, ...] = tuple(example.shape) if isinstance(example, torch.Tensor) else ()
            if all(isinstance(size, int) for size in sizes):  # others depend on data
                self._b.count_growth(word, sizes, operands)

    def _outputs(self, node: Any, signature: Any) -> None:
        """Declare the outputs of the graph; a constant that the model returns becomes one, too. Raises UnsupportedError
        for complex ones and for those without elements."""
        user_outputs = set(signature.user_outputs)
        number = 0
        for fx_output in node.args[0]:
            if fx_output is None or (isinstance(fx_output, torch.fx.Node) and fx_output.name not in user_outputs):
                continue
            if isinstance(fx_output, torch.fx.Node):
                value = self._values[fx_output]
            else:
                value = self._b.constant(np.asarray(fx_output))
            self._add_output(number, value)
            number += 1

    def _add_output(self, number: int, value: Any) -> None:
        """Declare a value as an output of the graph, if it is a node. Raises UnsupportedError for a complex value and
        for one without elements."""
        if isinstance(value, Complex):
            raise UnsupportedError(
                f"compile: {self._graph.name}: output {number} is complex: give its torch.view_as_real"
            )
        if not isinstance(value, Node):
            return
        if 0 in value.shape:
            raise UnsupportedError(f"compile: {self._graph.name}: output {number} has no elements: {value.shape}")
        label = f"output_{number}" if number else "output"
        self._graph.outputs.append(Output(label, value.name, value.dtype))

    def _refuse(self, construct: str, node: Any) -> None:
        """Note a construct that cannot be imported, with the user's line or else the layer, for the error at the
        end."""
        self._refused.add(construct, _user_line(node) or self._layers[node])


_POISONED = object()
_ON_HOST = (
    "export the model with torch.onnx.export: of an ONNX model, be.compile_in_parts leaves to the host what the device "
    "cannot do"
)
_READERS_OF_PLACES = ("max_unpool2d", "max_unpool3d")
_KEEP_ORDER = ("alias", "clone", "reshape", "squeeze", "unsqueeze", "view", "_unsafe_view")
"""Operators that keep the elements of a tensor in order."""


def _reads_places_alone(node: Any) -> bool:
    """Return whether the indices of a pool, a node of torch, are read as places alone and never as numbers, which the
    formats of most models round above 256."""
    for user in node.users:
        name = _operator_name(_operator_text(user))
        is_moved = name in _KEEP_ORDER and _reads_places_alone(user)
        if not is_moved and not (name in _READERS_OF_PLACES and user.args[0] is not node):
            return False
    return True


_EMPTY = ("empty", "new_empty")
"""Prefixes of operators that return memory without writing it."""
_MASKED = "the size of its result depends on data: multiply by the mask, or use torch.where"
ADVICE = {
    "_local_scalar_dense": "Python decides by values of inputs: use torch.where, give a number that is known before, "
    "or leave out an input, such as a mask",
    "nonzero": _MASKED,
    "masked_select": _MASKED,
    "_unique2": "the size of its result depends on data",
    "unique_dim": "the size of its result depends on data",
    "unique_consecutive": "the size of its result depends on data",
    "repeat_interleave": "the size of its result depends on data: give it the numbers of repeats as Python's numbers",
}
"""Advice for operators that no netlist can compute."""


_OPERATORS = (OpOverload, HigherOrderOperator)


def _operator_text(node: Any) -> str:
    """Return the name of an operator with its overload; for one that runs another operator (`with_effects`), both
    names."""
    word = str(node.target).removeprefix("aten.")
    if isinstance(node.target, HigherOrderOperator):
        inner = next((argument for argument in node.args if isinstance(argument, OpOverload)), None)
        if inner is not None:
            return f"{inner} in {word}"
        return word
    return word


def _is_random(target: Any) -> bool:
    """Return whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _operator_name(word: str) -> str:
    """Return an operator's name without its overload: `add`, or `library.name` for one of another library."""
    return word.rpartition(".")[0] or word


def dtype_name(dtype: Any) -> str:
    """Return numpy's name of a torch type; bfloat16 becomes float32, since numpy has none."""
    if dtype == torch.bfloat16:
        return "float32"
    return str(dtype).removeprefix("torch.")


def _memory_layout(tensor: Any) -> tuple[tuple[int, ...], int]:
    """Return the strides of a tensor in memory and the offset of its first element."""
    return tuple(int(step) for step in tensor.stride()), int(tensor.storage_offset())


def _has_no_dimensions(operand: Any) -> bool:
    """Return whether an operand is a node without dimensions."""
    return isinstance(operand, Node) and not operand.shape


def _flatten(items: Any) -> list[Any]:
    """Return the entries of nested lists in order."""
    flat: list[Any] = []
    for entry in items:
        flat += _flatten(entry) if isinstance(entry, list) else [entry]
    return flat


def _nodes_of_operand(operand: Any) -> list[Node]:
    """Return the nodes of an operand: two for a complex value, none for anything but a value of the graph."""
    if isinstance(operand, Complex):
        return operand.parts
    if isinstance(operand, Node):
        return [operand]
    return []


def _to_torch(operand: Any) -> Any:
    """Return an operand with torch tensors in place of constant nodes."""
    if isinstance(operand, Node):
        return torch.from_numpy(np.ascontiguousarray(operand.value)).reshape(operand.shape)
    if isinstance(operand, Complex):
        real, *imag = (_to_torch(part) for part in operand.parts)
        return torch.complex(real, imag[0] if imag else torch.zeros_like(real))
    if isinstance(operand, list):
        return [_to_torch(part) for part in operand]
    return operand


def _run_by_torch(function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Run an operator by torch, in 64 bits if it has no kernel for unsigned integers, which decompositions use as
    indices."""
    try:
        return function(*arguments, **options)
    except NotImplementedError:
        return function(*map(_to_int64, arguments), **{key: _to_int64(option) for key, option in options.items()})


_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def _to_int64(operand: Any) -> Any:
    """Return an argument of an operator with int64 in place of unsigned types that lack kernels: in tensors, in lists,
    and as a dtype."""
    if isinstance(operand, torch.Tensor):
        if operand.dtype in _UNSIGNED:
            return operand.to(torch.int64)
        return operand
    if isinstance(operand, (list, tuple)):
        return [_to_int64(part) for part in cast("Sequence[Any]", operand)]
    if operand in _UNSIGNED:
        return torch.int64
    return operand


_PLACES_OF_TENSORS: Final = ("device", "pin_memory", "layout")
"""Options of operators that say where a tensor lies, and not what it holds."""


def _is_empty(example: Any) -> bool:
    """Return whether a traced value is a tensor without elements. A size that depends on data counts as some."""
    if not isinstance(example, torch.Tensor):
        return False
    sizes: tuple[Any, ...] = tuple(example.shape)
    return any(isinstance(size, int) and size == 0 for size in sizes)


def _user_line(node: Any) -> str:
    """Return the innermost source line that is not torch's own, else the innermost; "" if torch knows only code that it
    generated, as for backward passes."""
    stack = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    lines = [line for line in stack if line.startswith("File ") and not line.startswith('File "<eval_with_key>')]
    return innermost_line(lines)


def _broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which operands of these shapes are broadcast; the largest shape where one of them is a table
    that the others are indices of."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return max(shapes, key=prod)
