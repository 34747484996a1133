"""Linking: base addresses into instruction chunks (DARWINN 5). Nothing else of a chunk is touched or understood."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.checker.text import plural
from buda_emu.darwinn.idl import INPUT, LOWER, OUTPUT, PARAMETER, SCRATCH, UPPER, Executable, Meta
from buda_emu.errors import HostError, PackageError

_BITS = 32
_MASK = (1 << _BITS) - 1
_ADDRESS_BITS = 64
_MOST_BYTES = 1 << 28
Addresses = Mapping[str, Any]
"""`parameter` and `scratch`: an address; `inputs` and `outputs`: by name, an address for each batch."""
_KEYS = ("parameter", "scratch", "inputs", "outputs")


def link(executable: Executable, addresses: Addresses) -> list[bytes]:
    """The chunks with every field replaced by its half of a base address; what has no address stays as it is.

    Raises PackageError for a field outside of its chunk, and for a batch of a named layer that has no address;
    HostError for malformed addresses.
    """
    _look_at(addresses)
    total = sum(len(chunk.bitstream or b"") for chunk in executable.chunks)
    if total > _MOST_BYTES:  # chunks that overlap in the file may hold more than the file
        raise PackageError(f"{total} bytes of instructions, more than {_MOST_BYTES}")
    return [_linked(number, executable, addresses) for number in range(len(executable.chunks))]


def _linked(number: int, executable: Executable, addresses: Addresses) -> bytes:
    chunk = executable.chunks[number]
    code = bytearray(chunk.bitstream or b"")
    for field in chunk.field_offsets or ():
        if not 0 <= field.offset_bit <= 8 * len(code) - _BITS:
            raise PackageError(
                f"chunk {number}: a field at bit {field.offset_bit} of {8 * len(code)} cannot be linked (D035)"
            )
        address = _address(field.meta, addresses, number) if field.meta is not None else None
        if field.meta is None or address is None:
            continue
        if field.meta.position not in (LOWER, UPPER):
            raise PackageError(f"chunk {number}: a field of position {field.meta.position} cannot be linked (D042)")
        half = (address if field.meta.position == LOWER else address >> _BITS) & _MASK
        first, shift = divmod(field.offset_bit, 8)
        length = (_BITS + shift + 7) // 8
        value = int.from_bytes(code[first : first + length], "little")
        value = value & ~(_MASK << shift) | half << shift
        code[first : first + length] = value.to_bytes(length, "little")
    return bytes(code)


def _address(meta: Meta, addresses: Addresses, chunk: int) -> int | None:
    """The base address that a field is for."""
    if meta.desc == PARAMETER:
        return addresses.get("parameter")
    if meta.desc == SCRATCH:
        if meta.batch:
            raise PackageError(f"chunk {chunk}: scratch has no batch {meta.batch} (D039)")
        return addresses.get("scratch")
    group = {INPUT: "inputs", OUTPUT: "outputs"}.get(meta.desc)
    given: Sequence[int] | None = addresses.get(group, {}).get(meta.name) if group is not None else None
    if given is None:
        return None
    if not 0 <= meta.batch < len(given):
        raise PackageError(
            f"chunk {chunk}: {meta.name!r} has addresses for {plural(len(given), 'batch')}, none for {meta.batch}"
        )
    return given[meta.batch]


def _look_at(addresses: Addresses) -> None:
    """Raises HostError for what is not an address."""
    unknown = set(addresses) - set(_KEYS)
    if unknown:
        raise HostError(f"addresses are given for {', '.join(_KEYS)}, not {', '.join(sorted(map(str, unknown)))}")
    plain = [addresses[key] for key in ("parameter", "scratch") if addresses.get(key) is not None]
    listed = [item for key in ("inputs", "outputs") for items in addresses.get(key, {}).values() for item in items]
    for value in (*plain, *listed):
        if not (isinstance(value, int) and 0 <= value < 1 << _ADDRESS_BITS):
            raise HostError(f"{value!r} is not an address of {_ADDRESS_BITS} bits")
