"""Two small co-compiled packages with the models they are made of, for docs, tests and first steps.

Everything is made here: `build` writes the packages, and noise stands for instructions, as nobody outside of Google
can write real ones. The models are real: small enough to read, and the packages hold their weights.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.linking import build, wrap

_TOKEN: Final = 0xC0C0_A7E5_0000_0001  # any number but 0, the same in both executables
_SCALES: Final = {"image": 1 / 128, "weights": 1 / 64, "grid": 1 / 16, "scores": 1 / 4}
_ZEROS: Final = {"image": 128, "weights": 120, "grid": 0, "scores": 100}
_SCORES = 10  # classes
_KERNEL = 3  # width and height of the convolution
_COLOURS = 3  # channels of the image
_FIRST_FIELD = 70  # bits
_BUNDLE = 128  # bits


@dataclass(frozen=True, slots=True)
class Example:
    """A model of a convolution and a fully connected layer: the image has `size` x `size` x 3 values, its grid
    `channels` channels."""

    name: str
    size: int
    channels: int
    cycles: int

    @property
    def grid(self) -> int:
        """The number of rows and of columns of the grid."""
        return self.size // 2

    def noise(self, label: str, count: int) -> bytes:
        """Return `count` bytes of noise that are the same on every machine. `label` tells different noises of an
        example apart."""
        blocks = (hashlib.sha256(f"{self.name}:{label}:{n}".encode()).digest() for n in range(count // 32 + 1))
        return b"".join(blocks)[:count]

    def constants(self) -> dict[str, bytes]:
        """Return weights and biases by the names of their tensors."""
        biases = {"conv/bias": self.channels, "scores/bias": _SCORES}
        return {
            "conv/weights": self.noise("conv", self.channels * _KERNEL * _KERNEL * _COLOURS),
            "scores/weights": self.noise("scores", _SCORES * self.grid * self.grid * self.channels),
        } | {
            name: b"".join(int.to_bytes(byte * 8 - 1024, 4, "little", signed=True) for byte in self.noise(name, count))
            for name, count in biases.items()
        }

    def parameters(self) -> bytes:
        """Return the weights and biases as they stay on the device, padded to a multiple of 64 bytes."""
        data = b"".join(self.constants().values())
        return data + bytes(-len(data) % 64)


EXAMPLES: Final = (Example("edges", 16, 8, 6_000), Example("spots", 32, 16, 90_000))


def example_files() -> Mapping[str, bytes]:
    """Return file contents by name: `NAME_edgetpu.tflite`, and `NAME.tflite`, the model that it is made of.

    Raises UnsupportedError without the `flatbuffers` library.
    """
    files: dict[str, bytes] = {}
    for example in EXAMPLES:
        files[f"{example.name}_edgetpu.tflite"] = wrap(build(tree(example)), chips=(18,))
        files[f"{example.name}.tflite"] = model(example)
    return files


def tree(example: Example) -> dict[str, Any]:
    """Return an example's package as the tree that `build` takes: an executable that caches the parameters, and one
    that runs."""
    grid = example.grid * example.grid * example.channels
    layers = {
        "input_layers": [
            _layer_tree("image", example.size, example.size, _COLOURS, example.size * example.size * _COLOURS)
        ],
        "output_layers": [
            _layer_tree("grid", example.grid, example.grid, example.channels, grid)
            | _output_part(_rows_in_two_tiles(example)),
            _layer_tree("scores", 1, 1, _SCORES, 12) | _output_part(None),
        ],
    }
    image = example.size * example.size * _COLOURS
    transfers = [
        _chunk_hint(),
        _transfer_hint("INPUT_ACTIVATION", "image", 0, image // 2),
        _transfer_hint("INPUT_ACTIVATION", "image", image // 2, image - image // 2),
        _transfer_hint("OUTPUT_ACTIVATION", "grid", 0, grid),
        _transfer_hint("OUTPUT_ACTIVATION", "scores", 0, 12),
        _interrupt_hint(),
    ]
    fields = [
        ("PARAMETER", None),
        ("INPUT_ACTIVATION", "image"),
        ("OUTPUT_ACTIVATION", "grid"),
        ("OUTPUT_ACTIVATION", "scores"),
    ]
    runs = _executable_tree(example, "EXECUTION_ONLY", "model", fields, 4096) | layers
    runs |= {"dma_hints": {"hints": transfers, "fully_deterministic": True}, "estimated_cycles_64bit": example.cycles}
    parameters = example.parameters()
    caches = _executable_tree(example, "PARAMETER_CACHING", "Unknown", fields[:1], 512) | {"parameters": parameters}
    hints = [_chunk_hint(), _transfer_hint("PARAMETER", None, 0, len(parameters)), _interrupt_hint()]
    caches |= {"dma_hints": {"hints": hints, "fully_deterministic": True}}
    return {
        "min_runtime_version": 13,
        "compiler_version": "buda-emu example",
        "model_identifier": example.name,
        "signature": b"",
        "executables": [runs, caches],
    }


def _executable_tree(
    example: Example, kind: str, name: str, fields: Sequence[tuple[str, str | None]], size: int
) -> dict[str, Any]:
    """Return the tree of an executable of type `kind` with one chunk of `size` bytes of noise. In the chunk, both
    halves of a base address are set to 0 and declared as fields for each of `fields`: a kind of address, and a
    layer's name or None."""
    code = bytearray(example.noise(kind, size))
    offsets: list[dict[str, Any]] = []
    for number, (address, layer) in enumerate(fields):
        for half, position in enumerate(("LOWER_32BIT", "UPPER_32BIT")):
            bit = _FIRST_FIELD + _BUNDLE * (2 * number + half)
            first, shift = divmod(bit, 8)
            word = int.from_bytes(code[first : first + 5], "little") & ~(0xFFFF_FFFF << shift)
            code[first : first + 5] = word.to_bytes(5, "little")
            offsets.append({"meta": _meta_tree(address, layer) | {"position": position}, "offset_bit": bit})
    return {
        "name": name,
        "batch_size": 1,
        "chip": "beagle",
        "type": kind,
        "parameter_caching_token": _TOKEN,
        "instruction_bitstreams": [{"bitstream": bytes(code), "field_offsets": offsets}],
        "parameters": b"",
    }


def _meta_tree(address: str, layer: str | None) -> dict[str, Any]:
    """Return the base address that a field or transfer is about, and the name of its layer."""
    return {"desc": f"BASE_ADDRESS_{address}", "name": layer or ""}


def _transfer_hint(address: str, layer: str | None, offset: int, size: int) -> dict[str, Any]:
    """Return the DMA hint of a transfer of some bytes of a layer, or of the parameters, for a base address."""
    hint = {"meta": _meta_tree(address, layer), "offset_in_bytes": offset, "size_in_bytes": size}
    if address.startswith("OUTPUT"):
        direction = "OUTFEED"
    else:
        direction = "INFEED"
    return {"any_hint_type": "DmaDescriptorHint", "any_hint": hint, "direction": direction}


def _chunk_hint() -> dict[str, Any]:
    """Return the DMA hint that sends the only chunk of instructions."""
    return {"any_hint_type": "InstructionHint", "any_hint": {"instruction_chunk_index": 0}}


def _interrupt_hint() -> dict[str, Any]:
    """Return the DMA hint of the interrupt that ends a run."""
    return {"any_hint_type": "InterruptHint", "any_hint": {"type": "SCALAR_CORE_INT_0"}, "direction": "OUTFEED"}


def _layer_tree(name: str, y: int, x: int, z: int, size: int) -> dict[str, Any]:
    """Return the tree of an input of y * x * z values that takes `size` bytes."""
    numerics = {"zero_point": _ZEROS[name], "dequantization_factor": _SCALES[name]}
    return {
        "name": name,
        "y_dim": y,
        "x_dim": x,
        "z_dim": z,
        "size_bytes": size,
        "numerics": numerics,
        "any_layer_type": "InputLayer",
        "any_layer": {},
    }


def _output_part(layout: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the part of a layer's tree that makes it an output; `layout` is None for a 1-D output."""
    return {"any_layer_type": "OutputLayer", "any_layer": {"layout": layout}}


def _rows_in_two_tiles(example: Example) -> dict[str, list[int]]:
    """Return the grid's layout in two tiles: its right half lies after its left half."""
    half = example.grid // 2
    local = [x % half * example.channels for x in range(example.grid)]
    return {
        "y_coordinate_to_linear_tile_id_map": [0] * example.grid,
        "x_coordinate_to_linear_tile_id_map": [x // half for x in range(example.grid)],
        "linearized_tile_byte_offset": [0, example.grid * half * example.channels],
        "x_coordinate_to_local_byte_offset": local,
        "y_coordinate_to_local_y_offset": list(range(example.grid)),
        "x_coordinate_to_local_y_row_size": [half * example.channels] * example.grid,
    }


def model(example: Example) -> bytes:
    """Return the uncompiled model as the bytes of a `.tflite`."""
    grid = example.grid
    names = ("image", "conv/weights", "conv/bias", "grid", "scores/weights", "scores/bias", "scores")
    shapes = (
        (1, example.size, example.size, _COLOURS),
        (example.channels, _KERNEL, _KERNEL, _COLOURS),
        (example.channels,),
        (1, grid, grid, example.channels),
        (_SCORES, grid * grid * example.channels),
        (_SCORES,),
        (1, _SCORES),
    )
    constants = example.constants()
    buffers = [tflite.Buffer(), *(tflite.Buffer(data=data) for data in constants.values())]
    places = {name: number + 1 for number, name in enumerate(constants)}
    types = {name: number for number, name in tflite.TENSOR_TYPES.items()}
    tensors = tuple(
        tflite.Tensor(
            shape, types["int32" if "bias" in name else "uint8"], places.get(name, 0), name, _quantization(name)
        )
        for name, shape in zip(names, shapes, strict=True)
    )
    conv = tflite.Operator(0, (0, 1, 2), (3,), 1, tflite.ConvOptions(stride_w=2, stride_h=2, act=1))
    dense = tflite.Operator(1, (3, 4, 5), (6,), 8, tflite.FullyConnectedOptions())
    graph = tflite.SubGraph(tensors, (0,), (3, 6), (conv, dense))
    codes = tuple(tflite.OperatorCode(code, None, 1, code) for code in (3, 9))
    return write(tflite.Model(3, codes, (graph,), example.name, tuple(buffers)), tflite.IDENTIFIER)


def _quantization(name: str) -> tflite.Quantization:
    """Return the quantisation of the model's tensor `name`: a bias has the product of the scales of input and
    weights."""
    if name.endswith("bias"):
        if name.startswith("conv"):
            source = "image"
        else:
            source = "grid"
        return tflite.Quantization(scale=(_SCALES[source] * _SCALES["weights"],), zero_point=(0,))
    kind = "weights" if name.endswith("weights") else name
    return tflite.Quantization(scale=(_SCALES[kind],), zero_point=(_ZEROS[kind],))
