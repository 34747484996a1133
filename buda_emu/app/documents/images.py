"""Load, check and summarise a device image through the interface that documents of every kind have."""

from functools import partial

from buda_emu.app.documents import netlists
from buda_emu.emulator.image.device_image import DeviceImage
from buda_emu.emulator.image.load import check_image, load_image
from buda_emu.netlist.load import NetlistResult
from buda_emu.support.checker import Options
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class ImageDocument(netlists.NetlistDocument):
    """A device image that was opened, with the netlist in it."""

    image: DeviceImage

    def summary(self) -> dict[str, int | str]:
        """Return the figures of the netlist, and the number of tensors, by name."""
        return {**netlists.NetlistDocument.summary(self), "tensors": len(self.image.tensors)}


def load(path: str) -> ImageDocument:
    """Open an image without reading its tensors. Raises ImageError, NetlistError, OSError."""
    image = load_image(path, allow_pickle=True)
    return ImageDocument(path, image.netlist, image)


def check_file(path: str, options: Options) -> NetlistResult:
    """Check an image, whatever its file is called; a strict check also routes the netlist. Raises HostError for the
    file of a cluster that cannot be read."""
    if not options.strict:
        return check_image(path, options.arch)
    from buda_emu.performance.routing import checking  # only a strict check makes pipes and streams

    against_routing = partial(checking.check_bytes, cluster=netlists.cluster_of(options))
    return check_image(path, options.arch, strict=True, check_netlist=against_routing)
