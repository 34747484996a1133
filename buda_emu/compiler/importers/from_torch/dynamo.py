"""`torch.compile(model, backend="buda")`: what torch._dynamo hands over is compiled and run in precision `ideal`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch._guards import tracing
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.traceback import preserve_node_meta

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_torch.effects import Effects, Layout, Result, effects_of
from buda_emu.errors import UnsupportedError

_AT_ONCE: Final = 16
"""Compiled models of one graph that are held, each for other sizes."""


def buda(module: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend of torch.compile: the graph module as a function of its inputs. `options` are those of `compile`, and
    `precision` of the run. Raises as `compile` does, at the latest when it is called."""
    words = dict(options.get("options") or {})
    precision = words.pop("precision", "ideal")
    graph = _Graph(module, precision, words)
    if not any(map(_is_open, inputs)):
        graph.compiled(graph.fixed(inputs))
    return graph


class _Graph:
    """A graph module, compiled anew for each set of sizes and numbers that it is called with: torch leaves them open
    from the second one on, and a netlist has them fixed."""

    def __init__(self, module: Any, precision: Any, words: Mapping[str, Any]) -> None:
        self._module = module
        self._precision = precision
        self._words = words
        self._numbers = _numbers_of(module.graph)
        self._compiled: dict[Any, _Compiled] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        fixed = self.fixed(arguments)
        return self.compiled(fixed).run(fixed, self._precision)

    def fixed(self, arguments: Sequence[Any]) -> list[Any]:
        """Arguments with numbers for the tensors that torch makes of numbers."""
        return [item.item() if place in self._numbers else item for place, item in enumerate(arguments)]

    def compiled(self, arguments: Sequence[Any]) -> "_Compiled":
        """The model for arguments like these."""
        layouts = [Layout.of(item) if isinstance(item, torch.Tensor) else item for item in arguments]
        key = torch.is_grad_enabled(), *((type(item), _exact(item)) for item in layouts)
        if key not in self._compiled:
            if len(self._compiled) == _AT_ONCE:
                self._compiled.pop(next(iter(self._compiled))).close()
            self._compiled[key] = _Compiled(self._module, layouts, self._words)
        return self._compiled[key]


class _Compiled:
    """A graph module for arguments of certain layouts, and for certain numbers: a model without effects, and these."""

    def __init__(self, module: Any, layouts: Sequence[Any], words: Mapping[str, Any]) -> None:
        self._layouts = layouts
        walk = _Walk(module)
        with tracing(None):  # torch.compile is at work, and would take this for a part of it
            self._effects = effects_of(walk.run, layouts)
            self._model = self._without_effects(walk, words)

    def _without_effects(self, walk: "_Walk", words: Mapping[str, Any]) -> Any:
        """The CompiledModel; None where nothing is to be computed."""
        pure = PureGraph(walk, self._layouts, self._effects)
        if not pure.results and not pure.changed:
            return None
        examples = [item.of_memory(item.memory()) for item in self._layouts if isinstance(item, Layout)]
        with torch.inference_mode(False), torch.no_grad():
            return compile_model(pure, examples, **words)

    def close(self) -> None:
        """Free its machines."""
        if self._model is not None:
            self._model.close()

    def run(self, arguments: Sequence[Any], precision: Any) -> tuple[Any, ...]:
        """The results as eager torch gives them. Raises UnsupportedError for arguments that share memory which the
        graph changes."""
        changed = _with_elements(self._effects.changed, self._layouts)
        _refuse_shared(arguments, changed)
        tensors = [item.detach() for item in arguments if isinstance(item, torch.Tensor)]
        values = self._model(*tensors, precision=precision) if self._model is not None else ()
        computed = self._effects.computed
        for number, value in zip(changed, values[len(computed) :], strict=True):
            _write_changes(arguments[number].detach(), value)
        return self._results(arguments, dict(zip(computed, values, strict=False)))

    def _results(self, arguments: Sequence[Any], values: Mapping[int, Array]) -> tuple[Any, ...]:
        sources = [item for item in arguments if isinstance(item, torch.Tensor) and item.requires_grad]
        memories = _memories(self._effects.results)
        found: list[Any] = []
        for number, item in enumerate(self._effects.results):
            if not isinstance(item, Result):
                found.append(item)
            elif item.first < number:
                found.append(found[item.first])
            elif item.argument is not None:
                source = arguments[item.argument]
                view = source if item.is_argument else item.layout.of_memory(source)
                found.append(view if item.is_argument or item.layout.wants_gradient else view.detach())
            else:
                tensor = item.layout.of_memory(memories[item.memory])
                if number in values:
                    _write(tensor, _tensor(values[number], tensor.shape))
                found.append(_NoGradient.apply(tensor, *sources) if item.layout.wants_gradient else tensor)
        return tuple(found)


class PureGraph(torch.nn.Module):
    """A graph module as a function of tensors alone that changes none of them: it gives the results that it computes,
    and after them the arguments that it would have changed."""

    def __init__(self, walk: "_Walk", layouts: Sequence[Any], effects: Effects) -> None:
        super().__init__()
        self.module = walk.module  # torch looks for parameters here
        self._walk = walk
        self.results = effects.computed
        self.changed = _with_elements(effects.changed, layouts)
        self._copied = effects.changed
        self._layouts = layouts

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        """Results, and arguments as the graph leaves them."""
        waiting = iter(tensors)
        arguments = [next(waiting) if isinstance(item, Layout) else item for item in self._layouts]
        for number in self._copied:
            arguments[number] = arguments[number].clone()
        found = self._walk.run(*arguments)
        return *(found[number] for number in self.results), *(arguments[number] for number in self.changed)


class _Walk(torch.fx.Interpreter):
    """Runs a graph module so that each operator has the line of the user's that it comes from."""

    def run(self, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        with preserve_node_meta():
            return super().run(*arguments)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A number has no method to read it."""
        is_number = target == "item" and not isinstance(args[0], torch.Tensor)
        return args[0] if is_number else super().call_method(target, args, kwargs)


class _NoGradient(torch.autograd.Function):
    """A result whose gradient torch would ask for; who does is told."""

    @staticmethod
    def forward(ctx: Any, result: Any, *sources: Any) -> Any:
        del ctx, sources
        return result.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        del ctx, gradients
        raise UnsupportedError(
            "torch.compile: no gradients flow through backend buda: train the module with compile_training, or call it "
            "under torch.no_grad()"
        )


def _exact(item: Any) -> Any:
    """Return what stands for an argument in a key: of a float its digits, as 0.0 equals -0.0 and a NaN not itself."""
    return item.hex() if isinstance(item, float) else item


def _is_open(item: Any) -> bool:
    """Whether torch leaves open what it is, and tells when it calls."""
    if isinstance(item, torch.Tensor):
        return Layout.of(item).is_open or (item.dim() == 0 and isinstance(item, FakeTensor))
    return isinstance(item, torch.SymInt | torch.SymFloat | torch.SymBool)


def _numbers_of(graph: Any) -> frozenset[int]:
    """Numbers of the inputs that are tensors only because torch does not fix Python's floats: all that the graph does
    with them is to read the number."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    return frozenset(
        place
        for place, node in enumerate(inputs)
        if node.users and all(user.op == "call_method" and user.target == "item" for user in node.users)
    )


def _with_elements(numbers: Sequence[int], layouts: Sequence[Any]) -> tuple[int, ...]:
    return tuple(number for number in numbers if layouts[number].has_elements)


def _refuse_shared(arguments: Sequence[Any], changed: Sequence[int]) -> None:
    """What the graph writes to one of them it would have to read from another."""
    for number in changed:
        memory = arguments[number].untyped_storage().data_ptr()
        others = (item for place, item in enumerate(arguments) if place != number and isinstance(item, torch.Tensor))
        if any(other.untyped_storage().data_ptr() == memory for other in others):
            raise UnsupportedError(
                "torch.compile: two inputs share memory, and one of them is changed in place: clone one of them"
            )


def _memories(results: Sequence[Any]) -> dict[int, Any]:
    """Memory for results that lie in no argument, by the number of the first in each."""
    ends: dict[int, Layout] = {}
    for item in results:
        if isinstance(item, Result) and item.argument is None:
            longest = ends.setdefault(item.memory, item.layout)
            ends[item.memory] = max(longest, item.layout, key=lambda layout: layout.end)
    return {number: layout.memory() for number, layout in ends.items()}


def _write(tensor: Any, source: Any) -> None:
    """Copy a tensor of the same shape into a tensor; an expanded one has several of its elements in one place."""
    place = tuple(slice(1) if step == 0 else slice(None) for step in tensor.stride())
    with torch.no_grad():
        tensor[place].copy_(source[place])


def _tensor(value: Array, shape: Any) -> Any:
    """Return an array as a tensor of a shape."""
    return torch.from_numpy(np.array(value)).reshape(shape)


def _write_changes(tensor: Any, value: Array) -> None:
    """Write to a caller's tensor the elements that the model changed, and leave the bits of all others.

    The model sees a tensor as float32. What is equal to that is unchanged: a whole number beyond 2^24 or a float64 that
    the model does not touch keeps the digits that float32 does not have.
    """
    result = _tensor(value, tensor.shape)
    before = tensor.to(torch.float32)
    after = result.to(torch.float32)
    is_unchanged = (before == after) | (before.isnan() & after.isnan())
    _write(tensor, torch.where(is_unchanged, tensor, result.to(tensor.dtype)))
