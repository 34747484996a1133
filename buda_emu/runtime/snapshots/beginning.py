"""What a machine began with, and still has: its snapshot refers to the device image for it (docs/run/snapshots.md)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol

from buda_emu.device.store import TileStore
from buda_emu.netlist.model import Netlist
from buda_emu.records import dataclass
from buda_emu.runtime.machine.memory import Memory
from buda_emu.runtime.snapshots.archive import Reader
from buda_emu.runtime.snapshots.entries import changing, stores
from buda_emu.runtime.snapshots.header_fields import Fields

Holding = Callable[[str, Any, int | None], Callable[[], object]]
"""`Exchange.holding`."""


class InitialTensor(Protocol):
    """A tensor of an image for one queue: `array` [entries, t, rows, cols], `slot` the first one of a ram."""

    @property
    def queue(self) -> str:
        """Its name."""
        ...

    @property
    def array(self) -> Any:
        """Of numpy, or by reference."""
        ...

    @property
    def slot(self) -> int | None:
        """None for a queue."""
        ...


class Beginning(Protocol):
    """A device image (`buda_emu.image`): its file, the SHA-256 of that, and what a machine begins with."""

    path: str

    @property
    def digest(self) -> str:
        """In hexadecimal."""
        ...

    def held(self) -> Iterator[InitialTensor]:
        """Tensors in the order in which they are pushed."""
        ...


@dataclass(frozen=True, slots=True)
class Begun:
    """`writes`: of each store that the image filled, how often it had been written to then."""

    image: Beginning
    writes: Mapping[str, int]

    def unchanged(self, netlist: Netlist, memory: Memory) -> frozenset[str]:
        """The stores that still hold what the image has."""
        own = changing(netlist, memory)
        held = stores(memory, written_only=False)
        return frozenset(name for name, count in self.writes.items() if name not in own and held[name].writes == count)


def reference(begun: Begun | None, unchanged: Collection[str]) -> dict[str, Any]:
    """The part of a header that refers to an image, empty where nothing does. Raises ImageError."""
    if begun is None or not unchanged:
        return {}
    return {
        "path": begun.image.path,
        "sha256": begun.image.digest,
        "stores": [[name] for name in sorted(unchanged)],
    }


def read_reference(header: Fields, known: Mapping[str, TileStore], own: Collection[str]) -> frozenset[str]:
    """The stores that a snapshot has by reference. `own`: those that a program may change. Raises HostError for what
    cannot be."""
    fields = header.at("image")
    if not fields.names():
        return frozenset()
    named = [name for (name,) in fields.rows("stores", str)]
    if len(set(named)) < len(named) or not known.keys() - own >= set(named):
        raise fields.bad("refers to an image for memory that programs change, or that is not there")
    return frozenset(named)


def require_image(header: Fields, reader: Reader, image: Beginning | None) -> Beginning:
    """The image that a snapshot refers to. Raises HostError where none is given, or another one."""
    fields = header.at("image")
    path, digest = fields.text("path"), fields.text("sha256")
    if image is None:
        raise reader.refused(
            f"its parameters are those of the image {path}: give it, Emulator.load(snapshot, "
            "netlist, image=buda_emu.load_image(path)), or restore it after begin_with"
        )
    if image.digest != digest:
        raise reader.refused(
            f"its parameters are those of the image {path} (SHA-256 {digest[:12]}...), which {image.path} is not "
            f"({image.digest[:12]}...): give the image that it was saved with"
        )
    return image


def fillers(image: Beginning, memory: Memory, wanted: Collection[str], holding: Holding) -> list[Callable[[], object]]:
    """What fills these stores, once they are empty, from the image; what can be wrong has been found before. Raises
    HostError, ImageError."""
    found: list[Callable[[], object]] = []
    for held in image.held() if wanted else ():
        if memory.channel(held.queue).view.store.name in wanted:
            found.append(holding(held.queue, held.array, held.slot))
    return found
