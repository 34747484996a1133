"""The forms in which a caller names a netlist: a path, a netlist, an image, or a model that was compiled or loaded."""

import sys
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeGuard

from buda_emu.emulator.image.opened import Opened, is_image, open_file
from buda_emu.netlist.model import Netlist
from buda_emu.spec.boards import agreed_arch, another_placement
from buda_emu.support.errors import HostError
from buda_emu.support.options import document_path

if TYPE_CHECKING:  # who has a compiled model or an image has imported its module, and nobody else needs it
    from buda_emu.app.api.load_model import LoadedModel
    from buda_emu.compiler.compiled import CompiledModel
    from buda_emu.compiler.parted import PartedModel
    from buda_emu.emulator.image.device_image import DeviceImage

    Source = str | PathLike[str] | Netlist | DeviceImage | LoadedModel | CompiledModel | PartedModel


def is_path(source: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether a source is the path of a file."""
    return isinstance(source, (str, PathLike))


def _is_instance(source: object, module_name: str, class_name: str) -> bool:
    """Return whether a source is an instance of a class of a module, which is not imported for it."""
    module = sys.modules.get(module_name)
    return module is not None and isinstance(source, getattr(module, class_name))


def is_parted(source: object) -> "TypeGuard[PartedModel]":
    """Return whether a source is a model that was compiled in parts."""
    return _is_instance(source, "buda_emu.compiler.parted", "PartedModel")


def compiled_of(source: Any) -> "CompiledModel | None":
    """Return the compiled model that a source is or has, None for any other source. Raises HostError for a model that
    the host computes alone."""
    if is_parted(source):
        return source.on_device
    if _is_instance(source, "buda_emu.compiler.compiled", "CompiledModel"):
        return source
    return None


def image_of(source: Any) -> "DeviceImage | None":
    """Return the image that a source is or was loaded from, None for any other source."""
    if _is_instance(source, "buda_emu.app.api.load_model", "LoadedModel"):
        return source.image
    if _is_instance(source, "buda_emu.emulator.image.device_image", "DeviceImage"):
        return source
    return None


def open_source(
    source: object,
    arch: str | None = None,
    board: str | None = None,
    *,
    function: str,
    allow_pickle: bool = False,
) -> Opened:
    """Return the netlist of a source, and the image around it where there is one. A file that names several
    architectures is read for `arch`, or for the chips of `board`. `function` is the one that takes the source, for
    messages. Raises NetlistError or ImageError for a file that is refused, and HostError for a value of another kind, a
    board that does not exist or is of another architecture than `arch`, and a netlist of another architecture."""
    arch = agreed_arch(board, arch)
    if is_path(source):
        document_path(source, function)
        # An image is for one architecture: where a board asks for another, the message below names the board.
        expected = arch
        if board and is_image(source):
            expected = None
        opened = open_file(source, expected, allow_pickle=allow_pickle)
    else:
        opened = _open_object(source)
    arch_name = opened.netlist.arch_name
    if arch is not None and arch_name != arch.lower():
        if board:
            raise HostError(f"the netlist is for {arch_name}, {board} has chips of {arch}\n{another_placement(board)}")
        raise HostError(f"the netlist was loaded for {arch_name}: load it with arch={arch!r}")
    return opened


def _open_object(source: object) -> Opened:
    """Return the netlist, and the image if there is one, of an object in memory. Raise HostError for an object of
    another type."""
    if isinstance(source, Netlist):
        return Opened(source)
    image = image_of(source)
    if image is not None:
        return Opened(image.netlist, image)
    compiled = compiled_of(source)
    if compiled is not None:
        return Opened(compiled.netlist)
    raise HostError(
        f"{type(source).__name__} is none of: path of a netlist or image, netlist, image, compiled or loaded model"
    )
