"""The backend of `torch.compile(model, backend="buda")`: graphs of torch._dynamo are compiled and run, by default in
precision `ideal`. Changes in place and views are done outside of the compiled model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, cast

import numpy as np
import torch
from torch._guards import tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.node import map_arg
from torch.fx.traceback import preserve_node_meta
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from buda_emu.compiler.compilation import require_words
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.graph.graph import Array
from buda_emu.support.errors import HostError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor without its data. `offset` is the distance from the begin of its memory, or from the argument that it is
    a view of."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    device: Any
    wants_gradient: bool
    offset: int = 0

    @classmethod
    def of(cls, tensor: Any) -> "Layout":
        """Return the layout of a tensor."""
        return cls(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device, tensor.requires_grad)

    @property
    def is_open(self) -> bool:
        """True if torch has left sizes or strides open."""
        return not all(type(number) is int for number in (*self.size, *self.stride))

    @property
    def has_elements(self) -> bool:
        """True unless a size is 0."""
        return 0 not in self.size

    @property
    def end(self) -> int:
        """The number of elements that the memory must have at least."""
        steps = sum((size - 1) * step for size, step in zip(self.size, self.stride, strict=True))
        return self.offset + (steps + 1 if self.has_elements else 0)

    def memory(self) -> Any:
        """Allocate and return memory of zeros that is long enough for the tensor."""
        return torch.zeros(self.end, dtype=self.dtype, device=self.device)

    def of_memory(self, memory: Any) -> Any:
        """Return the tensor as a view of the memory of another tensor, `memory`, from where that begins."""
        return memory.as_strided(self.size, self.stride, memory.storage_offset() + self.offset)


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that a graph returns. `first` is the number of the first result that is the same tensor object; `memory`
    is the number of the first result in the same memory; `argument` is the number of an argument in the same memory, or
    None."""

    layout: Layout
    first: int
    memory: int
    argument: int | None
    is_argument: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a graph on its arguments, and its results.

    `changed` numbers the arguments that the graph changes in place; `results` has a Result for each tensor and other
    values unchanged. `written` has for each changed argument a mask of the elements that are written whatever the data
    are; `by_data` numbers the changed arguments in which data decide about further elements.
    """

    changed: tuple[int, ...]
    results: tuple[Any, ...]
    written: tuple[Any, ...] = ()
    by_data: tuple[int, ...] = ()

    @property
    def computed(self) -> tuple[int, ...]:
        """The numbers of the results that lie in no argument, each tensor object once."""
        pairs = ((number, result) for number, result in enumerate(self.results) if isinstance(result, Result))
        return tuple(
            number
            for number, result in pairs
            if result.first == number and result.argument is None and result.layout.has_elements
        )


def find_effects(
    graph: Callable[..., Any], arguments: Sequence[Any], has_places: Callable[[], bool] = lambda: False
) -> Effects:
    """Run a graph without data and return its effects. Tensors among the arguments are given as Layouts. `has_places`
    tells during the run whether the caller can compute where the current operator writes; if not, the operator counts
    as writing its whole operand. Raise UnsupportedError for effects that cannot be reproduced outside of the graph, and
    for a graph that torch cannot run without data."""
    gradients = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(gradients), FakeTensorMode(allow_non_fake_inputs=True):
        tensors = [_without_data(argument) if isinstance(argument, Layout) else argument for argument in arguments]
        versions = [_count_changes(argument) for argument in tensors]
        writes = _Writes(has_places)
        try:
            with writes:
                outputs = graph(*tensors)
        except Exception as error:  # noqa: BLE001 - torch raises many kinds
            reason = str(error).strip().splitlines() or [repr(error)]
            raise UnsupportedError(f"torch.compile: sizes or results depend on data: {reason[0]}") from None
    changed = tuple(
        number
        for number, argument in enumerate(tensors)
        if _count_changes(argument) != versions[number]
        or any(share_memory(argument, other) for other in writes.statistics)
    )
    _refuse_changes([(arguments[number], tensors[number]) for number in changed], gradients)
    written = tuple(_written_mask(arguments[number], tensors[number], writes) for number in changed)
    by_data = tuple(
        number for number in changed if any(share_memory(tensors[number], other) for other in writes.by_data)
    )
    return Effects(changed, _describe_results(outputs, tensors), written, by_data)


def _written_mask(layout: Layout, tensor: Any, writes: "_Writes") -> Any:
    """Return a mask of the elements of an argument that are written whatever the data are; a single True stands for
    all."""
    written_views = [other for other in writes.certain if share_memory(tensor, other)]
    is_whole = any(
        Layout.of(other).size == layout.size and _memory_position(other) == _memory_position(tensor)
        for other in written_views
    )
    is_known = all(other.dtype.itemsize == tensor.dtype.itemsize for other in written_views)
    if is_whole or not is_known or not (written_views or writes.by_data):
        return torch.tensor(True)
    return _mask_of_views(layout, written_views)


def _mask_of_views(layout: Layout, views: Sequence[Any]) -> Any:
    """Return a mask of the elements of a layout that one of the views on the same memory has."""
    regions = [replace(Layout.of(view), offset=view.storage_offset()) for view in views]
    end = max((layout.end, *(region.end for region in regions)))
    memory = torch.zeros(end, dtype=torch.bool)
    numbers = torch.arange(end)
    for region in regions:
        memory[region.of_memory(numbers).reshape(-1)] = True
    return layout.of_memory(memory)


def _memory_position(tensor: Any) -> tuple[Any, ...]:
    """Return the offset of a tensor in its memory, and its strides."""
    return tensor.storage_offset(), *tensor.stride()


def _without_data(layout: Layout) -> Any:
    """Return a tensor of a layout without data, for a trace of shapes; one that wants a gradient is no leaf, since
    torch forbids changes of leaves in place."""
    memory = layout.memory()
    if layout.wants_gradient:
        memory = memory.requires_grad_().clone()  # a leaf cannot be changed
    return layout.of_memory(memory)


def _written_tensors(schema: Any, words: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the tensors among the arguments of an operator, by name, that it writes by its schema."""
    written = (declared for declared in schema.arguments if declared.alias_info and declared.alias_info.is_write)
    targets = [words.get(declared.name) for declared in written]
    return [tensor for tensor in tree_leaves(targets) if isinstance(tensor, torch.Tensor)]


class _Writes(TorchDispatchMode):
    """A dispatch mode that records the tensors to which operators write: `certain` for whole tensors, `by_data` for
    selected elements. `statistics` are those that norms change in training; neither torch's version counter nor the
    schema shows these changes."""

    def __init__(self, has_places: Callable[[], bool]) -> None:
        super().__init__()
        self._has_places = has_places
        self.statistics: list[Any] = []
        self.certain: list[Any] = []
        self.by_data: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = func._schema
        words = dict(zip((declared.name for declared in schema.arguments), args, strict=False)) | (kwargs or {})
        if words.get("training") or words.get("train"):
            statistics = (words.get("running_mean"), words.get("running_var"))
            self.statistics += [declared for declared in statistics if declared is not None]
            self.certain += self.statistics
        is_by_data = schema.name in _WHERE_DATA_SAYS and self._has_places()
        tensors = _written_tensors(schema, words)
        (self.by_data if is_by_data else self.certain).extend(tensors)
        return func(*args, **(kwargs or {}))


def _count_changes(tensor: Any) -> int:
    """Return how often a tensor was changed in place."""
    if isinstance(tensor, torch.Tensor):
        return tensor._version
    return 0


def _refuse_changes(pairs: Sequence[tuple[Layout, Any]], gradients: bool) -> None:
    """Raise UnsupportedError for tensors changed in place where gradients would be lost or their shape has changed.
    `pairs`: the layout before and the tensor after the run."""
    for layout, tensor in pairs:
        if gradients and tensor.requires_grad:
            raise UnsupportedError(
                "torch.compile: an input is changed in place by what has a gradient, and no gradients flow through "
                "backend buda: call the model under torch.no_grad(), or train it with compile_training"
            )
        if replace(Layout.of(tensor), wants_gradient=layout.wants_gradient) != layout:
            raise UnsupportedError("torch.compile: the shape of an input is changed in place: return another tensor")


def _describe_results(outputs: Sequence[Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Describe the results of a run so that a call can rebuild them: for each tensor its layout, and the earlier result
    or the argument (`tensors`) whose memory it shares. Other values stay as they are. Raises UnsupportedError for
    memory that is read as another element type."""
    results: list[Any] = []
    for number, output in enumerate(outputs):
        if not isinstance(output, torch.Tensor):
            results.append(output)
            continue
        first = next(place for place, other in enumerate(outputs) if other is output)
        memory = next(place for place, other in enumerate(outputs) if share_memory(output, other))
        argument = next((place for place, other in enumerate(tensors) if share_memory(output, other)), None)
        if argument is None:
            source = outputs[memory]
        else:
            source = tensors[argument]
        if source.dtype != output.dtype:
            raise UnsupportedError(
                f"torch.compile: result {number} is memory of {source.dtype} read as {output.dtype}: clone it"
            )
        if argument is None:
            begins = 0
        else:
            begins = source.storage_offset()
        layout = replace(Layout.of(output), offset=output.storage_offset() - begins)
        is_argument = argument is not None and tensors[argument] is output
        results.append(Result(layout=layout, first=first, memory=memory, argument=argument, is_argument=is_argument))
    return tuple(results)


def share_memory(tensor: Any, other: Any) -> bool:
    """Return whether both values are tensors in the same memory."""
    if not isinstance(tensor, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return _storage_id(tensor) == _storage_id(other)


def _storage_id(tensor: Any) -> int:
    """Return an identifier of the memory of a tensor; tensors without data have no address."""
    return tensor.untyped_storage()._cdata


_MOST_MODELS: Final = 16
"""Limit for the compiled models of one graph, each for other sizes: each holds a netlist and parameters in memory."""


def buda(module: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile a graph module for torch.compile and return a function of its inputs; a graph whose sizes torch leaves
    open is compiled in a call. `options` are those of `compile`, and `precision` for the run. Raise HostError for
    options that are no mapping, TypeError for one that does not exist, and what `compile` raises, here or in a call."""
    torch_options = options.get("options") or {}
    if not isinstance(torch_options, Mapping):
        kind = type(torch_options).__name__
        raise HostError(f"torch.compile: options is a {kind}, not a dict such as {{'df': 'Float32'}}")
    words = dict(cast("Mapping[str, Any]", torch_options))
    require_words(words, "compile", also=("precision",))
    precision = words.pop("precision", "ideal")
    graph = _Graph(module, precision, words)
    if not any(map(_is_open, inputs)):
        graph.compile_for(graph.fix_numbers(inputs))
    return graph


class _Graph:
    """A graph module that is compiled for each set of sizes and numbers with which it is called: torch leaves them open
    from the second set on, and a netlist has fixed ones."""

    def __init__(self, module: Any, precision: Any, words: Mapping[str, Any]) -> None:
        self._module = module
        self._precision = precision
        self._words = words
        self._numbers = _number_inputs(module.graph)
        self._compile: dict[Any, _Compiled] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        fixed = self.fix_numbers(arguments)
        return self.compile_for(fixed).run(fixed, self._precision)

    def fix_numbers(self, arguments: Sequence[Any]) -> list[Any]:
        """Replace tensors that torch makes of Python numbers by these numbers."""
        return [argument.item() if place in self._numbers else argument for place, argument in enumerate(arguments)]

    def compile_for(self, arguments: Sequence[Any]) -> "_Compiled":
        """Return the model for arguments of these layouts and numbers, compiled now or earlier; the oldest of more than
        `_MOST_MODELS` models is closed. Raises what `compile` raises."""
        layouts = [Layout.of(argument) if isinstance(argument, torch.Tensor) else argument for argument in arguments]
        key = torch.is_grad_enabled(), *((type(argument), _key_part(argument)) for argument in layouts)
        if key not in self._compile:
            if len(self._compile) == _MOST_MODELS:
                self._compile.pop(next(iter(self._compile))).close()
            self._compile[key] = _Compiled(self._module, layouts, self._words)
        return self._compile[key]


class _Compiled:
    """A graph module compiled for arguments of certain layouts and for certain numbers: a model without effects, and
    the effects."""

    def __init__(self, module: Any, layouts: Sequence[Any], words: Mapping[str, Any]) -> None:
        self._layouts = layouts
        walk = _Walk(module)
        with tracing(None):  # torch.compile is at work, and would take this for a part of it
            self._effects = find_effects(walk.run, layouts, walk.has_places)
            self._by_data = _numbers_with_elements(self._effects.by_data, layouts)
            self._model = self._without_effects(walk, words)

    def _without_effects(self, walk: "_Walk", words: Mapping[str, Any]) -> Any:
        """Compile the graph as a function that also returns what arguments changed in place would hold (`PureGraph`);
        None if it has neither results nor changed arguments."""
        pure = PureGraph(walk, self._layouts, self._effects)
        if not pure.results and not pure.changed:
            return None
        examples = [layout.of_memory(layout.memory()) for layout in self._layouts if isinstance(layout, Layout)]
        with torch.inference_mode(False), torch.no_grad():
            return compile_model(pure, examples, **words)

    def close(self) -> None:
        """Free the machines of the model."""
        if self._model is not None:
            self._model.close()

    def run(self, arguments: Sequence[Any], precision: Any) -> tuple[Any, ...]:
        """Run the model and return the results as eager torch does, after changing the arguments that the graph
        changes. Raise UnsupportedError for arguments that share memory which the graph changes."""
        changed = _numbers_with_elements(self._effects.changed, self._layouts)
        _refuse_shared_memory(arguments, changed)
        tensors = [
            _rounded_integers(argument.detach()) if number in changed else argument.detach()
            for number, argument in enumerate(arguments)
            if isinstance(argument, torch.Tensor)
        ]
        if self._model is not None:
            values = self._model(*tensors, precision=precision)
        else:
            values = ()
        computed = self._effects.computed
        places = dict(zip(self._by_data, values[len(computed) + len(changed) :], strict=True))
        masks = dict(zip(self._effects.changed, self._effects.written, strict=True))
        for number, value in zip(changed, values[len(computed) :], strict=False):
            is_written = masks[number]
            if number in places:
                is_written = is_written | (_as_tensor(places[number], arguments[number].shape) > 0.5)
            _write_changes(arguments[number].detach(), value, is_written)
        return self._return_results(arguments, dict(zip(computed, values, strict=False)))

    def _return_results(self, arguments: Sequence[Any], values: Mapping[int, Array]) -> tuple[Any, ...]:
        """Return what the module returns in torch: computed tensors (`values` by the number of the result), views of
        arguments or of earlier results where the module returns such, and values that are no tensors. A gradient
        through a computed tensor raises UnsupportedError."""
        sources = [result for result in arguments if isinstance(result, torch.Tensor) and result.requires_grad]
        memories = _allocate_results(self._effects.results)
        outputs: list[Any] = []
        for number, result in enumerate(self._effects.results):
            if not isinstance(result, Result):
                outputs.append(result)
            elif result.first < number:
                outputs.append(outputs[result.first])
            elif result.argument is not None:
                outputs.append(_view_of_argument(result, arguments[result.argument]))
            else:
                tensor = result.layout.of_memory(memories[result.memory])
                if number in values:
                    _copy_into(tensor, _as_tensor(values[number], tensor.shape))
                outputs.append(_NoGradient.apply(tensor, *sources) if result.layout.wants_gradient else tensor)
        return tuple(outputs)


class PureGraph(torch.nn.Module):
    """A graph module as a function of tensors that changes none of them.

    It returns the computed results, then the changed arguments, and then for each argument with writes that data select
    a mask: 1 for a written element, 0 for others.
    """

    def __init__(self, walk: "_Walk", layouts: Sequence[Any], effects: Effects) -> None:
        super().__init__()
        self.module = walk.module  # torch looks for parameters here
        self._walk = walk
        self.results = effects.computed
        self.changed = _numbers_with_elements(effects.changed, layouts)
        self._copied = effects.changed
        self._by_data = _numbers_with_elements(effects.by_data, layouts)
        self._layouts = layouts

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        """Return the results, the arguments as the graph leaves them, and the masks of writes that data select."""
        waiting = iter(tensors)
        arguments = [next(waiting) if isinstance(layout, Layout) else layout for layout in self._layouts]
        for number in self._copied:
            arguments[number] = arguments[number].clone()
        outputs, places = self._walk.run_with_places(arguments, self._by_data)
        return (
            *(outputs[number] for number in self.results),
            *(arguments[number] for number in self.changed),
            *places,
        )


class _Walk(torch.fx.Interpreter):
    """An interpreter of a graph module that keeps the user's source line for each operator.

    The first run, without data, notes which nodes are views of which. Later runs can follow where a graph writes to an
    argument: a second tensor beside it, of the same layout and of zeros, has the same views, and gets ones wherever an
    operator of `_PLACES` writes.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self._node: Any = None
        self._sources: dict[Any, Any] = {}
        self._places: dict[Any, Any] = {}

    def run(self, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run the graph; traced operators keep the metadata of its nodes, such as source lines."""
        with preserve_node_meta():
            return super().run(*arguments)

    def run_with_places(self, arguments: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, list[Any]]:
        """Run the graph and return its results, and for each numbered argument a mask of the elements that operators of
        `_PLACES` wrote."""
        graph: Any = self.graph
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        places = [torch.zeros_like(arguments[number], dtype=torch.float32) for number in numbers]
        self._places = dict(zip((inputs[number] for number in numbers), places, strict=True))
        try:
            return self.run(*arguments), places
        finally:
            self._places = {}

    def has_places(self) -> bool:
        """Return whether `run_with_places` can follow the writes of the current node."""
        return _called_name(self._node) in _PLACES and isinstance(self._node.args[0], torch.fx.Node)

    def run_node(self, n: Any) -> Any:
        """Run node `n` and return its value. Note at the first run which operand it is a view of; while masks are
        followed, apply the node to them, too."""
        self._node = n
        value = super().run_node(n)
        if n not in self._sources:
            sources = (node for node in n.all_input_nodes if _in_memory_of(value, self.env[node]))
            self._sources[n] = next(sources, None)
        if self._places:
            self._follow_places(n, value)
        return value

    def _follow_places(self, n: Any, value: Any) -> None:
        """Apply node `n`, whose result is `value`, to the masks: set ones where it writes, and take the same view of a
        mask where it is a view of an argument."""
        source = self._sources[n]
        if _called_name(n) in _PLACES and n.args[0] in self._places:
            arguments, words = map_arg((n.args[1:], n.kwargs), self.env.__getitem__)
            _PLACES[_called_name(n)](self._places[n.args[0]], *arguments, **words)
        if source not in self._places:
            return
        if value is self.env[source]:
            self._places[n] = self._places[source]
            return
        arguments, words = map_arg(
            (n.args, n.kwargs), lambda node: self._places[node] if node is source else self.env[node]
        )
        self._places[n] = getattr(self, n.op)(n.target, arguments, words)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run a method; `item` of a Python number returns the number."""
        is_number = target == "item" and not isinstance(args[0], torch.Tensor)
        if is_number:
            return args[0]
        return super().call_method(target, args, kwargs)


def _called_name(node: Any) -> str:
    """Return the name of the function or method that a node calls, or ""."""
    if node.op not in ("call_function", "call_method"):
        return ""
    if isinstance(node.target, str):
        return node.target
    return getattr(node.target, "__name__", "")


def _in_memory_of(value: Any, other: Any) -> bool:
    """Return whether a tensor of one value shares memory with a tensor of the other."""
    return any(share_memory(left, right) for left, right in product(tree_leaves(value), tree_leaves(other)))


def _mark_at_index(places: Any, index: Any, *_: Any) -> None:
    """Set ones in the mask `places` at the elements that `tensor[index] = ...` writes."""
    places[index] = 1.0


def _mark_at_indices(places: Any, indices: Any, *_: Any, **__: Any) -> None:
    """Set ones in the mask `places` at the elements that `index_put` writes."""
    places.index_put_(indices, torch.ones(()))


def _mark_at_mask(places: Any, mask: Any, *_: Any, **__: Any) -> None:
    """Set ones in the mask `places` at the elements that `masked_fill` or its like writes."""
    places.masked_fill_(mask, 1.0)


def _mark_in_slices(places: Any, dim: int, index: Any, *_: Any, **__: Any) -> None:
    """Set ones in the mask `places` in the slices along a dimension that `index_copy` or its like writes."""
    places.index_fill_(dim, index, 1.0)


def _mark_at_elements(places: Any, dim: int, index: Any, *_: Any, **__: Any) -> None:
    """Set ones in the mask `places` at the elements that `scatter` or its like writes."""
    places.scatter_(dim, index, 1.0)


_PLACES: Final[Mapping[str, Callable[..., None]]] = {
    "setitem": _mark_at_index, "index_put_": _mark_at_indices,
    "masked_fill_": _mark_at_mask, "masked_scatter_": _mark_at_mask,
    "index_add_": _mark_in_slices, "index_copy_": _mark_in_slices,
    "index_fill_": _mark_in_slices, "index_reduce_": _mark_in_slices,
    "scatter_": _mark_at_elements, "scatter_add_": _mark_at_elements, "scatter_reduce_": _mark_at_elements,
}  # fmt: skip
"""For each operator that writes only some elements of its operand, selected by an index or a mask: the function that
sets ones in a mask there. Its parameters are those of the operator."""
_WHERE_DATA_SAYS: Final = frozenset(f"aten::{name}" for name in _PLACES if name != "setitem")
"""The same operators by their names in torch's schemas. `setitem` is carried out by one of the others, or by a copy."""


class _NoGradient(torch.autograd.Function):
    """An autograd function that raises an error if a gradient of the result is requested."""

    @staticmethod
    def forward(ctx: Any, result: Any, *sources: Any) -> Any:
        """Return the result without its history; `sources` only tie it to arguments that want a gradient."""
        del ctx, sources
        return result.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Raise UnsupportedError, since backend buda computes no gradients."""
        del ctx, gradients
        raise UnsupportedError(
            "torch.compile: no gradients flow through backend buda: train the module with compile_training, or call it "
            "under torch.no_grad()"
        )


def _key_part(argument: Any) -> Any:
    """Return an argument of a call as a part of the key under which the compiled graph is kept: a float by its digits,
    since 0.0 equals -0.0 and NaN does not equal itself."""
    if isinstance(argument, float):
        return argument.hex()
    return argument


def _is_open(argument: Any) -> bool:
    """Return whether torch leaves an argument open until it calls: a size, or a number as a tensor."""
    if isinstance(argument, torch.Tensor):
        return Layout.of(argument).is_open or (argument.dim() == 0 and isinstance(argument, FakeTensor))
    return isinstance(argument, torch.SymInt | torch.SymFloat | torch.SymBool)


def _number_inputs(graph: Any) -> frozenset[int]:
    """Return the numbers of the inputs that are tensors only because torch does not fix Python's floats: the graph only
    reads their number."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    return frozenset(
        place
        for place, node in enumerate(inputs)
        if node.users and all(user.op == "call_method" and user.target == "item" for user in node.users)
    )


def _numbers_with_elements(numbers: Sequence[int], layouts: Sequence[Any]) -> tuple[int, ...]:
    """Return those of `numbers` whose layouts have elements."""
    return tuple(number for number in numbers if layouts[number].has_elements)


def _refuse_shared_memory(arguments: Sequence[Any], changed: Sequence[int]) -> None:
    """Raise UnsupportedError if one of the arguments numbered `changed`, which the graph changes in place, lies in the
    same memory as another argument: the model gets a copy of each, so a change of one would not be seen in the
    other."""
    for number in changed:
        memory = arguments[number].untyped_storage().data_ptr()
        others = (
            argument
            for place, argument in enumerate(arguments)
            if place != number and isinstance(argument, torch.Tensor)
        )
        if any(other.untyped_storage().data_ptr() == memory for other in others):
            raise UnsupportedError(
                "torch.compile: two inputs share memory, and one of them is changed in place: clone one of them"
            )


def _view_of_argument(result: Result, argument: Any) -> Any:
    """Return the argument of the module that is a result, or the view of it that is one, without a gradient where the
    module's result has none."""
    if result.is_argument:
        return argument
    view = result.layout.of_memory(argument)
    return view if result.layout.wants_gradient else view.detach()


def _allocate_results(results: Sequence[Any]) -> dict[int, Any]:
    """Allocate zeros for the results that lie in no argument, and return the memory by the number of the first result
    in it."""
    ends: dict[int, Layout] = {}
    for result in results:
        if isinstance(result, Result) and result.argument is None:
            longest = ends.setdefault(result.memory, result.layout)
            ends[result.memory] = max(longest, result.layout, key=lambda layout: layout.end)
    return {number: layout.memory() for number, layout in ends.items()}


def _copy_into(tensor: Any, source: Any) -> None:
    """Copy the elements of `source` into `tensor`, which has the same shape. An expanded tensor has several elements in
    one place, which is written once."""
    place = tuple(slice(1) if step == 0 else slice(None) for step in tensor.stride())
    with torch.no_grad():
        tensor[place].copy_(source[place])


def _as_tensor(value: Array, shape: Any) -> Any:
    """Return a copy of an array as a tensor of a shape."""
    return torch.from_numpy(np.array(value)).reshape(shape)


def _rounded_integers(tensor: Any) -> Any:
    """Return a tensor that the graph changes in place with its integers rounded to those that float32 has. Such a
    tensor may hold others, which an input that is only read may not: elements that are not written keep their bits."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool:
        return tensor
    bounds = torch.iinfo(tensor.dtype)
    largest = bounds.max - (bounds.max >> 24)  # what float32 has below the bound, of 24 binary digits
    return tensor.to(torch.float32).clamp(bounds.min, largest)


def _write_changes(tensor: Any, value: Array, is_written: Any) -> None:
    """Write to a caller's tensor the elements that the model changed, and leave the bits of all others.

    The device rounds what it only passes on, so the program says which elements it writes. The model sees a tensor as
    float32: a written element whose bits are those of this float32 keeps the digits that float32 does not have.
    """
    result = _as_tensor(value, tensor.shape)
    before = tensor.to(torch.float32)
    after = result.to(torch.float32)
    is_equal = (before.view(torch.int32) == after.view(torch.int32)) | (before.isnan() & after.isnan())
    _copy_into(tensor, torch.where(is_equal | ~is_written, tensor, result.to(tensor.dtype)))
