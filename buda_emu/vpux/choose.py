"""Which function is meant."""

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.vpux.model import Document, Function


def choose(document: Document, name: str | None, split: int | None) -> Function:
    """The first function of that name, of a split if one is given; without a name `main`, or the only one.

    Raises HostError where there is none, or where it is not clear which.
    """
    found = [item for item in document.functions if split is None or item.split == split]
    where = document.path if split is None else f"split {split} of {document.path}"
    if not found:
        raise HostError(f"{where} holds no function that could be read")
    named = [item for item in found if item.name == (name or "main")]
    if named:
        return named[0]
    if name is None and len(found) == 1:
        return found[0]
    names = sorted({item.name for item in found})
    if name is None:
        raise HostError(f"{where} holds several functions, choose one: {', '.join(names)}")
    raise HostError(f"{where} holds no function {name}, {near(name, names)}".removesuffix(", "))
