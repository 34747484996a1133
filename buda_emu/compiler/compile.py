"""Compilation for inference, the first of three entry points. `train/compile_training.py` and
`generate/compile_programs.py` are the others.
"""

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack, cast

from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.generate.caches import Program
from buda_emu.compiler.generate.compile_programs import compile_programs
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words
from buda_emu.errors import HostError

_OF_OTHER_DOORS: Final = (
    "keeps", "loss", "optimizer", "learning_rate", "optimizer_options", "optimizer_df", "target", "microbatches",
    "activations_mib", "chip_softmax",
)  # fmt: skip
_STACK: Final = 4
"""From `_warn` over `_as_before` and `compile` to who called it."""


def compile(  # noqa: A001 - as be.compile
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    parameters: str | PathLike[str] | None = None,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> CompiledModel:
    """Compile a model for inference.

    `source`: path of an .onnx or .pt2 file, onnx.ModelProto, torch.nn.Module, ExportedProgram, or a function of JAX;
    `inputs`: example inputs, needed for a module or function, and for what an ONNX model leaves open (symbolic sizes,
    shapes that are inputs).
    `parameters`: the file that a torch module's parameters and buffers lie in, or those of a .pt2 file: .safetensors,
    its .index.json, a folder of both, or what torch.save wrote. The module may be made, and exported, under
    torch.device("meta"). They are read when the image is written, and never all in memory (docs/compile/compile.md).
    `options`, or its fields as keywords, which replace those of `options`: see CompileOptions.

    Keywords of a training (`loss` and what belongs to it), `keeps` and a mapping of Programs as `source` are
    deprecated here: `compile_training` and `compile_programs` take them.

    Raises UnsupportedError naming every operator that is not supported, with its count, and where this machine has not
    the memory; HostError for a file that holds no model and for an option whose value does not exist; TypeError for an
    option that does not exist.
    """
    given: dict[str, Any] = dict(words)
    older = {name: given.pop(name) for name in _OF_OTHER_DOORS if name in given}
    if older or isinstance(source, Mapping):
        if parameters is not None:
            raise HostError("compile: parameters: of a module that is compiled for inference")
        return _as_before(source, inputs, older, with_words(options, given))
    return _inference(source, inputs, Path(parameters) if parameters is not None else None, with_words(options, given))


@within_memory()
def _inference(
    source: Any, inputs: Sequence[Any] | None, parameters: Path | None, options: CompileOptions
) -> CompiledModel:
    compilation = Compilation.of(options)
    with compilation.reading(source):
        graph = read_model(source, inputs, parameters=parameters, sizes=options.sizes)
    return CompiledModel(*compilation.placed(graph), graph.origin, inputs)


def _as_before(
    source: Any, inputs: Sequence[Any] | None, older: dict[str, Any], options: CompileOptions
) -> CompiledModel:
    """The results of the other entry points, for callers of the old interface."""
    keeps, loss = older.pop("keeps", None), older.pop("loss", None)
    if keeps is not None or isinstance(source, Mapping):
        _warn("a mapping of Programs" if keeps is None else "`keeps`", "compile_programs")
        programs = cast("Mapping[str, Program]", source) if keeps is None else Program(source, inputs or (), keeps)
        return compile_programs(programs, options=options)
    _warn(", ".join(f"`{name}`" for name in ("loss", *older)), "compile_training")
    if loss is None:  # the others meant nothing without
        return _inference(source, inputs, None, options)
    from buda_emu.compiler.train.compile_training import compile_training

    return compile_training(source, inputs, loss=loss, options=options, **older)


def _warn(what: str, function: str) -> None:
    text = f"buda_emu.compile will not take {what} in a later version: call buda_emu.{function}"
    warnings.warn(text, DeprecationWarning, stacklevel=_STACK)
