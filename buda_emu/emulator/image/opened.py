"""Opens a file that can be run: a netlist, or a device image with its netlist and its initial tensors."""

from os import PathLike, fspath
from os.path import isfile
from typing import TYPE_CHECKING

from buda_emu.netlist import load as netlists
from buda_emu.netlist.load import NetlistResult
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import MAX_BYTES
from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass

if TYPE_CHECKING:  # most files are netlists, which need nothing of it
    from buda_emu.emulator.image import load as images
    from buda_emu.emulator.image.device_image import DeviceImage
else:
    images = lazy("buda_emu.emulator.image.load")

StrPath = str | PathLike[str]
SUFFIX = ".tti"


def is_image(path: StrPath) -> bool:
    """Return whether a file is a device image, by its name."""
    return fspath(path).lower().endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class Opened:
    """A netlist as its file has it, and the image around it, where there is one."""

    netlist: Netlist
    image: "DeviceImage | None" = None

    @property
    def to_run(self) -> Netlist:
        """The netlist to run: the file's own, or for a compiled image the one that takes a single set of the model's
        inputs at a time, on one chip."""
        if self.image is not None:
            return self.image.for_inputs
        return self.netlist


def open_file(path: StrPath, arch: str | None = None, *, cache: bool = True, allow_pickle: bool = False) -> Opened:
    """Load a netlist or an image. `arch`, `cache` and `allow_pickle` are those of `netlist.load` and `load_image`.
    Raises NetlistError, ImageError, and OSError for an image that cannot be read."""
    if not is_image(path):
        return Opened(netlists.load(path, arch, cache=cache))
    from buda_emu.emulator.image.load import load_image

    image = load_image(path, allow_pickle=allow_pickle, arch=arch)
    return Opened(image.netlist, image)


def netlist_of(path: StrPath, arch: str | None = None, *, cache: bool = True) -> Netlist:
    """Load the netlist of a netlist file or an image, without reading tensors. Raises as `open_file`."""
    return open_file(path, arch, cache=cache, allow_pickle=True).netlist


def image_beside(path: StrPath) -> str | None:
    """Return the path of the image that has the name of a netlist's file, lies beside it and holds the same netlist,
    such as model.tti beside model.yaml; None where there is none. The image's other contents are not checked."""
    name: str = fspath(path)
    image = name.rpartition(".")[0] + SUFFIX
    if not name.lower().endswith(netlists.YAML_SUFFIXES) or not isfile(image):  # noqa: PTH113 - names stay as given
        return None
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - names are shown as they were given
            netlist = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    return image if images.holds_netlist(image, netlist) else None


def holds_model(path: StrPath) -> bool:
    """Return whether a file is an image that holds the model which it was compiled from, so that the model can be
    compiled for another board. Raises as `open_file`."""
    if not is_image(path):
        return False
    image = open_file(path, allow_pickle=True).image
    return image is not None and image.has_source


def check_file(path: StrPath, arch: str | None = None) -> NetlistResult:
    """Check a netlist or an image, and return all findings; errors in the file are findings, too."""
    if not is_image(path):
        return netlists.check(path, arch)
    from buda_emu.emulator.image.load import check_image

    return check_image(path, arch)
