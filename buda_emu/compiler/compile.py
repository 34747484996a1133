"""Compilation for inference, the first of three entry points. The others are `train/compile_training.py` and
`generate.py`.
"""

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack, cast

from buda_emu.compiler.compilation import Compilation, CompileOptions, OptionWords, with_words, within_memory
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.generate import Program, compile_programs
from buda_emu.compiler.graph.examples import example_inputs, example_sequence, examples_in_order
from buda_emu.compiler.image_source import source_files
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.text import IrFile, read_ir
from buda_emu.compiler.ir.values import IrError
from buda_emu.compiler.pipeline import require_pass_name
from buda_emu.support.errors import BudaError, HostError, InternalError
from buda_emu.support.moved import REMOVED_IN

_KEYWORDS_OF_OTHER_FUNCTIONS: Final = (
    "keeps", "loss", "optimizer", "learning_rate", "optimizer_options", "optimizer_df", "target", "microbatches",
    "activations_mib", "chip_softmax",
)  # fmt: skip
_STACK: Final = 4
"""Frames from `_warn` over `_compile_old_interface` and `compile` to the caller, who is the one to warn."""


def compile(  # noqa: A001 - as be.compile
    source: Any,
    inputs: Any = None,
    *,
    parameters: str | PathLike[str] | None = None,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> CompiledModel:
    """Compile a model for inference.

    `source`: path of an .onnx or .pt2 file, onnx.ModelProto, torch.nn.Module, ExportedProgram, or a function of JAX;
    `inputs`: example inputs, a tuple of arrays, a single array, or a dict by the names of the inputs; needed for a
    module or function, and for what an ONNX model leaves open (symbolic sizes, shapes that are inputs). In a dict for a
    torch module, values that are no tensors (`use_cache=False`) are constants of the model.
    `parameters`: path of the parameters and buffers of a torch module or .pt2 file: a .safetensors file, its
    .index.json, a folder of both, or a file that torch.save wrote. The module may be made, and exported, under
    torch.device("meta"). They are read when the image is written, and never all in memory (docs/compile/compile.md).
    `options`, or its fields as keywords, which replace those of `options`: see CompileOptions.

    Keywords of a training (`loss` and what belongs to it), `keeps` and a mapping of Programs as `source` are
    deprecated here: `compile_training` and `compile_programs` take them.

    Raises UnsupportedError naming every operator that is not supported, with its count, and where this machine has not
    the memory; HostError for a file that holds no model and for an option whose value does not exist; TypeError for an
    option that does not exist.
    """
    option_words: dict[str, Any] = dict(words)
    older_words = {name: option_words.pop(name) for name in _KEYWORDS_OF_OTHER_FUNCTIONS if name in option_words}
    if older_words or _are_programs(source):
        if parameters is not None:
            raise HostError("compile: parameters: of a module that is compiled for inference")
        return _compile_old_interface(source, inputs, older_words, with_words(options, option_words))
    return _compile_inference(
        source, inputs, Path(parameters) if parameters is not None else None, with_words(options, option_words)
    )


def _are_programs(source: Any) -> bool:
    """Return whether a source is a mapping of Programs, or an empty mapping; a mapping of anything else is no model."""
    if not isinstance(source, Mapping):
        return False
    return all(isinstance(program, Program) for program in cast("Mapping[Any, Any]", source).values())


@within_memory()
def _compile_inference(source: Any, inputs: Any, parameters: Path | None, options: CompileOptions) -> CompiledModel:
    """Import a model, place it and return it compiled, as `compile` does for its own arguments. Raises UnsupportedError
    for what is not supported or beyond the memory limit, HostError for a model that cannot be read."""
    compilation = Compilation.of(options)
    examples = example_inputs(inputs)
    with compilation.reading(source):
        graph = read_model(source, examples, parameters=parameters, sizes=options.sizes)
    in_order = examples_in_order(examples, graph)
    graph.name = options.name or graph.name
    files = source_files(graph, options)  # before passes change the graph
    return CompiledModel(*compilation.place(graph), graph.origin, in_order, files)


def _compile_old_interface(
    source: Any, inputs: Any, older_words: dict[str, Any], options: CompileOptions
) -> CompiledModel:
    """Compile what a deprecated call of `compile` asks for: programs if `source` is a mapping of them or if there is
    `keeps`, else a training, or inference if there is no `loss`. Warns which function to call instead, and raises what
    that function raises. `older_words`: the deprecated keywords of the call."""
    keeps = older_words.pop("keeps", None)
    loss = older_words.pop("loss", None)
    if keeps is not None or _are_programs(source):
        _warn("a mapping of Programs" if keeps is None else "`keeps`", "compile_programs")
        if keeps is None:
            programs = cast("Mapping[str, Program]", source)
        else:
            programs = Program(source, example_sequence(inputs) or (), keeps)
        return compile_programs(programs, options=options)
    _warn(", ".join(f"`{name}`" for name in ("loss", *older_words)), "compile_training")
    if loss is None:  # the others meant nothing without
        return _compile_inference(source, inputs, None, options)
    from buda_emu.compiler.train.compile_training import compile_training

    return compile_training(source, inputs, loss=loss, options=options, **older_words)


def _warn(subject: str, function: str) -> None:
    """Issue a DeprecationWarning to the caller of `compile`: that it will not take `subject` any more, and which
    function to call instead."""
    text = f"buda_emu.compile will not take {subject} in {REMOVED_IN}: call buda_emu.{function}"
    warnings.warn(text, DeprecationWarning, stacklevel=_STACK)


_PERHAPS_A_BUG: Final = "if the file was not edited, this is a bug"


@within_memory()
def compile_until(
    source: Any,
    inputs: Any = None,
    *,
    stop_after: str,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> IrFile:
    """Run the passes up to `stop_after` and return their IR, to look at or to write with `write_ir`. Options are those
    of `compile`. Raises HostError for a name that no pass has, and what `compile` raises."""
    resolved_options = with_words(options, words, "compile_until")
    compilation = Compilation.of(resolved_options)
    with compilation.loading(source):
        graph = read_model(source, inputs, sizes=resolved_options.sizes)
    return compilation.run_until(graph, require_pass_name(stop_after, "stop_after"))


@within_memory()
def compile_from(
    path: str | Path, *, options: CompileOptions | None = None, **words: Unpack[OptionWords]
) -> CompiledModel:
    """Compile the model of an IR file with the passes after the one that it was written after. A file of ops on tiles
    states its own architecture and formats. Raises IrError for a file that is not an IR, breaks a rule of its level, or
    gives a netlist that is refused, and what `compile` raises."""
    compilation = Compilation.of(with_words(options, words, "compile_from"))
    file = read_ir(Path(path))
    try:
        compiled = CompiledModel(*compilation.resume(file))
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
