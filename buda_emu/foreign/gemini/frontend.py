"""The front-end IR: the quantised network that a schedule computes (facts GEMINI 4, 6)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import Box, Coordinates, of_shape
from buda_emu.foreign.gemini.json_values import a_list, an_object, shown, texts, whole_numbers
from buda_emu.foreign.gemini.reader import decode
from buda_emu.foreign.gemini.stages import NETWORK, recognise_content
from buda_emu.support.errors import ScheduleError

WINDOWS: Final[Mapping[str, str]] = {"conv2d": "kernel_size", "max_pool2d": "pool_size", "avg_pool2d": "pool_size"}
"""Operations that look at a window, and the key that holds its height and width."""
ALL_CHANNELS: Final = ("conv2d", "dense")
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. Shapes are N C H W; a window of 1 x 1 where the operation has none. `content`: the object itself."""

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
        """Of its (first) operand for a box of its output: the range, clipped to the operand, and the padding around
        it (top, bottom, left, right)."""
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
        """All of its output."""
        return of_shape(self.output_shape)


@dataclass(frozen=True, slots=True)
class Network:
    """Layers by name, in the order of the file."""

    layers: Mapping[str, Layer]
    path: str = ""

    def operands(self, layer: Layer) -> list[str]:
        """Layers and network inputs that a layer reads: `previous_layer` without constants."""
        return [name for name in layer.previous if name in self.layers or is_input(name)]


def is_input(name: str) -> bool:
    """It names an input of the network."""
    return name.startswith("input")


def read_network(source: "str | os.PathLike[str] | Mapping[str, Any] | Network") -> Network:
    """`source`: path of .json or .json.gz, or the decoded object. Raises ScheduleError if it is not a front-end IR."""
    if isinstance(source, Network):
        return source
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    content: Any = decode(path) if path else source
    found = an_object(content)
    if not found:
        raise _wrong(path, "", f"a network is an object of layers, not {shown(content)}")
    stage = recognise_content(found)
    if stage not in (None, NETWORK):
        raise _wrong(path, "", stage.instead_of(NETWORK))
    return Network({str(name): _layer(path, str(name), item) for name, item in found.items()}, path)


def _wrong(path: str, layer: str, message: str) -> ScheduleError:
    where = f": layer {layer!r}" if layer else ""
    return ScheduleError(f"{path or 'front-end IR'}{where}: {message}")


def _layer(path: str, name: str, item: Any) -> Layer:
    content = an_object(item)
    if content is None:
        raise _wrong(path, name, f"a layer is an object, not {shown(item)}")
    operation = content.get("operation")
    if not isinstance(operation, str):
        raise _wrong(path, name, f"'operation' is a text, not {shown(operation)}")
    on_host = content.get("device") == "cpu"
    shapes = [_shape(path, name, content, key, on_host) for key in ("input_shape", "output_shape")]
    dtypes = [_texts(path, name, content, key) for key in ("input_dtype", "output_dtype")]
    if not shapes[1] or not dtypes[1] or not (shapes[0] or on_host):
        raise _wrong(path, name, "'input_shape', 'output_shape' and 'output_dtype' have an entry at least")
    window = WINDOWS.get(operation)
    height, width = _numbers(path, name, content, window, 2, 1) if window else (1, 1)
    down, right = _numbers(path, name, content, "stride", 2, 1) if window else (1, 1)
    a, b, c, d = _numbers(path, name, content, "padding", 4, 0) if window else (0, 0, 0, 0)
    return Layer(
        name=name,
        operation=operation,
        on_host=on_host,
        input_shapes=tuple(shapes[0]),
        output_shape=shapes[1][0],
        input_dtype=dtypes[0],
        output_dtype=dtypes[1][0],
        previous=_texts(path, name, content, "previous_layer"),
        window=(height, width),
        stride=(down, right),
        padding=(a, b, c, d),
        content=content,
    )


def _texts(path: str, name: str, content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = texts(content.get(key))
    if found is None:
        raise _wrong(path, name, f"{key!r} is a list of texts, not {shown(content.get(key))}")
    return tuple(found)


def _numbers(path: str, name: str, content: Mapping[str, Any], key: str, count: int, least: int) -> tuple[int, ...]:
    found = whole_numbers(content.get(key), count, least, _MOST)
    if found is None:
        said = f"{key!r} is a list of {count} numbers of {least} or more, not {shown(content.get(key))}"
        raise _wrong(path, name, said)
    return tuple(found)


def _shape(path: str, name: str, content: Mapping[str, Any], key: str, loose: bool) -> list[Coordinates]:
    """Shapes with four extents; what the host computes may have others, which nothing looks at."""
    shapes = [whole_numbers(one, None, 1, _MOST) for one in a_list(content.get(key)) or [None]]
    found: list[Coordinates] = []
    for extents in shapes:
        if extents is None:
            raise _wrong(path, name, f"{key!r} is a list of shapes, not {shown(content.get(key))}")
        if len(extents) != 4 and not loose:
            raise _wrong(path, name, f"{key!r}: a shape is [N, C, H, W], not {shown(extents)}")
        a, b, c, d = (*extents[:4], 1, 1, 1, 1)[:4]
        found.append((a, b, c, d))
    return found
