"""Read the front-end IR: the quantised network that a schedule computes (facts GEMINI 4, 6)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import Box, Coordinates, box_of_shape
from buda_emu.foreign.gemini.json_values import as_integers, as_list, as_object, as_texts, describe
from buda_emu.foreign.gemini.reader import decode
from buda_emu.foreign.gemini.stages import NETWORK, recognise_content
from buda_emu.support.errors import ScheduleError

WINDOWS: Final[Mapping[str, str]] = {"conv2d": "kernel_size", "max_pool2d": "pool_size", "avg_pool2d": "pool_size"}
"""Operations that look at a window, and the key that holds its height and width."""
ALL_CHANNELS: Final = ("conv2d", "dense")
_MOST = 1 << 31  # 32 bits: larger sizes are mistakes


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the network. Shapes are N C H W; an operation without a window has one of 1 x 1. `content` is the
    layer's JSON object."""

    name: str
    operation: str
    on_host: bool
    input_shapes: tuple[Coordinates, ...]
    output_shape: Coordinates
    input_dtype: tuple[str, ...]
    output_dtype: str
    previous: tuple[str, ...]
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]  # top, bottom, left, right
    content: Mapping[str, Any] = field(repr=False, compare=False)

    def needs(self, box: Box) -> tuple[Box, tuple[int, int, int, int]]:
        """Return the range of the first operand that a box of the output needs, clipped to the operand, and the padding
        around it (top, bottom, left, right)."""
        (n0, c0, h0, w0), (n1, c1, h1, w1) = box
        _, channels, height, width = self.input_shapes[0]
        if self.operation in ALL_CHANNELS:
            c0 = 0
            c1 = channels - 1
        top, _bottom, left, _right = self.padding
        rows = (h0 * self.stride[0] - top, h1 * self.stride[0] - top + self.window[0] - 1)
        columns = (w0 * self.stride[1] - left, w1 * self.stride[1] - left + self.window[1] - 1)
        lower = (n0, c0, max(rows[0], 0), max(columns[0], 0))
        upper = (n1, c1, min(rows[1], height - 1), min(columns[1], width - 1))
        around = (max(-rows[0], 0), max(rows[1] - height + 1, 0), max(-columns[0], 0), max(columns[1] - width + 1, 0))
        return Box(lower, upper), around

    @property
    def box(self) -> Box:
        """The box of the whole output."""
        return box_of_shape(self.output_shape)


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of a network by name, in the order of the file."""

    layers: Mapping[str, Layer]
    path: str = ""

    def operands(self, layer: Layer) -> list[str]:
        """Return the layers and network inputs that a layer reads: `previous_layer` without constants."""
        return [name for name in layer.previous if name in self.layers or is_input(name)]


def is_input(name: str) -> bool:
    """Return whether the name is that of an input of the network."""
    return name.startswith("input")


def read_network(source: "str | os.PathLike[str] | Mapping[str, Any] | Network") -> Network:
    """Read a network from the path of a .json or .json.gz file, or from the decoded object. Raises ScheduleError if it
    is not a front-end IR."""
    if isinstance(source, Network):
        return source
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
    else:
        path = ""
    content: Any = decode(path) if path else source
    layers = as_object(content)
    if not layers:
        raise _network_error(path, "", f"a network is an object of layers, not {describe(content)}")
    stage = recognise_content(layers)
    if stage not in (None, NETWORK):
        raise _network_error(path, "", stage.instead_of(NETWORK))
    return Network({str(name): _read_layer(path, str(name), layer) for name, layer in layers.items()}, path)


def _network_error(path: str, layer: str, message: str) -> ScheduleError:
    """Return the error for a network that cannot be read; `layer` names the faulty layer, "" for none."""
    location = f": layer {layer!r}" if layer else ""
    return ScheduleError(f"{path or 'front-end IR'}{location}: {message}")


def _read_layer(path: str, name: str, entry: Any) -> Layer:
    """Return a layer from its JSON object. Raises ScheduleError, with the layer's name, for a key that is missing
    or malformed."""
    content = as_object(entry)
    if content is None:
        raise _network_error(path, name, f"a layer is an object, not {describe(entry)}")
    operation = content.get("operation")
    if not isinstance(operation, str):
        raise _network_error(path, name, f"'operation' is a text, not {describe(operation)}")
    on_host = content.get("device") == "cpu"
    shapes = [_read_shapes(path, name, content, key, on_host) for key in ("input_shape", "output_shape")]
    dtypes = [_read_texts(path, name, content, key) for key in ("input_dtype", "output_dtype")]
    if not shapes[1] or not dtypes[1] or not (shapes[0] or on_host):
        raise _network_error(path, name, "'input_shape', 'output_shape' and 'output_dtype' have an entry at least")
    window_key = WINDOWS.get(operation)
    sizes: tuple[int, ...] = (1, 1)
    steps: tuple[int, ...] = (1, 1)
    paddings: tuple[int, ...] = (0, 0, 0, 0)
    if window_key:
        sizes = _read_numbers(path, name, content, window_key, 2, 1)
        steps = _read_numbers(path, name, content, "stride", 2, 1)
        paddings = _read_numbers(path, name, content, "padding", 4, 0)
    return Layer(
        name=name,
        operation=operation,
        on_host=on_host,
        input_shapes=tuple(shapes[0]),
        output_shape=shapes[1][0],
        input_dtype=dtypes[0],
        output_dtype=dtypes[1][0],
        previous=_read_texts(path, name, content, "previous_layer"),
        window=(sizes[0], sizes[1]),
        stride=(steps[0], steps[1]),
        padding=(paddings[0], paddings[1], paddings[2], paddings[3]),
        content=content,
    )


def _read_texts(path: str, name: str, content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the list of strings under a key of a layer. Raises ScheduleError for anything else."""
    words = as_texts(content.get(key))
    if words is None:
        raise _network_error(path, name, f"{key!r} is a list of texts, not {describe(content.get(key))}")
    return tuple(words)


def _read_numbers(
    path: str, name: str, content: Mapping[str, Any], key: str, count: int, least: int
) -> tuple[int, ...]:
    """Return the list under a key of a layer: `count` integers of `least` or more. Raises ScheduleError for
    anything else."""
    values = as_integers(content.get(key), count, least, _MOST)
    if values is None:
        problem = f"{key!r} is a list of {count} numbers of {least} or more, not {describe(content.get(key))}"
        raise _network_error(path, name, problem)
    return tuple(values)


def _read_shapes(path: str, name: str, content: Mapping[str, Any], key: str, loose: bool) -> list[Coordinates]:
    """Return the shapes under a key of a layer. A shape has four extents; with `loose`, for layers of the host, it
    may have others and is padded or cut, since nothing looks at it. Raises ScheduleError for anything else."""
    shapes = [as_integers(shape, None, 1, _MOST) for shape in as_list(content.get(key)) or [None]]
    coordinates: list[Coordinates] = []
    for extents in shapes:
        if extents is None:
            raise _network_error(path, name, f"{key!r} is a list of shapes, not {describe(content.get(key))}")
        if len(extents) != 4 and not loose:
            raise _network_error(path, name, f"{key!r}: a shape is [N, C, H, W], not {describe(extents)}")
        a, b, c, d = (*extents[:4], 1, 1, 1, 1)[:4]
        coordinates.append((a, b, c, d))
    return coordinates
