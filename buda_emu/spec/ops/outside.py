"""Op types that other packages declare: entry points of the group `buda_emu.ops`, each an `OpType`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from buda_emu.spec.ops.declaration import OpType

GROUP: Final = "buda_emu.ops"


class OpTypes(Mapping[str, OpType]):
    """Op types by name. Other packages are asked for a word that is not among the `own`, once: looking for them takes
    longer than a netlist of known ops."""

    def __init__(self, own: Iterable[OpType]) -> None:
        self._known = {op.name: op for op in own}
        self._own = frozenset(self._known)
        self._asked = False

    def find(self, name: str) -> OpType | None:
        """That of a word, None for one that is not an op type's: as `get`, but quick, for who asks all the time."""
        found = self._known.get(name)
        if found is None and not self._asked:
            self._ask()
            found = self._known.get(name)
        return found

    def __getitem__(self, name: str) -> OpType:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def is_own(self, name: str) -> bool:
        """Whether the op type comes with this package."""
        return name in self._own

    def _ask(self) -> None:
        from importlib.metadata import entry_points

        self._asked = True
        for point in entry_points(group=GROUP):
            if point.name not in self._known:
                self._known[point.name] = _declared(point.name, point.load())


def _declared(name: str, found: object) -> OpType:
    if not isinstance(found, OpType) or found.name != name:
        raise TypeError(f"entry point {name} of {GROUP} is not an OpType of that name, but {found!r}")
    return found
