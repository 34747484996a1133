"""The source of a compiled model inside of its image: the imported graph and the options, so that `sweep` can place the
model again for another board.

`compile` writes it with `source_files`, and `compile_again` reads it. Cycles do not depend on the values of parameters,
so only type and shape of large ones are written here, and `compile_again` makes values up; the image holds the real
ones in the layout of its queues, which another board may not have.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from os import PathLike
from typing import Any, Final, cast

import numpy as np

from buda_emu.compiler.compilation import Compilation, CompileOptions, within_memory
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.graph import Array, Graph, Node
from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.ir.text import Ir, IrFile, parse_file, print_file
from buda_emu.compiler.ir.values import Arrays, IrError, digest
from buda_emu.compiler.ir.verify import problems
from buda_emu.emulator.image.device_image import DeviceImage
from buda_emu.emulator.image.load import load_image
from buda_emu.emulator.inputs.numpy_files import npy_of
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.strict_json import read_object

GRAPH: Final = "model.ir"
OPTIONS: Final = "options.json"
_ARRAYS: Final = "arrays"
_IMPORTED: Final = "import"
"""The name of the pass that the file of the graph was written after: the import alone."""
_WRITTEN_OPTIONS: Final = ("df", "fidelity", "acc_df", "mixed", "fuse", "effort", "objective", "chips", "microbatch")
_MOST_ELEMENTS: Final = 1 << 14
"""Elements up to which the values of an array are written, whatever they are."""
_FEW_VALUES: Final = 256
"""Different values among the first elements up to which an array of any size is written: masks, tables of places,
ones."""
_MADE_UP: Final = "made_up"
_FIX: Final = "compile the model again"
_SPREAD: Final = 0.02
"""Standard deviation of parameters that are made up."""


def source_files(graph: Graph, options: CompileOptions) -> dict[str, bytes]:
    """Return the files that `compile` puts into an image, by name, as `DeviceImage.source_file` reads them. `graph` is
    the imported one, before a pass changes it. A graph that has no form as text, such as one whose parameters stay in
    files, has none."""
    made_up: dict[str, Any] = {}
    outline = Graph(graph.name)
    outline.inputs = list(graph.inputs)
    outline.outputs = list(graph.outputs)
    for node in graph:
        if node.op == "constant" and _is_made_up(node.value):
            made_up[node.name] = [str(node.value.dtype), list(node.value.shape)]
            outline.nodes[node.name] = replace(node, attrs={**node.attrs, "value": np.zeros((), node.value.dtype)})
        else:
            outline.nodes[node.name] = node
    try:
        text, arrays = print_file(IrFile(_IMPORTED, (Ir(FRONT, outline),)))
        settings = json.dumps({**_options_as_json(options), _MADE_UP: made_up}, indent=1)
    except (IrError, TypeError):
        return {}
    files = {GRAPH: text.encode(), OPTIONS: settings.encode()}
    return files | {f"{_ARRAYS}/{name}.npy": _npy_bytes(array) for name, array in arrays.items()}


def _is_made_up(value: Any) -> bool:
    """Return whether the values of a constant are left out, to be made up later: it is a large array of many different
    numbers, as parameters are."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("Array", value)
    if array.dtype.kind != "f" or array.size <= _MOST_ELEMENTS:
        return False
    return len(np.unique(array.reshape(-1)[:_MOST_ELEMENTS])) > _FEW_VALUES


def _options_as_json(options: CompileOptions) -> dict[str, Any]:
    """Return the options that are written into an image, by name. A value with rules (`mixed`) makes `json.dumps` raise
    TypeError."""
    return {name: getattr(options, name) for name in _WRITTEN_OPTIONS}


def _npy_bytes(array: Array) -> bytes:
    """Return an array as the bytes of a .npy file."""
    stream = BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


@within_memory()
def compile_again(path: str | PathLike[str], board: str) -> CompiledModel:
    """Compile the model of an image for a board, with the other options that it was compiled with. Parameters may be
    made up, so the result is for the time model only. Raises HostError for an image without its source or with a broken
    one, IrError for one that breaks a rule, and what `compile` raises."""
    image = load_image(path, allow_pickle=True)
    if not image.has_source:
        raise HostError(
            f"{path} does not hold its model, so it has its places for {image.metadata.arch} alone: compile the model "
            f"with --board {board or 'NAME'}"
        )
    place = f"{image.path}: source/{OPTIONS}"
    settings = read_object(image.source_file(OPTIONS), place, "the options of a compiled model", _FIX)
    made_up = _parse_parameters(settings.pop(_MADE_UP, None), place)
    unknown = sorted(settings.keys() - set(_WRITTEN_OPTIONS))
    if unknown:
        raise HostError(f"{place}: this version has no option {unknown[0]!r}")
    compilation = Compilation.of(CompileOptions(board=board, **settings))
    form = _read_form(image, made_up)
    for problem in problems(form, compilation.device.arch.name):
        raise IrError(f"{form.locate(problem, image.path)} (source/{GRAPH})")
    try:
        return CompiledModel(*compilation.place(form.graph))
    except (BudaError, OSError, MemoryError):
        raise
    except Exception as error:  # passes believe what the verifier does not ask, and a stranger's file may say anything
        raise IrError(f"{image.path}: source/{GRAPH}: a pass failed on it ({error!r})") from error


def _parse_parameters(entries: Any, place: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return type and shape of the parameters that are made up, by name. Raises HostError for other content."""
    if not isinstance(entries, dict):
        raise HostError(f"{place}: {_MADE_UP}: not an object: {_FIX}")
    parameters: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, entry in cast("dict[str, Any]", entries).items():
        match entry:
            case [("float16" | "float32" | "float64") as dtype, [*shape]] if all(type(size) is int for size in shape):
                parameters[name] = dtype, tuple(shape)
            case _:
                raise HostError(f"{place}: {_MADE_UP}: {name}: no type and shape of numbers: {_FIX}")
    return parameters


def _read_form(image: DeviceImage, made_up: Mapping[str, tuple[str, tuple[int, ...]]]) -> Ir:
    """Return the imported graph that an image holds. Raises HostError for one that is broken."""
    arrays: Arrays = {}
    for name in image.source_names(_ARRAYS):
        stem = name.removeprefix(f"{_ARRAYS}/").removesuffix(".npy")
        arrays[stem] = npy_of(f"{image.path}: source/{name}", image.source_file(name))
        if digest(arrays[stem]) != stem:
            raise HostError(f"{image.path}: source/{name} is another array than was saved: {_FIX}")
    file = parse_file(image.source_file(GRAPH).decode("utf-8", "replace"), arrays, f"{image.path}: source/{GRAPH}")
    if [form.level for form in file.forms] != [FRONT]:
        raise HostError(f"{file.path}: not an imported model: {_FIX}")
    (form,) = file.forms
    graph = form.graph
    stream = np.random.default_rng(0)
    for name, (dtype, shape) in made_up.items():
        node = graph.nodes.get(name)
        if node is None or node.op != "constant" or shape != node.shape:
            raise HostError(f"{file.path}: there is no constant {name!r} of shape {list(shape)}: {_FIX}")
        graph.nodes[name] = _fill_with_numbers(node, dtype, stream)
    return form


def _fill_with_numbers(node: Node, dtype: str, stream: np.random.Generator) -> Node:
    """Return a constant with small normal numbers for values."""
    values = _SPREAD * stream.standard_normal(node.shape, np.float32)
    return replace(node, attrs={**node.attrs, "value": values.astype(dtype)})
