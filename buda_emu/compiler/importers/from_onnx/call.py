"""The form of an ONNX node for its handler, and the table of handlers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from onnx import helper

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.importers.arguments import REQUIRED, Argument, RecordedAttributes, RecordedOperands
from buda_emu.compiler.importers.from_onnx.decided import DecidedShapes
from buda_emu.compiler.importers.operators import NotSupportedError, Operators

FAMILIES: Final = ("elementwise", "shapes", "products", "reductions", "recurrent")
"""The modules of this package that declare operators."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator. `inputs` are nodes, None where left out; `attrs` are by name; `shapes` are those of the
    results, None where the model does not state them, and `results` their names; `decided` has the shapes that inputs
    of the model decide. Inputs and attributes record what the handler reads."""

    b: Builder
    op: str
    inputs: RecordedOperands[Node | None]
    attrs: RecordedAttributes
    shapes: Sequence[tuple[int, ...] | None]
    opset: int
    results: Sequence[str]
    decided: DecidedShapes

    def __getitem__(self, place: int) -> Node:
        node = self.get(place)
        if node is None:
            raise NotSupportedError(f"without operand {place}")
        return node

    def image(self, place: int) -> Node:
        """Return an operand [N, C, space...]. Raise ValueError for one of fewer than three dimensions."""
        node = self[place]
        if len(node.shape) < 3:
            raise ValueError(f"operand {place} of shape {list(node.shape)} is not [N, C, space...]")
        return node

    def get(self, place: int) -> Node | None:
        """Return operand number `place`, or None if it is left out."""
        if place < len(self.inputs):
            return self.inputs[place]
        return None

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default if it is absent."""
        return self.attrs.get(name, default)

    def constant(self, place: int, subject: str) -> Array | None:
        """Return the array of an operand that decides shapes, or None if it is left out. Raise NotSupportedError for
        one that is not constant; `subject` names it in the message."""
        node = self.get(place)
        if node is None:
            return None
        if node.op != "constant":
            raise NotSupportedError(f"{subject} that is computed or an input")
        return node.value

    def refuse(self, why: str) -> NotSupportedError:
        """Return the error that a handler raises to refuse the call."""
        return NotSupportedError(why)

    def require_attr(self, name: str, *allowed: Any) -> None:
        """Raise NotSupportedError if an attribute has a value other than the allowed ones."""
        if name in self.attrs and self.attrs[name] not in allowed:
            raise NotSupportedError(f"{name} {self.attrs[name]!r}")

    def unread(self, schema: Any) -> Iterator[Argument]:
        """Yield the attributes and operands that the handler did not read, with their names and defaults in a version
        of the standard."""
        for name, value in self.attrs.unread():
            if schema is not None:
                declared = schema.attributes.get(name)
            else:
                declared = None
            default = REQUIRED
            if declared is not None and declared.default_value.name:
                default = helper.get_attribute_value(declared.default_value)
            yield Argument(name, value, default)
        for place, node in self.inputs.unread():
            formal = f"operand {place}"
            if schema is not None:
                formal = schema.inputs[min(place, len(schema.inputs) - 1)].name
            yield Argument(formal, node, None)


Handler = Callable[[Call], Any]
"""A handler returns a node, or a tuple of nodes for several results."""
ONNX: Final = Operators[Handler]("buda_emu.compiler.importers.from_onnx", FAMILIES)
onnx_op = ONNX.declare


def is_float(node: Node) -> bool:
    """Return whether the element type of a node is a float."""
    return np.dtype(node.dtype).kind == "f"
