"""Tensors in files of raw 32-bit words without metadata (NETLIST 7.3)."""

from typing import TYPE_CHECKING, Any

from buda_emu.app.api.backend.enums import format_word
from buda_emu.app.api.backend.tensor_descs import ELEMENT_TYPES, PytorchTensorDesc, TilizedTensorDesc
from buda_emu.support.errors import HostError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def binarize_tensor(tensor: PytorchTensorDesc | TilizedTensorDesc, path: str) -> None:
    """Write to a file a host tensor's elements in row-major order, or the buffers of a tilized tensor one after the
    other, filled up to whole 32-bit words. Raises RuntimeError."""
    from buda_emu.app.api.backend.host_tensors import write_words

    data: NDArray[Any]
    if isinstance(tensor, TilizedTensorDesc):
        data = tensor.buffers()
    else:
        data = tensor.elements()
    try:
        write_words(path, data)
    except OSError as error:
        raise RuntimeError(f"binarize_tensor: {error}") from error


def debinarize_tensor(tensor: PytorchTensorDesc | TilizedTensorDesc, path: str) -> None:
    """Read a file that `binarize_tensor` wrote into fresh memory of a descriptor. Format and sizes are those of the
    descriptor's fields, and must fit the file. Raises RuntimeError."""
    import numpy as np

    from buda_emu.app.api.backend.host_tensors import read_words

    word = format_word(tensor.format)
    try:
        if isinstance(tensor, TilizedTensorDesc):
            raw = read_words(path, tensor.num_buffers * tensor.buf_size_bytes)
            packed = np.frombuffer(raw, np.uint8).reshape(tensor.num_buffers, tensor.buf_size_bytes).copy()
            tensor.adopt(packed, word)
            return
        if word not in ELEMENT_TYPES:
            raise HostError(f"a host tensor cannot have format {word}")
        dtype = np.dtype(ELEMENT_TYPES[word])
        raw = read_words(path, int(np.prod(tensor.shape)) * dtype.itemsize)
        tensor.adopt(np.frombuffer(raw, dtype).reshape(tensor.shape).copy(), word, tensor.dim)
    except (OSError, HostError) as error:
        raise RuntimeError(f"debinarize_tensor: {error}") from error
