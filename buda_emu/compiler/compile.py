"""Compilation for inference, the first of three entry points. `train/compile_training.py` and
`generate/programs.py` are the others.
"""

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack, cast

from buda_emu.compiler.compilation import Compilation, CompileOptions, OptionWords, with_words, within_memory
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.generate.programs import Program, compile_programs
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.text import IrFile, read_ir
from buda_emu.compiler.ir.values import IrError
from buda_emu.compiler.pipeline import known
from buda_emu.support.errors import BudaError, HostError, InternalError

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
    keeps = older.pop("keeps", None)
    loss = older.pop("loss", None)
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


_PERHAPS_A_BUG: Final = "if the file was not edited, this is a bug"


@within_memory()
def compile_until(
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    stop_after: str,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> IrFile:
    """What stands after a pass, to look at or to write with `write_ir`. Options as `compile` takes them. Raises
    HostError for a name that no pass has, and what `compile` raises."""
    given = with_words(options, words, "compile_until")
    compilation = Compilation.of(given)
    with compilation.memory.reading(source):
        graph = read_model(source, inputs, sizes=given.sizes)
    return compilation.stopped(graph, known(stop_after, "stop_after"))


@within_memory()
def compile_from(
    path: str | Path, *, options: CompileOptions | None = None, **words: Unpack[OptionWords]
) -> CompiledModel:
    """A model of an IR file: the passes after the one that it was written after. Of ops on tiles the file says itself
    which architecture and formats they are for. Raises IrError for a file that is not an IR, breaks a rule of its
    level, or gives a netlist that is refused, and what `compile` raises."""
    compilation = Compilation.of(with_words(options, words, "compile_from"))
    file = read_ir(Path(path))
    try:
        compiled = CompiledModel(*compilation.resumed(file))
        compiled.netlist  # noqa: B018 - the checker's word, which is kept
    except InternalError as error:
        raise IrError(f"{path}: invalid IR: {error}\n{_PERHAPS_A_BUG}") from error
    except IrError:
        raise
    except HostError as error:  # such as a pass that takes another level
        raise IrError(f"{path}: {error}") from None
    except (BudaError, OSError, MemoryError):
        raise
    except Exception as error:  # passes believe what the verifier does not ask, and an edited file may say anything
        raise IrError(
            f"{path}: invalid IR: a pass after {file.after} failed on it ({error!r})\n{_PERHAPS_A_BUG}"
        ) from error
    return compiled
