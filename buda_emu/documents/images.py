"""Device images as documents."""

from buda_emu.checker import Options
from buda_emu.documents import netlists
from buda_emu.image.device_image import DeviceImage
from buda_emu.image.load import check_image, load_image
from buda_emu.netlist.load import NetlistResult
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Document(netlists.Document):
    """An opened image."""

    image: DeviceImage

    def summary(self) -> dict[str, int | str]:
        """What it is, in figures by name."""
        return {**netlists.Document.summary(self), "tensors": len(self.image.tensors)}


def load(path: str) -> Document:
    """Open one; no tensor is looked at. Raises ImageError, NetlistError, OSError."""
    image = load_image(path, allow_pickle=True)
    return Document(path, image.netlist, image)


def check_file(path: str, options: Options) -> NetlistResult:
    """Check an image, whatever its file is called."""
    return check_image(path, options.arch, strict=options.strict, cluster=netlists.cluster_of(options))
