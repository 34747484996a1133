"""Machine code is put into memory without LLVM, on Linux with x86-64: importing that takes a fifth of a small run.

An object file of kernels is simple: its code reaches everything by an address of 64 bits that stands in it. So placing
it is to copy its sections, to write these addresses, and to make the code executable and no longer writable.
Whatever is otherwise than expected is left to LLVM's loader (`loading.py`).
"""

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

# ELF-64, System V ABI and its supplement for AMD64.
_MAGIC: Final = b"\x7fELF\x02\x01\x01"
_HEADER: Final = struct.Struct("<16xHH4x16xQ10xHHH")  # type, machine, sections' place, size and count, names
_RELOCATABLE = 1
_X86_64 = 62
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_SHT_SYMTAB = 2
_SHT_RELA = 4
_SHT_NOBITS = 8
_SHT_UNWIND = 0x70000001
_SHF_WRITE = 1
_SHF_ALLOC = 2
_SHN_UNDEF: Final = 0
_ABSOLUTE_64: Final = 1  # R_X86_64_64
_ADDRESS: Final = struct.Struct("<Q")
_PAGE: Final = mmap.PAGESIZE
_MOST_BYTES: Final = 64 << 20  # of a section; kernels have 100 KB

_CPUID: Final = bytes.fromhex("53 89f8 89f1 4989d0 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""void (unsigned leaf, unsigned subleaf, unsigned registers[4]): eax, ebx, ecx, edx of the instruction `cpuid`."""
_XGETBV: Final = bytes.fromhex("31c9 0f01d0 48c1e220 4809d0 c3")
"""unsigned long (void): which registers the system keeps. Only where leaf 1 has _OSXSAVE in ecx."""
_OSXSAVE: Final = 1 << 27
_LEAVES: Final = (
    (0x0, 0, 0b1110), (0x1, 0, 0b1101), (0x7, 0, 0b1111), (0x7, 1, 0b1111), (0xD, 1, 0b0001), (0x14, 0, 0b0010),
    (0x19, 0, 0b0010), (0x1E, 1, 0b0001), (0x24, 0, 0b0010), (0x80000001, 0, 0b1100), (0x80000008, 0, 0b0010),
)  # fmt: skip
"""Leaf, subleaf, and which registers of it, eax the lowest, say what a processor is and can; others say which core."""
_kept: Final[list[mmap.mmap]] = []  # code lives as long as the process


class _NotSimpleError(Exception):
    """It is for LLVM to load."""


def place_object(machine_code: bytes, symbol: str, objects: Mapping[str, Any]) -> int | None:
    """Place an object file in memory and return the address of its function `symbol`; None where LLVM has to load it.
    `objects`: Python objects by name."""
    if not _can_place():
        return None
    try:
        return _place_object(machine_code, symbol, objects)
    except (_NotSimpleError, struct.error, KeyError, IndexError, ValueError, OverflowError, OSError):
        return None


@cache
def processor() -> str | None:
    """Return the identity and features of this processor, in hexadecimal digits; None where they cannot be asked for
    here."""
    if not _can_place():
        return None
    try:
        memory = _memory(_PAGE)
        _put(memory, _CPUID + _XGETBV, _PAGE)
    except OSError:
        return None
    code = _address_of(memory)
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))(code)
    system = ctypes.CFUNCTYPE(ctypes.c_uint64)(code + len(_CPUID))
    registers = (ctypes.c_uint32 * 4)()
    numbers: list[int] = []
    for leaf, subleaf, register_mask in _LEAVES:
        ask(leaf & 0x80000000, 0, registers)
        if registers[0] < leaf:
            continue
        ask(leaf, subleaf, registers)
        numbers += [leaf, *(registers[number] for number in range(4) if register_mask >> number & 1)]
        if leaf == 1:
            numbers.append(system() if registers[2] & _OSXSAVE else 0)
    return " ".join(f"{value:x}" for value in numbers)


@cache
def _can_place() -> bool:
    """Return whether this system is one on which object files are placed without LLVM: Linux on x86-64."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def _place_object(data: bytes, symbol: str, objects: Mapping[str, Any]) -> int:
    """Place an object file in memory with all addresses in it filled in, and return that of a function. Raises
    _NotSimpleError and what a damaged file raises."""
    file = _ObjectFile(data)
    image, code_bytes, offsets = file.image()
    memory = _memory(len(image))
    first = _address_of(memory)

    def address(number: int) -> int:
        """Return the address of the symbol of this number."""
        name, section, value = file.symbol(number)
        if section == _SHN_UNDEF:
            return _foreign(name, objects)
        return first + offsets[section] + value

    for field, number, addend in file.fields(offsets):
        _ADDRESS.pack_into(image, field, address(number) + addend & 0xFFFFFFFFFFFFFFFF)
    entry = address(file.number_of(symbol))
    _put(memory, image, code_bytes)
    return entry


class _ObjectFile:
    """The parts of an ELF file that placing needs. Raises _NotSimpleError, KeyError, IndexError, struct.error."""

    def __init__(self, data: bytes) -> None:
        kind, machine, place, size, count, _ = _HEADER.unpack_from(data)
        if not data.startswith(_MAGIC) or (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
            raise _NotSimpleError
        self._data = data
        self._sections = [_SECTION.unpack_from(data, place + size * number) for number in range(count)]
        (self._symbols,) = (section for section in self._sections if section[1] == _SHT_SYMTAB)

    def image(self) -> tuple[bytearray, int, dict[int, int]]:
        """Return the sections that a process needs, one after the other, the number of bytes that do not change, and
        the offset of each section. Bytes that change begin on a page of their own."""
        image = bytearray()
        offsets: dict[int, int] = {}
        code_bytes = 0
        for changes in (0, _SHF_WRITE):
            for number, section in enumerate(self._sections):
                kind, flags, _, place, size, _, _, alignment, _ = section[1:]
                if flags & (_SHF_ALLOC | _SHF_WRITE) != _SHF_ALLOC | changes or kind == _SHT_UNWIND:
                    continue
                if alignment > _PAGE or size > _MOST_BYTES:
                    raise _NotSimpleError
                image.extend(bytes(-len(image) % max(alignment, 1)))
                offsets[number] = len(image)
                image.extend(bytes(size) if kind == _SHT_NOBITS else self._data[place : place + size])
            if not changes:
                image.extend(bytes(-len(image) % _PAGE))
                code_bytes = len(image)
        return image, code_bytes, offsets

    def fields(self, offsets: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
        """Yield the place of each address in the image, the number of its symbol, and the number added to it. `offsets`
        are those of `image`."""
        for section in self._sections:
            if section[1] != _SHT_RELA or section[7] not in offsets:
                continue
            for field, info, addend in _RELOCATION.iter_unpack(self._data[section[4] : section[4] + section[5]]):
                if info & 0xFFFFFFFF != _ABSOLUTE_64:
                    raise _NotSimpleError
                yield offsets[section[7]] + field, info >> 32, addend

    def symbol(self, number: int) -> tuple[str, int, int]:
        """Return name, section and place in it of the symbol of this number."""
        name, _, _, section, value, _ = _SYMBOL.unpack_from(self._data, self._symbols[4] + number * _SYMBOL.size)
        begin = self._sections[self._symbols[6]][4] + name
        return self._data[begin : self._data.index(0, begin)].decode(), section, value

    def number_of(self, name: str) -> int:
        """Return the number of a symbol. Raises _NotSimpleError for an unknown name."""
        for number in range(self._symbols[5] // _SYMBOL.size):
            if self.symbol(number)[0] == name:
                return number
        raise _NotSimpleError


# --------------------------------------------------------------------------------------------------------- the process
def _foreign(name: str, objects: Mapping[str, Any]) -> int:
    """Return the address of a Python object of `objects`, or of a function of CPython or the C library. Raises
    _NotSimpleError for any other name."""
    if name in objects:
        return id(objects[name])
    try:
        function = getattr(_process(), name)
    except AttributeError:
        raise _NotSimpleError from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _process() -> ctypes.CDLL:
    """Return CPython's and the C library's functions."""
    return ctypes.CDLL(None, use_errno=True)


def _memory(size: int) -> mmap.mmap:
    """Return fresh memory that lives as long as the process."""
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _kept.append(memory)
    return memory


def _address_of(memory: mmap.mmap) -> int:
    """Return the address at which memory begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _put(memory: mmap.mmap, image: bytes | bytearray, code_bytes: int) -> None:
    """Fill memory; `code_bytes` of it can be executed from then on, and not be written. Raises OSError."""
    memory[: len(image)] = bytes(image)
    protect = _process().mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(_address_of(memory), code_bytes, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "no memory can be executed")
