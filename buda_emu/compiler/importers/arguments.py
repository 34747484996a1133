"""Arguments of operators that a handler did not read: the table of those that may be ignored, and the refusal of all
others.

A handler that ignores an argument would silently compute something else. A reader therefore collects the arguments that
the handler left unread, and `refuse_unread` refuses those that differ from their default.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, overload

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.operators import NotSupportedError

IRRELEVANT: Final[Mapping[str, Mapping[str, str]]] = {
    "torch": {
        "device": "a graph has no devices: the compiler places its ops",
        "layout": "values are dense",
        "memory_format": "the compiler decides how tiles lie in memory",
        "pin_memory": "about the host's memory",
        "non_blocking": "about when a copy is done, not what it holds",
        "generator": "random operators are refused as a whole",
        "sparse": "whether the gradient of a table is sparse: the same numbers",
        "sparse_grad": "whether a gradient is sparse: the same numbers",
        "implicit": "who asked for an expansion, the user or torch",
        "_cdist_forward.compute_mode": "how torch computes it",
        "_log_softmax.half_to_float": "the type of the result, which the reader gives it",
        "_native_batch_norm_legit.momentum": "moves statistics that this overload does not have",
        "_native_batch_norm_legit.training": "without given statistics there are only those of the input",
        "_native_batch_norm_legit_no_training.momentum": "statistics move in training alone",
        "_softmax.half_to_float": "the type of the result, which the reader gives it",
        "_trilinear.unroll_dim": "how torch computes it",
        "bucketize.out_int32": "the type of the result, which the reader gives it",
        "convolution_backward.bias_sizes": "the sizes of the gradient, which are those of its channels",
        "convolution_backward.output_padding": "the size of the result tells it, whose gradient is an operand",
        "_embedding_bag_forward_only.scale_grad_by_freq": "about the gradient",
        "embedding.padding_idx": "its row gets no gradient; it is read as any other row",
        "embedding.scale_grad_by_freq": "about the gradient",
        "_embedding_bag.scale_grad_by_freq": "about the gradient",
        "empty_like.dtype": "the type of the result, which the reader gives it",
        "full_like.dtype": "the type of the result, which the reader gives it",
        "max_pool2d_with_indices_backward.indices": "the handler finds the largest of each window again",
        "max_unpool3d.padding": "the pool whose indices it gets tells it",
        "max_unpool3d.stride": "the pool whose indices it gets tells it",
        "native_group_norm.HxW": "the product of the input's last sizes",
        "new_empty.dtype": "the type of the result, which the reader gives it",
        "new_empty.self": "gives no more than its type and device",
        "new_full.dtype": "the type of the result, which the reader gives it",
        "new_full.self": "gives no more than its type and device",
        "new_ones.dtype": "the type of the result, which the reader gives it",
        "new_ones.self": "gives no more than its type and device",
        "new_zeros.dtype": "the type of the result, which the reader gives it",
        "new_zeros.self": "gives no more than its type and device",
        "ones_like.dtype": "the type of the result, which the reader gives it",
        "scaled_dot_product_attention.enable_gqa": "the numbers of heads tell it",
        "searchsorted.out_int32": "the type of the result, which the reader gives it",
        "sort.stable": "equal values keep their order in any case",
        "topk.sorted": "the values are sorted in any case",
        "zeros_like.dtype": "the type of the result, which the reader gives it",
    },
    "onnx": {
        "consumed_inputs": "a hint about memory, before opset 6",
        "output_sequence": "the names of the results tell it",
        "BatchNormalization.is_test": "inference has one result, training has more",
        "BatchNormalization.momentum": "statistics move in training alone",
        "Cast.saturate": "about float8, which is refused",
        "Cast.round_mode": "about float8, which is refused",
        "CastLike.round_mode": "about float8, which is refused",
        "CastLike.saturate": "about float8, which is refused",
        "Conv.kernel_shape": "the shape of the weights tells it",
        "ConvInteger.kernel_shape": "the shape of the weights tells it",
        "ConvTranspose.kernel_shape": "the shape of the weights tells it",
        "Dropout.is_test": "training is refused",
        "Dropout.ratio": "without training nothing is dropped",
        "Dropout.seed": "without training nothing is dropped",
        "Gemm.broadcast": "the shape of C tells it",
        "GroupNormalization.stash_type": "the type of mean and deviation inside: the device rounds as --df says",
        "GRU.hidden_size": "the shape of the weights tells it",
        "LayerNormalization.stash_type": "the type of mean and deviation inside: the device rounds as --df says",
        "LSTM.hidden_size": "the shape of the weights tells it",
        "QLinearConv.kernel_shape": "the shape of the weights tells it",
        "QuantizeLinear.saturate": "about float8, which is refused",
        "RNN.hidden_size": "the shape of the weights tells it",
        "RMSNormalization.stash_type": "the type of the mean inside: the device rounds as --df says",
        "MaxPool.storage_order": "about indices, which are refused",
        "TopK.sorted": "the values are sorted in any case",
    },
    "stablehlo": {
        "algorithm": "how exact a product is: the device computes as --df and the fidelity say",
        "indices_are_sorted": "a promise about the operands",
        "operand_precision": "how exact a product is: the device computes as --df and the fidelity say",
        "precision_config": "how exact a product is: the device computes as --df and the fidelity say",
        "slice.limit_indices": "the shape of the result tells it",
        "dynamic_slice.slice_sizes": "the shape of the result tells it",
        "result_accuracy": "how exact a result is: the device computes as --df and the fidelity say",
        "unique_indices": "a promise about the operands",
    },
}
"""The arguments that no handler needs to read, with the reason. The keys are `argument` of any operator or
`operator.argument`, by the format of models."""


IRRELEVANT_HEADERS: Final = ("models", "argument", "why it need not be read")


def irrelevant_rows() -> Iterator[tuple[str, str, str]]:
    """Yield framework, argument and reason of each argument that no handler needs to read, as rows of the
    documentation's table."""
    for framework, table in IRRELEVANT.items():
        for argument, reason in sorted(table.items()):
            yield framework, argument, reason


class Argument(NamedTuple):
    """An argument, attribute or operand of an operator of a model."""

    name: str
    value: Any
    default: Any


REQUIRED: Final = object()
"""The default of an argument that has none."""
V = TypeVar("V")


class RecordedAttributes(Mapping[str, Any]):
    """Attributes of an operator by name that record which of them were read, also inside of nested records."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {
            name: RecordedAttributes(value) if isinstance(value, Mapping) else value for name, value in values.items()
        }
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> Iterator[tuple[str, Any]]:
        """Yield name and value of the attributes that were not read, also those inside of a record that was."""
        for name, value in self._values.items():
            if name not in self._read:
                yield name, value
            elif isinstance(value, RecordedAttributes):
                yield from value.unread()


class RecordedOperands(Sequence[V]):
    """Operands of an operator in order that record which of them were read."""

    def __init__(self, values: Sequence[V]) -> None:
        self._values = tuple(values)
        self._read: set[int] = set()

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[V, ...]: ...
    def __getitem__(self, place: int | slice) -> V | tuple[V, ...]:
        places = range(len(self._values))[place]
        self._read.update(places if isinstance(places, range) else (places,))
        return self._values[place]

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> Iterator[tuple[int, V]]:
        """Yield place and value of the operands that were not read."""
        yield from ((place, value) for place, value in enumerate(self._values) if place not in self._read)


def is_irrelevant(framework: str, operator: str, argument: str) -> bool:
    """Return whether the table lists an argument as one that does not change the result."""
    table = IRRELEVANT[framework]
    return argument in table or f"{operator}.{argument}" in table


def refuse_unread(framework: str, operator: str, unread: Iterable[Argument]) -> None:
    """Raise NotSupportedError naming the arguments that a handler did not read although they decide something."""
    dropped = [
        f"{argument.name}={_format_value(argument.value)}"
        for argument in unread
        if not is_irrelevant(framework, operator, argument.name) and not _is_default(argument.value, argument.default)
    ]
    if dropped:
        raise NotSupportedError(", ".join(dropped))


def _is_default(value: Any, default: Any) -> bool:
    """Return whether an argument may be left out because it equals its default. Lists and tuples with equal elements
    are equal; a Node never equals a default, nor does any value of an argument without one (`REQUIRED`)."""
    if value is None or default is REQUIRED:
        return value is default
    if isinstance(value, (list, tuple)):
        return isinstance(default, (list, tuple)) and list(value) == list(default)
    return not isinstance(value, Node) and bool(value == default)


def _format_value(value: Any) -> str:
    """Write an argument for an error message: a Node as its shape, bytes as text."""
    if isinstance(value, Node):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
