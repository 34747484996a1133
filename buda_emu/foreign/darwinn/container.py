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
    """The package's bytes in a file and their offset; `raw` is None where the file holds no package. `findings` are
    (rule, place, message)."""

    findings: tuple[tuple[str, ByteOffset, str], ...]
    raw: memoryview | None = None
    offset: int = 0
    custom_op: CustomOp | None = None
    model: tflite.Model | None = None


def unwrap(data: memoryview) -> Container:
    """Find the package in a file's bytes. A file that is no TFLite model is taken for a bare package; problems are
    findings, never exceptions."""
    if len(data) < 8:
        return Container((("D001", ByteOffset(0, "file"), f"a file of {plural(len(data), 'byte')}"),))
    if bytes(data[4:8]) != tflite.IDENTIFIER:
        return Container((), data)
    try:
        model = read(tflite.Model, data)
    except Malformed as error:
        return Container((("D001", ByteOffset(error.offset, "Model"), f"the model does not verify: {error}"),))
    try:
        location = next(_custom_operators(model), None)
    except IndexError as error:
        return Container((("D001", ByteOffset(model.at, "Operator.opcode_index"), str(error)),), model=model)
    if location is None:
        message = f"the model has no {CUSTOM_CODE}: it was not compiled for the Edge TPU"
        return Container((("D001", ByteOffset(model.at, "Model"), message),), model=model)
    operator, graph = location
    names = [_tensor_names(graph, indices) for indices in (operator.inputs, operator.outputs)]
    return _read_options(data, operator, model, names[0], names[1])


def _custom_operators(model: tflite.Model) -> Iterator[tuple[tflite.Operator, tflite.SubGraph]]:
    """Yield every `edgetpu-custom-op` with its subgraph, after all operator codes were checked. Raises IndexError for
    an operator code out of range."""
    codes = model.operator_codes or ()
    graphs = model.subgraphs or ()
    for graph in graphs:
        _check_operator_codes(graph, len(codes))
    for graph in graphs:
        for operator in graph.operators or ():
            if codes[operator.opcode_index].custom_code == CUSTOM_CODE:
                yield operator, graph


def _check_operator_codes(graph: tflite.SubGraph, count: int) -> None:
    """Raise IndexError if an operator of a subgraph has a code beyond the `count` codes of the model."""
    for number, operator in enumerate(graph.operators or ()):
        if operator.opcode_index >= count:
            raise IndexError(f"operator {number} has code {operator.opcode_index} of {count}")


def _tensor_names(graph: tflite.SubGraph, indices: Sequence[int] | None) -> tuple[str, ...]:
    """Return the names of the tensors at `indices` of a graph: "" for a tensor without a name, `tensor N` for an
    index that no tensor has."""
    tensors = graph.tensors or ()
    names: list[str] = []
    for index in indices or ():
        if 0 <= index < len(tensors):
            names.append(tensors[index].name or "")
        else:
            names.append(f"tensor {index}")
    return tuple(names)


def _read_options(
    data: memoryview, operator: tflite.Operator, model: tflite.Model, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Container:
    """Read the package from the FlexBuffer map in the operator's custom options (DARWINN 1). `inputs` and `outputs`
    are the names of the operator's tensors, for the `CustomOp`."""
    place = ByteOffset(operator.at, "Operator.custom_options")
    findings: list[tuple[str, ByteOffset, str]] = []

    def no_package(message: str, rule: str = "D002") -> Container:
        """Return a container without a package, with the findings so far and a last one that says why."""
        return Container((*findings, (rule, place, message)), model=model)

    if not operator.custom_options:
        return no_package("the custom options are absent or empty")
    options = memoryview(operator.custom_options)
    start = starts(data, 0, operator, "custom_options")[0]
    try:
        values = flexbuffer.root(options).lookup(_KEYS)
        if values is None:
            return no_package("the custom options are not a FlexBuffer map")
        findings += [("D004", place, f"key {key.decode()} is present") for key in _DEPRECATED if key in values]
        at, raw = (values[_PACKAGE].string() if _PACKAGE in values else None) or (0, b"")
        if not raw:
            return no_package("key 4, the package, is absent, no string or empty")
        version = _integer_option(values, _VERSION)
        preference = _integer_option(values, _PREFERENCE)
        chips, packages = _read_chips(values)
    except flexbuffer.TruncatedError as error:
        return no_package(f"the custom options are cut: {error}")
    except ValueError as error:
        return no_package(str(error), "D003")
    if packages > 1:
        findings.append(("D005", place, plural(packages, "package")))
    op = CustomOp(
        version=version,
        execution_preference=preference,
        chips=chips,
        inputs=inputs,
        outputs=outputs,
    )
    return Container(findings=tuple(findings), raw=memoryview(raw), offset=start + at, custom_op=op, model=model)


def _integer_option(values: dict[bytes, flexbuffer.FlexValue], key: bytes) -> int | None:
    """Return the integer that the options hold under a key; None where the key is absent or its value is no
    integer."""
    if key in values:
        return values[key].integer()
    return None


def _read_chips(values: dict[bytes, flexbuffer.FlexValue]) -> tuple[tuple[int, ...] | None, int]:
    """Return the chips of key 6 and the number of packages. Without key 6 the driver does not look at key 7.

    Raises ValueError where key 6 is not a list of chips, one for each package.
    """
    chips_value = values.get(_CHIPS)
    if chips_value is None or chips_value.type == flexbuffer.NULL:
        return None, 1
    elements = chips_value.items()
    if elements is None:
        raise ValueError("key 6 is not a vector")
    packages = 1
    packages_value = values.get(_MORE)
    if packages_value is not None:
        packages += sum(1 for _ in packages_value.items() or ())
    chips: list[int] = []
    for element in elements:
        chip = None
        if element.type == flexbuffer.INT:
            chip = element.integer()
        if chip is None:
            raise ValueError(f"chip {len(chips)} is not a signed integer")
        chips.append(chip)
    if not chips or len(chips) != packages:
        raise ValueError(f"{plural(len(chips), 'chip')} for {plural(packages, 'package')}")
    return tuple(chips), packages


def holds_package(data: bytes) -> bool:
    """Return whether the bytes of a file look like a bare package or like a `.tflite` with an `edgetpu-custom-op`."""
    if data[4:8] == IDENTIFIER:
        return True
    return data[4:8] == tflite.IDENTIFIER and CUSTOM_CODE.encode() in data
