"""Sizes and decisions that a module computes from whole numbers in its buffers, such as the stride of a convolution.

torch.export takes a buffer for data, so it refuses a Python decision on one, or a size that hangs on one. While such a
module is traced, this mode computes beside the trace what depends on those buffers alone, and answers with it where
Python asks for a number. The graph stays as torch writes it: a buffer that the module changes is still seen.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)
from torch.utils._pytree import tree_leaves, tree_map

_READS: Final = ("item", "__int__", "__bool__", "__index__", "__float__", "tolist")
"""Functions that ask a tensor for a number."""
_COMPUTED: Final = frozenset({
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "remainder", "neg",
    "abs", "ceil", "floor", "round", "trunc", "maximum", "minimum", "max", "min", "clamp", "pow", "to", "int", "long",
    "float", "bool", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "__radd__",
    "__rsub__", "__rmul__", "__rdiv__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__", "__floordiv__",
    "__mod__", "__pow__", "__truediv__",
})  # fmt: skip
"""Functions of whole numbers that are computed beside the trace."""
_SIZED: Final = frozenset({
    "pad", "view", "reshape", "expand", "repeat", "narrow", "split", "unflatten", "roll", "interpolate", "__getitem__",
    "new_zeros", "new_ones", "new_empty", "new_full", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d",
    "max_pool1d", "conv1d", "unfold",
})  # fmt: skip
"""Functions whose further arguments are sizes and places: they take the numbers."""
_CHANGES: Final = frozenset({
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__ifloordiv__", "__imod__",
    "__ipow__", "__iand__", "__ior__", "__ixor__",
})  # fmt: skip


class _ConstantValues(TorchFunctionMode):
    """A mode that knows the values of some traced tensors, and of all that is computed from them."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[int, tuple[Tensor, Tensor]] = {}
        """By the identity of a traced tensor the tensor, so that it lives as long, and its value."""

    def learn(self, traced: Tensor, value: Tensor) -> None:
        """Enter the value of a traced tensor."""
        self._values[id(traced)] = (traced, value)

    def _knows(self, argument: Any) -> bool:
        """Return whether the argument is a tensor whose value is known while tracing."""
        return isinstance(argument, Tensor) and id(argument) in self._values

    def _value(self, argument: Any) -> Any:
        """Return the known value of a traced tensor, or the argument itself."""
        return self._values[id(argument)][1] if self._knows(argument) else argument

    def _number(self, argument: Any) -> Any:
        """Return an argument with numbers for the tensors whose values are known."""
        if self._knows(argument):
            return self._value(argument).item()
        if isinstance(argument, slice):
            return slice(*map(self._number, (argument.start, argument.stop, argument.step)))
        if type(argument) in (tuple, list):
            return type(argument)(map(self._number, argument))
        return argument

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function, and compute its value too if it depends on known values only."""
        keywords = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        tensors = [argument for argument in tree_leaves((args, keywords)) if isinstance(argument, Tensor)]
        known = [tensor for tensor in tensors if self._knows(tensor)]
        if not known:
            return func(*args, **keywords)
        if _changes_in_place(name, keywords):
            self._values.clear()  # a view of what is changed may be among them
        elif len(known) == len(tensors) and name in (*_COMPUTED, *_READS):
            return self._compute(func, name, args, keywords)
        elif name in _SIZED and args:
            return func(args[0], *map(self._number, args[1:]), **tree_map(self._number, keywords))
        return func(*args, **keywords)

    def _compute(self, func: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Apply `func` to the known values beside the trace. Return the value itself if the function reads a number
        out of a tensor, else the traced result, whose value is then known too."""
        with _disable_current_modes(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            value = func(*tree_map(self._value, args), **tree_map(self._value, keywords))
        if name in _READS:
            return value
        traced = func(*args, **keywords)
        if isinstance(traced, Tensor) and isinstance(value, Tensor):
            self.learn(traced, value)
        return traced


def _changes_in_place(name: str, keywords: Mapping[str, Any]) -> bool:
    """Return whether a function of torch writes to an operand."""
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or name in _CHANGES or keywords.get("out") is not None


def constant_buffers(module: Any) -> dict[str, Tensor]:
    """Return the whole numbers and truth values among a module's buffers, by name, each copied."""
    return {
        name: buffer.clone()
        for name, buffer in module.named_buffers()
        if buffer.numel() == 1 and not buffer.is_floating_point() and not buffer.is_complex() and not buffer.is_meta
    }


@contextlib.contextmanager
def answer_constants(module: Any) -> Generator[None]:
    """Answer what depends on the module's constant buffers alone, whenever the module is called."""
    values = constant_buffers(module)
    modes: list[_ConstantValues] = []

    def enter(traced_module: Any, *_: Any) -> None:
        """Begin to follow known values when the traced module is called, starting from its buffers."""
        mode = _ConstantValues()
        for name, buffer in traced_module.named_buffers():
            if name in values:
                mode.learn(buffer, values[name])
        mode.__enter__()
        modes.append(mode)

    def leave(*_: Any) -> None:
        """End what `enter` began."""
        modes.pop().__exit__(None, None, None)

    handles = [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
