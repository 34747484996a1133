"""Rules on attributes that do nothing, although they were written to do something (V214, stage W), and on an `sfpu_op`
that a run refuses (V215, stage X)."""

from collections.abc import Iterator
from typing import Final

from buda_emu.netlist.model import Op, SubOp
from buda_emu.netlist.nodes import Mapping, Scalar
from buda_emu.netlist.rules.context import Context, attribute_mark
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.registry import Finding, Findings, fused_check, op_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near, nearest
from buda_emu.support.checker.text import quote

_RUNS: Final = "gelu"
"""The only function that the device computes at the end of a product."""
_NOTHING: Final = frozenset(("", "~", "null", "none", "None", "invalid"))
"""Words that say that there is none: front ends write `sfpu_op: invalid` (NETLIST 11.2 B1)."""
_RELU_DETAILS: Final = ("relu_threshold", "relu_mode")


@op_check(
    rule(
        "V214",
        "W",
        "an attribute has no effect",
        "A word that an attribute does not know counts as none, and some attributes may stand on every op but act on"
        " few types: `sfpu_op`, `bias` and `accumulate` on products, `vector` where the vector unit computes,"
        " `zero_point` where numbers are quantized. A threshold or mode of a relu acts where `relu_en: true` stands,"
        " too. Nothing"
        " refuses the netlist, and the result is that of an op without the attribute.",
        "{type: matmul, attributes: {m_k: 1, u_kt: 2, sfpu_op: relu}}",
        "{type: matmul, attributes: {m_k: 1, u_kt: 2, relu_en: true, relu_mode: min}}",
        "NETLIST 1.4, 11.2 B1, B2, OPS 6.1, 6.14",
    )
)
def without_effect(_: Context, op: Op) -> Findings:
    """Warn of attributes with unknown words, on op types that ignore them, and of the details of no relu."""
    yield from _ignored_words(op)
    yield from _ignored_attributes(op)
    attributes = op.attributes
    if attributes.relu_en or "relu_en" in attributes.given:
        return
    for name in _RELU_DETAILS:
        if name in attributes.given and getattr(attributes, name) not in (ATTRIBUTES[name].default, "none"):
            message = f"{name} has no effect without relu_en"
            yield Finding(attribute_mark(op, name), message, "write `relu_en: true`, too")


@fused_check("V214")
def without_effect_in_schedule(_: Context, use: FusedUse) -> Findings:
    """Warn of attributes of sub-ops with unknown words."""
    for step in use.steps:
        for finding in _ignored_words(step.sub):
            yield step.about(attribute_mark(step.sub, "attributes"), finding.message, str(finding.hint))


def _ignored_attributes(op: Op) -> Findings:
    """Yield a finding for each attribute that changes results on other op types, but not on this one."""
    for name in sorted(op.attributes.given):
        spec = ATTRIBUTES[name]
        value = getattr(op.attributes, name)
        if op.type in OP_TYPES and spec.has_effect and not spec.acts(op.type) and value != spec.default:
            places = ", ".join(other.name for other in OP_TYPES.values() if other.runs and spec.acts(other.name))
            message = f"{name} has no effect on {op.type}"
            yield Finding(attribute_mark(op, name), message, f"it acts on {places}")


def _ignored_words(subject: Op | SubOp) -> Findings:
    """Yield a finding for each attribute whose word is none of its words, and that therefore counts as absent."""
    for name, value in _attribute_words(subject):
        spec = ATTRIBUTES.get(name)
        if spec is None or spec.kind != "word" or value.text in spec.words or value.text in _NOTHING:
            continue
        hint = near(value.text, spec.words) or f"one of {', '.join(spec.words)}"
        if name == "sfpu_op":
            hint = _instead_of(value.text)
        yield Finding(value.mark, f"{name} {quote(value.text)} is unknown and has no effect", hint)


def _instead_of(word: str) -> str:
    """Return the hint for an unknown `sfpu_op`."""
    meant = nearest(word, (_RUNS, "relu_en"))
    if meant == "relu_en":
        return "a relu is `relu_en: true, relu_mode: min`"
    if meant == _RUNS:
        return replacing(f"did you mean '{_RUNS}'?", word, _RUNS)
    return f"only {_RUNS} runs there"


def _attribute_words(subject: Op | SubOp) -> Iterator[tuple[str, Scalar]]:
    """Yield names and values of the attributes that are written as words or numbers."""
    if not isinstance(subject.source, Mapping):
        return
    for key, _, attributes in subject.source.items():
        if key == "attributes" and isinstance(attributes, Mapping):
            yield from ((name, value) for name, _, value in attributes.items() if isinstance(value, Scalar))


@op_check(
    rule(
        "V215",
        "X",
        "a matmul with an sfpu_op that cannot run",
        "The language knows every function of the vector unit as sfpu_op, but a matmul computes gelu only, and ends the"
        " run with an error for any other. An op of its own after the product does what is meant.",
        "{type: matmul, inputs: [x, w], attributes: {m_k: 1, u_kt: 2, sfpu_op: tanh}}",
        "{type: tanh, inputs: [product]} after the matmul",
        "OPS 6.1",
    ),
    "matmul",
)
def functions_that_run(_: Context, op: Op) -> Findings:
    """Report an sfpu_op other than gelu on a matmul."""
    function = op.attributes.sfpu_op
    if function in SFPU_TYPES and function != _RUNS:
        message = f"sfpu_op {function}: only {_RUNS} runs at the end of a matmul"
        yield Finding(attribute_mark(op, "sfpu_op"), message, f"put an op of type {function} after it")
