"""Parts of the compiler: compile up to a pass, or continue after one (docs/compile/pipeline.md)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Unpack

from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.files import read_ir
from buda_emu.compiler.ir.text import IrFile
from buda_emu.compiler.ir.tokens import IrError
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words
from buda_emu.compiler.pipeline import known
from buda_emu.errors import BudaError, HostError, InternalError

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
