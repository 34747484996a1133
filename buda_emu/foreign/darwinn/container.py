"""The container of a package: the custom operator of a compiled `.tflite` (DARWINN 1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.foreign.darwinn import flexbuffer, tflite
from buda_emu.foreign.darwinn.flatbuffer import Malformed, read, starts
from buda_emu.foreign.darwinn.idl import IDENTIFIER
from buda_emu.foreign.darwinn.model import BOOK, CustomOp
from buda_emu.support.checker import ByteOffset
from buda_emu.support.checker.text import plural

CUSTOM_CODE: Final = "edgetpu-custom-op"
_VERSION = b"1"
_DEPRECATED = (b"2", b"3")
_PACKAGE = b"4"
_PREFERENCE = b"5"
_CHIPS = b"6"
_MORE = b"7"
_KEYS: Final = (_VERSION, *_DEPRECATED, _PACKAGE, _PREFERENCE, _CHIPS, _MORE)

BOOK.declare(
    "D001", "error", "the file holds no package: it is too short, or a TFLite model that does not verify, has an "
    "operator code out of range or no edgetpu-custom-op", stage="E", source="DARWINN 1, 8",
    fix="give it the .tflite that edgetpu_compiler wrote (NAME_edgetpu.tflite), or a bare package",
)  # fmt: skip
BOOK.declare(
    "D002", "error", "the custom options hold no package: absent, cut, no map, or key 4 is not a string with content",
    stage="E", source="DARWINN 1, 8", fix="compile the model again; the file is damaged",
)  # fmt: skip
BOOK.declare(
    "D003", "error", "key 6 of the custom options is not a list of chips: not a vector of signed integers, "
    "empty, or not "
    "one longer than key 7", stage="E", source="DARWINN 1, 8", fix="compile the model again with a current compiler",
)  # fmt: skip
BOOK.declare(
    "D004", "warning", "the custom options have key 2 or 3, which are deprecated and ignored", stage="W",
    source="DARWINN 1, 8", fix="compile the model again with a current compiler",
)  # fmt: skip
BOOK.declare(
    "D005", "error", "the custom options hold several packages, which the driver refuses", stage="E",
    source="DARWINN 1, 8", fix="compile for one chip",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Container:
    """What was found: the package's bytes and where they begin, None where there are none."""

    findings: tuple[tuple[str, ByteOffset, str], ...]
    raw: memoryview | None = None
    offset: int = 0
    custom_op: CustomOp | None = None
    model: tflite.Model | None = None


def unwrap(data: memoryview) -> Container:
    """Find the package in a file's bytes; findings are (rule, place, message)."""
    if len(data) < 8:
        return Container((("D001", ByteOffset(0, "file"), f"a file of {plural(len(data), 'byte')}"),))
    if bytes(data[4:8]) != tflite.IDENTIFIER:
        return Container((), data)
    try:
        model = read(tflite.Model, data)
    except Malformed as error:
        return Container((("D001", ByteOffset(error.offset, "Model"), f"the model does not verify: {error}"),))
    try:
        found = next(_custom_operators(model), None)
    except IndexError as error:
        return Container((("D001", ByteOffset(model.at, "Operator.opcode_index"), str(error)),), model=model)
    if found is None:
        message = f"the model has no {CUSTOM_CODE}: it was not compiled for the Edge TPU"
        return Container((("D001", ByteOffset(model.at, "Model"), message),), model=model)
    operator, graph = found
    names = [_names(graph, indices) for indices in (operator.inputs, operator.outputs)]
    return _options(data, operator, model, names[0], names[1])


def _custom_operators(model: tflite.Model) -> Iterator[tuple[tflite.Operator, tflite.SubGraph]]:
    """Every custom operator; all operator codes are looked at before. Raises IndexError for one out of range."""
    codes = model.operator_codes or ()
    graphs = model.subgraphs or ()
    for graph in graphs:
        for number, operator in enumerate(graph.operators or ()):
            if operator.opcode_index >= len(codes):
                raise IndexError(f"operator {number} has code {operator.opcode_index} of {len(codes)}")
    for graph in graphs:
        for operator in graph.operators or ():
            if codes[operator.opcode_index].custom_code == CUSTOM_CODE:
                yield operator, graph


def _names(graph: tflite.SubGraph, indices: Sequence[int] | None) -> tuple[str, ...]:
    tensors = graph.tensors or ()
    return tuple((tensors[i].name or "") if 0 <= i < len(tensors) else f"tensor {i}" for i in indices or ())


def _options(
    data: memoryview, operator: tflite.Operator, model: tflite.Model, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Container:
    """Read the map in the operator's custom options."""
    place = ByteOffset(operator.at, "Operator.custom_options")

    findings: list[tuple[str, ByteOffset, str]] = []

    def nothing(message: str, rule: str = "D002") -> Container:
        return Container((*findings, (rule, place, message)), model=model)

    if not operator.custom_options:
        return nothing("the custom options are absent or empty")
    options = memoryview(operator.custom_options)
    start = starts(data, 0, operator, "custom_options")[0]
    try:
        values = flexbuffer.root(options).lookup(_KEYS)
        if values is None:
            return nothing("the custom options are not a FlexBuffer map")
        findings += [("D004", place, f"key {key.decode()} is present") for key in _DEPRECATED if key in values]
        at, raw = (values[_PACKAGE].string() if _PACKAGE in values else None) or (0, b"")
        if not raw:
            return nothing("key 4, the package, is absent, no string or empty")
        integers = {key: values[key].integer() if key in values else None for key in (_VERSION, _PREFERENCE)}
        chips, packages = _chips(values)
    except flexbuffer.Cut as error:
        return nothing(f"the custom options are cut: {error}")
    except ValueError as error:
        return nothing(str(error), "D003")
    if packages > 1:
        findings.append(("D005", place, plural(packages, "package")))
    op = CustomOp(
        version=integers[_VERSION],
        execution_preference=integers[_PREFERENCE],
        chips=chips,
        inputs=inputs,
        outputs=outputs,
    )
    return Container(findings=tuple(findings), raw=memoryview(raw), offset=start + at, custom_op=op, model=model)


def _chips(values: dict[bytes, flexbuffer.Value]) -> tuple[tuple[int, ...] | None, int]:
    """Key 6, and how many packages there are: with it, key 7 counts; without it, key 7 is not looked at.

    Raises ValueError for what is not a list of chips.
    """
    given = values.get(_CHIPS)
    if given is None or given.type == flexbuffer.NULL:
        return None, 1
    items = given.items()
    if items is None:
        raise ValueError("key 6 is not a vector")
    more = values.get(_MORE)
    packages = 1 + sum(1 for _ in (more.items() if more is not None else None) or ())
    chips: list[int] = []
    for item in items:
        chip = item.integer() if item.type == flexbuffer.INT else None
        if chip is None:
            raise ValueError(f"chip {len(chips)} is not a signed integer")
        chips.append(chip)
    if not chips or len(chips) != packages:
        raise ValueError(f"{plural(len(chips), 'chip')} for {plural(packages, 'package')}")
    return tuple(chips), packages


def holds_package(data: bytes) -> bool:
    """Whether the bytes of a file are of this kind."""
    if data[4:8] == IDENTIFIER:
        return True
    return data[4:8] == tflite.IDENTIFIER and CUSTOM_CODE.encode() in data
