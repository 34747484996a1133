"""Element types: their width, their kind, and the number that kernels know them by (VPUX 3, 6); and the limits of the
architectures."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from buda_emu.support.errors import HostError


@dataclass(frozen=True, slots=True)
class Element:
    """An element type. `kind` is float, int, uint, bool, or quant; `code` is the DataType of kernels' arguments.

    `numpy` names the type that holds an element on the host: a raw unsigned integer where numpy has no such number.
    """

    name: str
    kind: str
    bits: int
    code: int
    numpy: str

    @property
    def bytes(self) -> int:
        """Whole bytes of an element; 0 where it is narrower than one."""
        return self.bits // 8

    @property
    def is_raw(self) -> bool:
        """True for elements that are moved and never computed with: their bits mean nothing to the kernels here."""
        return self.kind == "quant" or self.name.startswith(("bf", "f8")) or self.bits < 8


_CODES: Final[Mapping[str, int]] = {
    "f64": 0, "f32": 1, "f16": 2, "bf16": 2, "f8": 3, "ui64": 4, "ui32": 5, "ui16": 6, "ui8": 7, "si64": 8, "si32": 9,
    "si16": 10, "si8": 11, "si4": 12, "si2": 13, "i1": 14, "ui1": 14, "si1": 14, "ui4": 17,
}  # fmt: skip
UNDEFINED: Final = 16  # VPUX 6, dataType
_QUANT_CODES: Final[Mapping[str, int]] = {"37XX": 7, "40XX": UNDEFINED}
_HOST_FLOATS: Final[Mapping[str, str]] = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16"}
_CODE_NAMES: Final[Mapping[int, str]] = {
    **{code: name for name, code in _CODES.items() if name not in ("bf16", "ui1", "si1")},
    15: "bf16",
    UNDEFINED: "undefined",
}


def element(name: str) -> Element | None:
    """Return the type of a name such as f16, si32, ui4, f8E4M3FN or !quant.uniform<u8:f16, ...>; None for an unknown
    one."""
    if name in _known:
        return _known[name]
    element_type = _make_element(name)
    _known[name] = element_type
    return element_type


_known: dict[str, Element | None] = {}


def _make_quantised(name: str) -> Element | None:
    """Return a quantised type, None if that of its storage is unknown."""
    storage = name.partition("<")[2].partition(":")[0].partition("<")[0].strip()
    inner = None
    if storage:
        inner = element({"u": "ui", "i": "si"}.get(storage[:1], storage[:1]) + storage[1:])
    if inner is None:
        return None
    return Element(name=name, kind="quant", bits=inner.bits, code=inner.code, numpy=inner.numpy)


def _make_element(name: str) -> Element | None:
    """Return the type that a name denotes, None for an unknown one. A quantised type has width and code of its
    storage."""
    if name.startswith("!quant."):
        return _make_quantised(name)
    if name.startswith("f8"):
        return Element(name=name, kind="float", bits=8, code=_CODES["f8"], numpy="uint8")
    if name in _HOST_FLOATS:
        bits = int(name.lstrip("bf"))
        return Element(name=name, kind="float", bits=bits, code=_CODES[name], numpy=_HOST_FLOATS[name])
    for prefix, kind in (("ui", "uint"), ("si", "int"), ("i", "int")):
        digits = name.removeprefix(prefix)
        if name.startswith(prefix) and digits in ("1", "2", "4", "8", "16", "32", "64"):
            bits = int(digits)
            code = _CODES.get(f"{'si' if prefix == 'i' else prefix}{bits}", UNDEFINED)
            if kind == "uint" or bits == 1:
                word = "uint"
            else:
                word = "int"
            return Element(
                name=name, kind="bool" if bits == 1 else kind, bits=bits, code=code, numpy=f"{word}{max(bits, 8)}"
            )
    return None


def data_type(of: Element, arch: str) -> int:
    """Return the number of an element type in kernels' arguments; that of quantised types depends on the architecture
    (VPUX 6)."""
    if of.kind == "quant":
        return _QUANT_CODES.get(arch, UNDEFINED)
    return of.code


def data_type_name(code: int) -> str:
    """Return the name of an element type's number, `undefined` for an unknown one."""
    return _CODE_NAMES.get(code, "undefined")


KIB: Final = 1024  # bytes


@dataclass(frozen=True, slots=True)
class Arch:
    """Limits of an architecture. A barrier has slots for producers, for consumers, and for both together."""

    name: str
    tiles: int
    barriers: int
    producers: int
    consumers: int
    slots: int
    slice_bytes: int
    workspace_bytes: int
    ports: int = 2
    dma_channels: bool = False
    """Has each DMA port a queue for each of DDR and CMX?"""
    slice_in_address: bool = True
    """Do kernels see all slices of CMX one after another, or their own at one address?"""

    def available_barriers(self, tiles: int) -> int:
        """Return how many barriers a schedule on that many tiles may use at one time."""
        return min(self.barriers, self.barriers // self.tiles * max(tiles, 1))


ARCHES: Final[Mapping[str, Arch]] = MappingProxyType(
    {
        "37XX": Arch(
            name="37XX",
            tiles=2,
            barriers=64,
            producers=128,
            consumers=128,
            slots=256,
            slice_bytes=2048 * KIB,
            workspace_bytes=1936 * KIB,
        ),
        "40XX": Arch(
            name="40XX",
            tiles=6,
            barriers=96,
            producers=64,
            consumers=64,
            slots=64,
            slice_bytes=2048 * KIB,
            workspace_bytes=1440 * KIB,
            dma_channels=True,
            slice_in_address=False,
        ),
    }
)


def find_arch(name: str) -> Arch:
    """Return the limits of 37XX or 40XX. Raises HostError for any other name."""
    arch = ARCHES.get(name)
    if arch is None:
        raise HostError(f"no architecture is named {name!r}: {' and '.join(ARCHES)} are")
    return arch
