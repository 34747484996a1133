"""`const.Declare`: from text to elements of the declared type (VPUX 4)."""

import json
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import ProgramError
from buda_emu.vpux.elements import Element
from buda_emu.vpux.execute.values import bf16_bits, bf16_values, packed, rounded
from buda_emu.vpux.model import Dense, Op, Type

Array = NDArray[Any]

_WORDS: Final = {"true": "1", "false": "0", "inf": "Infinity", "nan": "NaN"}
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")


def logical_values(op: Op) -> Array:
    """The elements of a constant in its declared type, in logical shape; those narrower than a byte as compact bytes.

    Raises ProgramError for text that is wrong.
    """
    of = op.types[0]
    content = op.attributes.get("content")
    if not isinstance(content, Dense) or of.shape is None or of.element is None:
        raise ProgramError("a constant without content")
    values = _values(content, of)
    if of.bits < 8 and content.text.startswith('"') and values.size == of.compact_bytes != of.count:
        return values  # packed already
    if values.size == 1:
        values = np.broadcast_to(values.reshape(()), of.shape)
    if values.size != of.count:
        raise ProgramError(f"a constant of {values.size} elements for a shape of {of.count}")
    values = values.reshape(of.shape)
    return values if of.bits >= 8 else packed(values, of)


def _values(content: Dense, of: Type) -> Array:
    written = content.type.element if content.type is not None else None
    target = of.element
    assert target is not None
    if not content.text:
        return np.zeros(0, target.numpy)
    if content.text.startswith('"'):
        values = _raw(content.text.strip('"'), written or target)
        if written is not None and written.name == "bf16" != target.name:
            values = bf16_values(values)
        elif (written or target).name == target.name:
            return values
    else:
        values = _numbers(content.text, written or target)
    if target.name == "bf16" and (written is None or written.kind != "quant"):
        return bf16_bits(values)
    return values.astype(target.numpy) if target.is_raw else rounded(values, target)


def _raw(text: str, written: Element) -> Array:
    """A hex string: little-endian elements."""
    try:
        data = bytes.fromhex(text.removeprefix("0x"))
        return np.frombuffer(data, np.dtype(written.numpy).newbyteorder("<"))
    except ValueError as error:
        raise ProgramError(f"the hex string of a constant is wrong: {error}") from None


def _numbers(text: str, written: Element) -> Array:
    """A number, or lists of lists of numbers; hex digits are the bits of a float."""
    plain = re.sub(r"\b(true|false|inf|nan)\b", lambda found: _WORDS[found[0]], text)
    plain = re.sub(r"(?<=\d)\.(?!\d)", ".0", plain)
    try:
        plain = _HEX.sub(lambda found: _bits(found[0], written), plain)
        values = np.array(json.loads(plain))
    except (ValueError, RecursionError, OverflowError) as error:
        raise ProgramError(f"the elements of a constant are wrong: {error}") from None
    if values.dtype.kind not in "fiub":
        raise ProgramError("the elements of a constant are not numbers of one shape")
    return values


def _bits(text: str, written: Element) -> str:
    """A number in hex digits, as JSON writes it."""
    if written.kind != "float" or written.bits == 8:
        return str(int(text, 16))
    size = written.bits // 8
    raw = np.frombuffer((int(text, 16) & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
    bits = raw.view(written.numpy)
    return json.dumps(float((bf16_values(bits) if written.name == "bf16" else bits)[0]))
