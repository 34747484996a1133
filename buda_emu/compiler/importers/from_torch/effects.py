"""What a graph of torch does beside computing: which of its arguments it changes in place and where, and which memory
its results share with arguments and with each other. A run of the graph on tensors without data tells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from buda_emu.support.errors import UnsupportedError

_WHERE_DATA_SAYS: Final = frozenset({
    "aten::index_add_", "aten::index_copy_", "aten::index_fill_", "aten::index_put_", "aten::index_reduce_",
    "aten::masked_fill_", "aten::masked_scatter_", "aten::scatter_", "aten::scatter_add_", "aten::scatter_reduce_",
})  # fmt: skip
"""Operators that write only to some elements of their operand, which an index or a mask names."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor without its data. `offset`: from where the memory begins that it is in, or an argument."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    device: Any
    wants_gradient: bool
    offset: int = 0

    @classmethod
    def of(cls, tensor: Any) -> "Layout":
        """A tensor's own."""
        return cls(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device, tensor.requires_grad)

    @property
    def is_open(self) -> bool:
        """Whether torch has not decided yet about sizes."""
        return not all(type(number) is int for number in (*self.size, *self.stride))

    @property
    def has_elements(self) -> bool:
        """Whether there is anything to compute."""
        return 0 not in self.size

    @property
    def end(self) -> int:
        """Where the memory may end that it is in."""
        steps = sum((size - 1) * step for size, step in zip(self.size, self.stride, strict=True))
        return self.offset + (steps + 1 if self.has_elements else 0)

    def memory(self) -> Any:
        """Zeros from the beginning to the end."""
        return torch.zeros(self.end, dtype=self.dtype, device=self.device)

    def of_memory(self, memory: Any) -> Any:
        """The tensor, in memory that begins where another tensor does."""
        return memory.as_strided(self.size, self.stride, memory.storage_offset() + self.offset)


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that a graph gives. `first`: the number of the first result that is this very tensor; `memory`: the
    number of the first one in the same memory; `argument`: of the argument in whose memory it is, if it is in any."""

    layout: Layout
    first: int
    memory: int
    argument: int | None
    is_argument: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """`changed`: numbers of the arguments that the graph changes in place; `results`: a Result for each tensor, and
    anything else as it is. `written`: for each changed argument, a mask of the elements that the graph writes whatever
    the data are; `by_data`: numbers of the changed arguments of which it writes further elements, where data say so."""

    changed: tuple[int, ...]
    results: tuple[Any, ...]
    written: tuple[Any, ...] = ()
    by_data: tuple[int, ...] = ()

    @property
    def computed(self) -> tuple[int, ...]:
        """Numbers of the results that lie in no argument, each tensor once."""
        pairs = ((number, item) for number, item in enumerate(self.results) if isinstance(item, Result))
        return tuple(
            number
            for number, item in pairs
            if item.first == number and item.argument is None and item.layout.has_elements
        )


def effects_of(
    graph: Callable[..., Any], arguments: Sequence[Any], has_places: Callable[[], bool] = lambda: False
) -> Effects:
    """Return the effects of a graph for arguments of which tensors are Layouts. `has_places` says, while the graph
    runs, whether the caller can compute where the operator at work writes; one of which it cannot is taken to write to
    its whole operand. Raises UnsupportedError for what cannot be done from outside of the graph, and for a graph that
    torch cannot run without data."""
    gradients = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(gradients), FakeTensorMode(allow_non_fake_inputs=True):
        tensors = [_without_data(item) if isinstance(item, Layout) else item for item in arguments]
        versions = [_version(item) for item in tensors]
        writes = _Writes(has_places)
        try:
            with writes:
                found = graph(*tensors)
        except Exception as error:  # noqa: BLE001 - torch raises many kinds
            reason = str(error).strip().splitlines() or [repr(error)]
            raise UnsupportedError(f"torch.compile: sizes or results depend on data: {reason[0]}") from None
    changed = tuple(
        number
        for number, item in enumerate(tensors)
        if _version(item) != versions[number] or any(share_memory(item, other) for other in writes.statistics)
    )
    _refuse_changes([(arguments[number], tensors[number]) for number in changed], gradients)
    written = tuple(_mask(arguments[number], tensors[number], writes) for number in changed)
    by_data = tuple(
        number for number in changed if any(share_memory(tensors[number], other) for other in writes.by_data)
    )
    return Effects(changed, _results(found, tensors), written, by_data)


def _mask(layout: Layout, tensor: Any, writes: "_Writes") -> Any:
    """Return a mask of the elements of an argument that are written whatever the data are, perhaps one for all."""
    mine = [other for other in writes.certain if share_memory(tensor, other)]
    is_whole = any(Layout.of(other).size == layout.size and _place(other) == _place(tensor) for other in mine)
    is_known = all(other.dtype.itemsize == tensor.dtype.itemsize for other in mine)
    if is_whole or not is_known or not (mine or writes.by_data):
        return torch.tensor(True)
    regions = [replace(Layout.of(other), offset=other.storage_offset()) for other in mine]
    end = max((layout.end, *(region.end for region in regions)))
    memory = torch.zeros(end, dtype=torch.bool)
    numbers = torch.arange(end)
    for region in regions:
        memory[region.of_memory(numbers).reshape(-1)] = True
    return layout.of_memory(memory)


def _place(tensor: Any) -> tuple[Any, ...]:
    """Where in its memory a tensor begins, and its steps there."""
    return tensor.storage_offset(), *tensor.stride()


def _without_data(layout: Layout) -> Any:
    memory = layout.memory()
    if layout.wants_gradient:
        memory = memory.requires_grad_().clone()  # a leaf cannot be changed
    return layout.of_memory(memory)


class _Writes(TorchDispatchMode):
    """Sees what operators write to: `certain`, all of these tensors; `by_data`, some elements of them. `statistics` are
    those that norms change in training: torch does not count these changes, nor do its schemas say that there are
    any."""

    def __init__(self, has_places: Callable[[], bool]) -> None:
        super().__init__()
        self._has_places = has_places
        self.statistics: list[Any] = []
        self.certain: list[Any] = []
        self.by_data: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = func._schema
        words = dict(zip((item.name for item in schema.arguments), args, strict=False)) | (kwargs or {})
        if words.get("training") or words.get("train"):
            statistics = (words.get("running_mean"), words.get("running_var"))
            self.statistics += [item for item in statistics if item is not None]
            self.certain += self.statistics
        is_by_data = schema.name in _WHERE_DATA_SAYS and self._has_places()
        targets = [words.get(item.name) for item in schema.arguments if item.alias_info and item.alias_info.is_write]
        tensors = [item for item in tree_leaves(targets) if isinstance(item, torch.Tensor)]
        (self.by_data if is_by_data else self.certain).extend(tensors)
        return func(*args, **(kwargs or {}))


def _version(item: Any) -> int:
    """How often a tensor was changed."""
    return item._version if isinstance(item, torch.Tensor) else 0


def _refuse_changes(pairs: Sequence[tuple[Layout, Any]], gradients: bool) -> None:
    for layout, tensor in pairs:
        if gradients and tensor.requires_grad:
            raise UnsupportedError(
                "torch.compile: an input is changed in place by what has a gradient, and no gradients flow through "
                "backend buda: call the model under torch.no_grad(), or train it with compile_training"
            )
        if replace(Layout.of(tensor), wants_gradient=layout.wants_gradient) != layout:
            raise UnsupportedError("torch.compile: the shape of an input is changed in place: return another tensor")


def _results(found: Sequence[Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
    results: list[Any] = []
    for number, item in enumerate(found):
        if not isinstance(item, torch.Tensor):
            results.append(item)
            continue
        first = next(place for place, other in enumerate(found) if other is item)
        memory = next(place for place, other in enumerate(found) if share_memory(item, other))
        argument = next((place for place, other in enumerate(tensors) if share_memory(item, other)), None)
        source = found[memory] if argument is None else tensors[argument]
        if source.dtype != item.dtype:
            raise UnsupportedError(
                f"torch.compile: result {number} is memory of {source.dtype} read as {item.dtype}: clone it"
            )
        begins = 0 if argument is None else source.storage_offset()
        layout = replace(Layout.of(item), offset=item.storage_offset() - begins)
        is_argument = argument is not None and tensors[argument] is item
        results.append(Result(layout, first, memory, argument, is_argument))
    return tuple(results)


def share_memory(tensor: Any, other: Any) -> bool:
    """Whether both are tensors in the same memory."""
    if not isinstance(tensor, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return _memory_of(tensor) == _memory_of(other)


def _memory_of(tensor: Any) -> int:
    """What tensors in the same memory have in common; without data they have no address."""
    return tensor.untyped_storage()._cdata
