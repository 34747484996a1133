"""The compiler's entry point for programs with caches."""

from collections.abc import Mapping
from typing import Unpack

from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.generate.caches import Program, programs_graph
from buda_emu.compiler.generate.programs import CompiledPrograms
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words, without_sizes

MODEL = "model"
"""Name of a program that was given none."""
ENTRIES = 4
"""Rounds that queues have room for."""


@within_memory()
def compile_programs(
    programs: Program | Mapping[str, Program], *, options: CompileOptions | None = None, **words: Unpack[OptionWords]
) -> CompiledPrograms:
    """Compile a model that keeps caches from run to run, or several models that share caches, as programs of one
    netlist (docs/compile/generate.md): text generation, recurrent states, running means.

    `programs`: one Program, or several by name. `options`, or its fields as keywords, which replace those of `options`:
    see CompileOptions.

    Raises HostError where a cache does not fit what is kept in it; HostError, UnsupportedError and TypeError as
    `compile` does.
    """
    compilation = Compilation.of(without_sizes(with_words(options, words, "compile_programs"), "compile_programs"))
    with compilation.memory.reading():
        graph, parts = programs_graph({MODEL: programs} if isinstance(programs, Program) else programs)
    return CompiledPrograms(*compilation.placed(graph, entries=ENTRIES), parts)
