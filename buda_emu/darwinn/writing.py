"""Trees of plain data to packages, page aligned as the compiler aligns them (DARWINN 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.darwinn import flexbuffer, tflite
from buda_emu.darwinn.container import CUSTOM_CODE
from buda_emu.darwinn.document import load
from buda_emu.darwinn.flatbuffer.table import from_plain
from buda_emu.darwinn.flatbuffer.write import write
from buda_emu.darwinn.idl import IDENTIFIER, PAGE, Executable, Layer, MultiExecutable, PackageTable
from buda_emu.darwinn.rules.layers import VARIABLE_SUFFIX
from buda_emu.errors import HostError, UnsupportedError


def build(tree: Mapping[str, Any]) -> bytes:
    """A bare package from a tree as `Package.to_dict(data=True)` gives it; what is left out has its default.

    Raises HostError, with table and field, for a malformed tree, UnsupportedError without the `flatbuffers` library.
    """
    rest = dict(tree)
    executables: Sequence[Any] | None = rest.pop("executables", None)
    try:
        if executables is not None:
            if "serialized_multi_executable" in rest:
                raise ValueError("Package: executables and serialized_multi_executable exclude each other")
            serialized = tuple(write(from_plain(Executable, item), page=PAGE) for item in executables)
            multi = MultiExecutable(serialized_executables=serialized)
            rest["serialized_multi_executable"] = write(multi, page=PAGE)
        return write(from_plain(PackageTable, rest), IDENTIFIER, PAGE)
    except (TypeError, ValueError) as error:
        raise HostError(f"this is not a tree of a package: {error}") from None


def wrap(
    package: bytes, *, version: int = 0, execution_preference: int = -1, chips: Sequence[int] | None = None
) -> bytes:
    """A `.tflite` with one custom operator that holds a bare package, as the compiler writes it (DARWINN 1).

    Its inputs and outputs are the layers of the package's main executable, states left out. Raises PackageError for
    what is not a package.
    """
    main = load(package).main
    states = {f"{layer.name}{VARIABLE_SUFFIX}" for layer in main.inputs}
    inputs = [layer for layer in main.inputs if f"{layer.name}{VARIABLE_SUFFIX}" not in _names(main.outputs)]
    outputs = [layer for layer in main.outputs if layer.name not in states]
    values: dict[str, flexbuffer.Plain] = {"1": version, "4": package, "5": execution_preference}
    if chips is not None:
        values |= {"6": tuple(chips), "7": ()}
    numbers = tuple(range(len(inputs) + len(outputs)))
    ends = numbers[: len(inputs)], numbers[len(inputs) :]
    operator = tflite.Operator(inputs=ends[0], outputs=ends[1], custom_options=flexbuffer.write_map(values))
    graph = tflite.SubGraph(
        tensors=tuple(_tensor(layer) for layer in (*inputs, *outputs)),
        inputs=ends[0],
        outputs=ends[1],
        operators=(operator,),
    )
    code = tflite.OperatorCode(
        deprecated_builtin_code=tflite.CUSTOM, custom_code=CUSTOM_CODE, builtin_code=tflite.CUSTOM
    )
    model = tflite.Model(version=3, operator_codes=(code,), subgraphs=(graph,), buffers=(tflite.Buffer(),))
    return write(model, tflite.IDENTIFIER)


def _names(layers: Sequence[Layer]) -> set[str | None]:
    return {layer.name for layer in layers}


def _tensor(layer: Layer) -> tflite.Tensor:
    """A layer as the host's model has it."""
    kinds = {name: number for number, name in tflite.TENSOR_TYPES.items()}
    element, numerics = layer.element, layer.numerics
    if element is None or element.dtype not in kinds:
        raise UnsupportedError(
            f"layer {layer.name!r}: a TFLite model has no {element.name if element else layer.data_type}"
        )
    quantization = None
    if numerics is not None:
        zero = numerics.zero_point - (1 << (8 * element.size - 1) if element.signed else 0)
        quantization = tflite.Quantization(scale=(numerics.dequantization_factor,), zero_point=(zero,))
    shape = (layer.execution_count_per_inference, layer.y_dim, layer.x_dim, layer.z_dim)
    return tflite.Tensor(shape=shape, type=kinds[element.dtype], name=layer.name, quantization=quantization)
