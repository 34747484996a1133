"""Memory with a written-flag for each byte: the L2 of a core, and DRAM (facts GEMINI 2.4, 2.6, 6)."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.gemini.boxes import Box, Coordinates
from buda_emu.gemini.execution.seeded import Weights
from buda_emu.gemini.model import Region, Tensor
from buda_emu.gemini.rings import pieces, region_of
from buda_emu.gemini.sizes import CHANNELS, EXTRA, aligned, fmap_bytes, padded, weight_bytes

_MOST = 1 << 34  # bytes of an L2 that is emulated
_BITS: Final = {8: np.int8, 16: np.float16}


class Fault(Exception):  # noqa: N818 - of the emulated hardware, not of a caller
    """Something that the hardware would do wrong: told as a mismatch."""


class L2:
    """Bytes of one core. Feature maps lie N H W C, channels padded; a tensor wraps within its ring region."""

    def __init__(self, size: int) -> None:
        if size > _MOST:
            raise UnsupportedError(f"an L2 of {size} bytes is more than the {_MOST} that are emulated")
        self._bytes = np.zeros(size, np.uint8)
        self._written = np.zeros(size, np.bool_)

    def read_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box) -> NDArray[Any]:
        """A box of a tensor, in the tensor's own coordinates, as N C H W. Raises Fault for unwritten bytes."""
        where = self._where(regions, tensor)
        if not box.inside(tensor.box):
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, which is {tensor.box}")
        part = _nhwc(box.within(tensor.box))
        values = _shaped(_joined(self._bytes, where), tensor)[part]
        written = _shaped(_joined(self._written, where), tensor)[part]
        if not written.all():
            count = written.size - int(written.sum())
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, but {count} bytes of it were never written")
        return values.transpose(0, 3, 1, 2)

    def write_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box, values: NDArray[Any]) -> None:
        """Write N C H W values to a box. A box that reaches the last channel takes the padding after it, as 0."""
        where = self._where(regions, tensor)
        if not box.inside(tensor.box) or box.shape != values.shape:
            raise Fault(f"{list(values.shape)} values are written to {box} of tensor {tensor.tensor_id}, {tensor.box}")
        if values.dtype != _BITS[tensor.bitwidth]:
            raise Fault(f"{values.dtype} values are written to tensor {tensor.tensor_id} of {tensor.bitwidth} bits")
        part = _nhwc(box.within(tensor.box))
        content, written = _joined(self._bytes, where), _joined(self._written, where)
        _shaped(content, tensor)[part] = values.transpose(0, 2, 3, 1)
        _shaped(written, tensor)[part] = True
        if box.upper[1] == tensor.box.upper[1]:
            behind = (part[0], part[1], part[2], slice(tensor.box.shape[1], None))
            _shaped(content, tensor)[behind] = 0
            _shaped(written, tensor)[behind] = True
        if len(where) > 1:  # copies were changed
            _spread(self._bytes, where, content)
            _spread(self._written, where, written)

    def read_weight(self, regions: Sequence[Region] | None, tensor: Tensor) -> NDArray[np.uint8]:
        """The bytes of a weight. Raises Fault for unwritten ones."""
        where = self._where(regions, tensor)
        if not _joined(self._written, where).all():
            raise Fault(f"weight tensor {tensor.tensor_id} is read before it is written")
        return _joined(self._bytes, where)

    def write_weight(self, regions: Sequence[Region] | None, tensor: Tensor, content: NDArray[np.uint8]) -> None:
        """All bytes of a weight."""
        where = self._where(regions, tensor)
        if content.size != weight_bytes(tensor.box):
            raise Fault(f"{content.size} bytes of weights are written to tensor {tensor.tensor_id}, {tensor.box}")
        _spread(self._bytes, where, content)
        _spread(self._written, where, np.ones(content.size, np.bool_))

    def _where(self, regions: Sequence[Region] | None, tensor: Tensor) -> list[Region]:
        """The bytes of a tensor."""
        if tensor.bitwidth not in _BITS:
            raise Fault(f"tensor {tensor.tensor_id} has {tensor.bitwidth} bits")
        weight = tensor.type == "weight"
        size = weight_bytes(tensor.box) if weight else fmap_bytes(tensor.box, tensor.bitwidth)
        region = region_of(regions or (), tensor.address)
        if region is None:
            raise Fault(f"tensor {tensor.tensor_id} at {tensor.address} is in no ring region")
        low, high = region
        if low < 0 or high > self._bytes.size or size > high - low:
            raise Fault(f"tensor {tensor.tensor_id} of {size} bytes does not fit the region [{low}, {high}]")
        return pieces(region, tensor.address, size)


def _joined(array: NDArray[Any], where: Sequence[Region]) -> NDArray[Any]:
    """A view of one stretch, a copy of several."""
    stretches = [array[low:high] for low, high in where]
    return stretches[0] if len(stretches) == 1 else np.concatenate(stretches)


def _spread(array: NDArray[Any], where: Sequence[Region], content: NDArray[Any]) -> None:
    at = 0
    for low, high in where:
        array[low:high] = content[at : at + high - low]
        at += high - low


def _shaped(content: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
    """Bytes as elements [N, H, W, padded C]; flags of bytes as [N, H, W, padded C, bytes of an element]."""
    n, c, h, w = tensor.box.shape
    channels = padded(c, aligned(tensor.bitwidth))
    if content.dtype == np.bool_:
        return content.reshape(n, h, w, channels, tensor.bitwidth // 8)
    return content.view(_BITS[tensor.bitwidth]).reshape(n, h, w, channels)


def _nhwc(box: Box) -> tuple[slice, slice, slice, slice]:
    n, c, h, w = box.slices()
    return n, h, w, c


def weight_image(weights: Weights, box: Box) -> NDArray[np.uint8]:
    """The bytes of a part of a layer's weights, box [0, K, C, R*S]: for each K the values [R*S][padded C], a float32
    scale, a float32 bias, 24 zeros."""
    values, scale, bias = weights
    k, c, r, s = values.shape
    if box.upper[1] >= k or box.upper[2] >= c or box.upper[3] >= r * s:
        raise Fault(f"weights {box} are loaded, the layer has {[0, k - 1, c - 1, r * s - 1]}")
    _, ks, cs, taps = box.slices()
    part = values.reshape(k, c, r * s)[ks, cs, taps]
    count, channels, window = part.shape
    image = np.zeros((count, window * padded(channels, CHANNELS) + EXTRA), np.uint8)
    body = image[:, :-EXTRA].view(np.int8).reshape(count, window, -1)
    body[:, :, :channels] = part.transpose(0, 2, 1)
    image[:, -EXTRA : 4 - EXTRA] = np.ascontiguousarray(scale[ks]).view(np.uint8).reshape(-1, 4)
    image[:, 4 - EXTRA : 8 - EXTRA] = np.ascontiguousarray(bias[ks]).view(np.uint8).reshape(-1, 4)
    return image.reshape(-1)


class Dram:
    """Outputs of layers, each an array N C H W in its own type."""

    def __init__(self) -> None:
        self.values: dict[str, NDArray[Any]] = {}
        self._written: dict[str, NDArray[np.bool_]] = {}

    def make(self, layer: str, shape: Coordinates, dtype: Any) -> None:
        """Room for a layer's output."""
        self.values[layer] = np.zeros(shape, dtype)
        self._written[layer] = np.zeros(shape, np.bool_)

    def fill(self, layer: str, values: NDArray[Any]) -> None:
        """An input of the network."""
        self.values[layer] = values
        self._written[layer] = np.ones(values.shape, np.bool_)

    def read(self, layer: str, box: Box) -> NDArray[Any]:
        """Raises Fault for what nothing has written."""
        self._check(layer, box)
        if not self._written[layer][box.slices()].all():
            raise Fault(f"{box} of {layer!r} is loaded from DRAM before all of it is stored")
        return self.values[layer][box.slices()]

    def write(self, layer: str, box: Box, values: NDArray[Any]) -> None:
        """Store a box."""
        self._check(layer, box)
        if values.shape != box.shape or values.dtype != self.values[layer].dtype:
            raise Fault(f"{list(values.shape)} {values.dtype} values are stored as {box} of {layer!r}")
        self.values[layer][box.slices()] = values
        self._written[layer][box.slices()] = True

    def _check(self, layer: str, box: Box) -> None:
        if layer not in self.values:
            raise Fault(f"DRAM has no {layer!r}")
        shape = self.values[layer].shape
        if any(high >= extent for high, extent in zip(box.upper, shape, strict=True)):
            raise Fault(f"{box} of {layer!r} in DRAM, which has {list(shape)}")
