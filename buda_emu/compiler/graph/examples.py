"""Example inputs of a model: in its order, or by the names of its inputs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from buda_emu.compiler.graph.graph import Graph
from buda_emu.support.errors import HostError

Examples = Sequence[Any] | Mapping[str, Any] | None
"""Example inputs of a model: in its order, or by the names of its inputs."""


def example_inputs(inputs: Any) -> Examples:
    """Return example inputs as a sequence in the model's order, or as a dictionary if they are given by name. A single
    array, tensor or number is the only input; None stays None. Raises HostError for a name that is no text and for a
    value that holds no arrays."""
    if not isinstance(inputs, Mapping):
        return example_sequence(inputs)
    named = dict(cast("Mapping[Any, Any]", inputs))
    unnamed = [name for name in named if not isinstance(name, str)]
    if unnamed:
        raise HostError(f"compile: example inputs: {unnamed[0]!r} is not the name of an input")
    return named


def examples_in_order(examples: Examples, graph: Graph) -> Sequence[Any] | None:
    """Return example inputs by name in the order of the graph's inputs; a sequence and None are returned unchanged.
    Raises KeyError if one is missing."""
    if isinstance(examples, Mapping):
        return [examples[graph[name].attrs["label"]] for name in graph.inputs]
    return examples


def example_sequence(inputs: Any) -> Sequence[Any] | None:
    """Return example inputs in the model's order; a single array, tensor or number is the only input. None stays None.
    Raises HostError for a mapping, and for a value that holds no arrays."""
    if inputs is None or isinstance(inputs, (list, tuple)):
        return cast("Sequence[Any] | None", inputs)
    if isinstance(inputs, (int, float)) or hasattr(inputs, "__array__") or hasattr(inputs, "shape"):
        return (inputs,)
    if isinstance(inputs, Mapping) or not isinstance(inputs, Iterable):
        kind = type(cast("object", inputs)).__name__
        raise HostError(f"compile: example inputs: a {kind}: give one array, or a tuple of arrays in the model's order")
    return tuple(cast("Iterable[Any]", inputs))


def in_order(examples: Examples, names: Sequence[str]) -> Sequence[Any] | None:
    """Return example inputs by name in the order of `names`, those of a model's inputs; a sequence and None are
    returned unchanged. Raises HostError for a name that no input has and for an input without an example."""
    if not isinstance(examples, Mapping):
        return examples
    takes = f"the model takes {', '.join(names)}"
    for name in examples:
        if name not in names:
            raise HostError(f"compile: example inputs: no input is called {name!r}; {takes}")
    missing = [name for name in names if name not in examples]
    if missing:
        raise HostError(f"compile: example inputs: no {', '.join(missing)}; {takes}")
    return [examples[name] for name in names]
