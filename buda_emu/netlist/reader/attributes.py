"""Read the `attributes` map of an op or a scheduled op (NETLIST 1.4, 11.1 A8, 11.3 C11; OPS 6.14).

Names, kinds and legal op types come from `buda_emu.spec.attributes`. Conditions on single attributes stand in the
tables `_RANGES` and `_WORDS` below; `z` and `relu_mode` also depend on what stands before them in the map.
"""

from collections.abc import Callable
from collections.abc import Mapping as Map
from typing import Any, Final

from buda_emu.netlist.fields import Field
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.values import (
    Reader,
    integer,
    kind_of,
    read_bool,
    read_float,
    read_int,
    read_ints,
    read_pairs,
    read_text,
    text_of,
)
from buda_emu.netlist.yaml_text import leading_integer
from buda_emu.spec.attributes import ATTRIBUTES, Attributes, AttributeSpec
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural, quote

NOT_LEGAL = "V032"
OUT_OF_RANGE = "V037"
SPLICE = "V035"
REDUCE = "V034"
KERNEL_BROADCAST = "V186"
RELU_MODE = "V187"
SFPU_THREAD = "V188"
STOCHASTIC = "V189"
VECTOR = "V036"
SUB_OP_NOT_LEGAL = "V191"
MAX_SPLICE_INPUTS = 8  # V035 (NETLIST 2): input0 to input7


_NONE: Final = Attributes()  # shared by all ops without attributes: an object of its own takes half of an op's memory


class AttributeState:
    """The attributes that the maps of one op have set so far, and the properties of the op on which they depend.

    Repeated `attributes` maps are merged (NETLIST 11.3 C1). `inputs` (number of inputs) and `cells` (number of
    cores) are None where the op's fields could not be read. `scheduled` is true for a scheduled op.
    """

    __slots__ = ("broadcasts", "cells", "given", "inputs", "op_type", "scheduled", "splices", "values")

    def __init__(self, op_type: str, inputs: int | None, cells: int | None = None, scheduled: bool = False) -> None:
        self.op_type = op_type
        self.inputs = inputs
        self.cells = cells
        self.scheduled = scheduled
        self.values: dict[str, Any] = {}
        self.given: set[str] = set()
        self.splices: dict[int, tuple[int, ...]] = {}
        self.broadcasts: dict[str, dict[int, int]] = {"kernel_broadcast": {}, "kernel_broadcast_per_t": {}}

    def result(self) -> Attributes:
        """Return the attributes of the op that were read so far, with the defaults of the others."""
        if not self.given:
            return _NONE
        values = dict(self.values)
        for name, counts in self.broadcasts.items():
            if name in self.given:
                values[name] = tuple(counts.items())
        if self.splices:
            values["inputs"] = tuple(sorted(self.splices.items()))
        return Attributes(given=frozenset(self.given), **values)


def read_attributes(context: Context, node: Node, state: AttributeState) -> None:
    """Read the attributes map of an op into `state`; an empty map is V032."""
    if not isinstance(node, Mapping) or not node.pairs:
        if isinstance(node, Mapping):
            form = "an empty map"
        else:
            form = kind_of(node)
        context.report(NOT_LEGAL, node, f"attributes needs a map with at least one entry, not {form}")
        return
    for name, key, value in read_pairs(context, node):
        names_input = name.startswith("input") and name != "inputs"
        if names_input and state.op_type not in OP_TYPES:
            continue  # an unknown type may be a misspelt splice; the type is reported
        if names_input and state.op_type == "splice":
            _read_splice(context, name, key, value, state)
        else:
            _read_attribute(context, name, key, value, state)


def _read_attribute(context: Context, name: str, key: Scalar, node: Node, state: AttributeState) -> None:
    """Read one attribute of an op, unless its name is unknown or not legal for the op's type."""
    spec = ATTRIBUTES.get(name)
    if spec is None or spec.kind == "splice":
        context.report(NOT_LEGAL, key, f"unknown attribute {quote(name)}", near(name, ATTRIBUTES))
    elif state.op_type in OP_TYPES and not spec.is_legal_on(state.op_type):
        message = f"attribute {name} is not legal for {state.op_type}"
        context.report(NOT_LEGAL, key, message, f"it belongs to {_list_types(spec)}")
    else:
        _read_value(context, spec, key, node, state)


def read_sub_op_attributes(context: Context, node: Node, state: AttributeState) -> None:
    """Read the attributes map of a scheduled op into `state`. An empty one is legal, and unknown words of relu_mode
    and vector are dropped."""
    if isinstance(node, Scalar) and node.is_null:
        return
    if not isinstance(node, Mapping):
        context.report(SUB_OP_NOT_LEGAL, node, f"attributes needs a map, not {kind_of(node)}")
        return
    for name, key, value in read_pairs(context, node):
        _read_sub_op_attribute(context, name, key, value, state)


def _read_sub_op_attribute(context: Context, name: str, key: Scalar, value: Node, state: AttributeState) -> None:
    """Read one attribute of a scheduled op into `state`, or report that such an op cannot have it."""
    spec = ATTRIBUTES.get(name)
    legal = spec is not None and (spec.fused_types is None or state.op_type in spec.fused_types)
    if spec is None or not legal:
        hint = near(name, [other.name for other in ATTRIBUTES.values() if other.fused_types != ()])
        message = f"attribute {quote(name)} is not legal for {state.op_type or 'this op'} in a schedule"
        context.report(SUB_OP_NOT_LEGAL, key, message, hint if spec is None else "")
    elif name in ("relu_mode", "vector"):
        word = read_text(context, Field(name, "word", spec.doc, rule=OUT_OF_RANGE), value)
        if word in spec.words:
            state.given.add(name)
            state.values[name] = word
    else:
        _read_value(context, spec, key, value, state)


def check_splice(context: Context, node: Node | None, state: AttributeState) -> None:
    """Report a splice that has not exactly one inputN for every input (V035, NETLIST 11.3 C9), at `node`."""
    if state.inputs is None or node is None:
        return
    expected = set(range(state.inputs))
    if set(state.splices) != expected:
        names = ", ".join(f"input{index}" for index in sorted(state.splices)) or "none"
        message = f"a splice of {plural(state.inputs, 'input')} needs one inputN for each, found {names}"
        context.report(SPLICE, node, message)


def _list_types(spec: AttributeSpec) -> str:
    """Return the op types that have an attribute as words for a hint: at most four, and "and others"."""
    types = spec.types or ()
    listing = ", ".join(types[:4])
    if len(types) > 4:
        return f"{listing} and others"
    return listing


_READERS: Map[str, Reader] = {
    "int": read_int, "float": read_float, "bool": read_bool, "text": read_text, "word": read_text, "ints": read_ints,
}  # fmt: skip


def _read_within_range(context: Context, spec: AttributeSpec, node: Node, state: AttributeState) -> Any:
    """Return the value of an attribute; None after a finding about it, also one out of its range."""
    value: Any = _READERS[spec.kind](context, Field(spec.name, "value", spec.doc, rule=OUT_OF_RANGE), node)
    if value is not None and spec.kind == "word":
        value = _check_word(context, spec, node, value, state)
    if value is None or spec.name not in _RANGES:
        return value
    problem = _RANGES[spec.name](value, state)
    if problem:
        context.report(OUT_OF_RANGE, node, problem)
        return None
    return value


def _read_value(context: Context, spec: AttributeSpec, key: Scalar, node: Node, state: AttributeState) -> None:
    """Read the value of an attribute into `state` unless there is a finding about it."""
    name = spec.name
    if spec.kind == "broadcasts":
        _read_broadcasts(context, name, node, state)
        return
    if name == "z" and _report_early_z(context, key, state):
        return
    value = _read_within_range(context, spec, node, state)
    if value is None:
        return
    if name == "single_tile":
        indices: tuple[int, ...] = value
        value = _read_single_tile(context, node, indices, state)
    if name == "srnd_fpu_en" and value:
        _set_stochastic(context, node, "fpu", state)
    state.given.add(name)
    state.values[name] = value


def _report_early_z(context: Context, key: Scalar, state: AttributeState) -> bool:
    """Report an attribute `z` that stands before another attribute on which it depends (NETLIST 11.3 C11); return
    whether it does."""
    declaration = OP_TYPES.get(state.op_type)
    if declaration is None or declaration.late_z is None:
        return False
    name, value = declaration.late_z
    if state.values.get(name) == value:
        return False
    context.report(NOT_LEGAL, key, f"attribute z of a {state.op_type} needs {name}: {str(value).lower()} before it")
    return True


def _num_nz_strips_problem(value: tuple[int, ...], state: AttributeState) -> str:
    """Return what is wrong with num_nz_strips, which has a number for each core; "" if nothing is or the cores are
    not known.
    """
    if state.cells is None or len(value) == state.cells:
        return ""
    return f"num_nz_strips needs one number for each of the {state.cells} cores, not {len(value)}"


def _min_buffer_input_problem(value: int, state: AttributeState) -> str:
    """Return what is wrong with min_buffer_input, which is 0 or 1, and 0 for op types that keep one operand; else
    "".
    """
    if value > 1:
        return "min_buffer_input is 0 or 1"
    declaration = OP_TYPES.get(state.op_type)
    if value == 1 and declaration is not None and declaration.has("one operand is kept"):
        return f"min_buffer_input of a {state.op_type} is 0"
    return ""


# The conditions of NETLIST V037 on values (11.2 B3: a negative min_buffer_input passes). NaN passes every comparison.
_RANGES: Map[str, Callable[[Any, AttributeState], str]] = {
    "relu_threshold": lambda value, _: "relu_threshold must not be negative" if value < 0 else "",
    "p": lambda value, _: "p is a probability, 0 to 1" if value < 0 or value > 1 else "",
    "dest_device": lambda value, _: "dest_device must not be negative" if value < 0 else "",
    "num_nz_strips": _num_nz_strips_problem,
    "min_buffer_input": _min_buffer_input_problem,
    "ingress_channels": lambda value, _: "ingress_channels must not be empty" if not value else "",
    "egress_channels": lambda value, _: "egress_channels must not be empty" if not value else "",
}

# Attributes whose unknown words are refused while reading. Of any other, one means "not given" (11.2 B1, B2).
_WORDS: Map[str, str] = {
    "granularity": SPLICE, "type": REDUCE, "sfpu_execution_thread": SFPU_THREAD, "stoch_rnd_mode": STOCHASTIC,
}  # fmt: skip


def _check_word(context: Context, spec: AttributeSpec, node: Node, word: str, state: AttributeState) -> str | None:
    """Return the word of an attribute, or None for an unknown one; that is reported where the attribute has a rule for
    it. `stoch_rnd_mode` is stored in `state` at once."""
    name = spec.name
    is_legal = word in spec.words
    if name == "relu_mode" and state.values.get("relu_en"):
        is_legal = word in ("min", "max")
    rule = _word_rule(name, word, state)
    if rule and not is_legal:
        hint = near(word, spec.words) or f"one of {', '.join(spec.words)}"
        context.report(rule, node, f"unknown {name} {quote(word)}", hint)
        return None
    if name == "stoch_rnd_mode":
        _set_stochastic(context, node, word, state)
    return word if is_legal else None


def _word_rule(name: str, word: str, state: AttributeState) -> str:
    """Return the rule that refuses unknown words of an attribute, "" where they are dropped."""
    if name == "dim" and state.op_type == "reduce" and not state.scheduled:
        return REDUCE
    if name == "vector" and word == "z":
        return VECTOR  # NETLIST 11.2 B2: the only vector word that is refused
    if name == "relu_mode" and state.values.get("relu_en"):
        return RELU_MODE  # NETLIST 11.3 C11: checked only where relu_en: true came before
    return _WORDS.get(name, "")


def _set_stochastic(context: Context, node: Node, mode: str, state: AttributeState) -> None:
    """Set the mode of stochastic rounding in `state`; any but `none` is a finding on grayskull."""
    if mode != "none" and context.arch == "grayskull":
        context.report(STOCHASTIC, node, "grayskull has no stochastic rounding")
    state.given.add("stoch_rnd_mode")
    state.values["stoch_rnd_mode"] = mode


def _read_broadcasts(context: Context, name: str, node: Node, state: AttributeState) -> None:
    """Read kernel_broadcast or its form per t slice, a map {input_N: tiles}; of each key the number after its first `_`
    counts. A list is a finding; a scalar only counts as given (NETLIST 11.2 B5)."""
    if isinstance(node, Sequence):
        context.report(KERNEL_BROADCAST, node, f"{name} needs a map such as {{input_1: 4}}, not a list")
        return
    if isinstance(node, Mapping):
        for _, key_node, value in read_pairs(context, node):
            _read_broadcast(context, name, key_node, value, state)
    state.given.add(name)


def _read_broadcast(context: Context, name: str, key_node: Scalar, value: Node, state: AttributeState) -> None:
    """Read an entry `input_N: tiles` of a kernel_broadcast. An input that has one already, or is a single tile, is
    a finding.
    """
    key = text_of(key_node)
    if "_" in key:
        index = leading_integer(key[key.index("_") + 1 :])
    else:
        index = None
    count = integer(context, f"{name} {key}", value)
    if index is None:
        message = f"{name}: {quote(key)} does not name an input"
        context.report(KERNEL_BROADCAST, key_node, message, "write input_0, input_1, ...")
    elif count is not None and _require_input(context, name, index, key_node, state):
        single = state.values.get("single_tile", ())
        if index in single or any(index in counts for counts in state.broadcasts.values()):
            context.report(KERNEL_BROADCAST, key_node, f"{name}: input {index} is set twice")
        state.broadcasts[name][index] = count


def _read_single_tile(context: Context, node: Node, indices: tuple[int, ...], state: AttributeState) -> tuple[int, ...]:
    """Return the inputs that are single tiles so far, those of `indices` included; one that the op does not have is
    reported. `single_tile` means kernel_broadcast 1: an earlier kernel_broadcast of the input is dropped (NETLIST
    1.4)."""
    for index in indices:
        if _require_input(context, "single_tile", index, node, state):
            for counts in state.broadcasts.values():
                counts.pop(index, None)
    return tuple(dict.fromkeys((*state.values.get("single_tile", ()), *indices)))


def _require_input(context: Context, name: str, index: int, node: Node, state: AttributeState) -> bool:
    """Return whether the op has an input of that index, and report it if not. True if the inputs are not known."""
    if state.inputs is None or 0 <= index < state.inputs:
        return True
    context.report(KERNEL_BROADCAST, node, f"{name}: there is no input {index}, the op has {state.inputs}")
    return False


def _read_splice(context: Context, name: str, key: Scalar, node: Node, state: AttributeState) -> None:
    """Read an attribute `inputN: [index, length, stride]` of a splice into `state`; any other form is a finding
    (V035)."""
    index = leading_integer(name.removeprefix("input"))
    if index is None:
        context.report(NOT_LEGAL, key, f"unknown attribute {quote(name)}", "a splice has input0, input1, ...")
        return
    if not 0 <= index < MAX_SPLICE_INPUTS:
        context.report(SPLICE, key, f"{name}: a splice has at most {MAX_SPLICE_INPUTS} inputs")
        return
    if not isinstance(node, Sequence) or len(node.items) != 3:
        context.report(SPLICE, node, f"{name} needs [index, length, stride]")
        return
    values = read_ints(context, Field(name, "ints", ""), node)
    if values is None:
        return
    start, length, stride = values
    if start < 0 or length <= 0 or stride <= 0:
        context.report(SPLICE, node, f"{name}: index must be 0 or more, length and stride 1 or more")
        return
    state.given.add("inputs")
    state.splices[index] = values
