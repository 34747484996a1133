"""The kernels of the compiler's search, compiled in advance. Importing it imports the compiler."""

from collections.abc import Callable

from buda_emu.arithmetic.jit.kernel import Compilation, compilations
from buda_emu.compiler.compilation import Compilation as ModelCompilation
from buda_emu.compiler.compilation import CompileOptions
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.support.progress import Activity


def compile_search_kernels(progress: Callable[[Activity], object]) -> list[Compilation]:
    """Compile all kernels of the compiler's search, and return those that were not in the cache, by placing a model of
    two products, which needs them all."""
    builder = Builder(Graph("two_products"))
    value = builder.input("x", (32, 64), "float32")
    for _ in range(2):
        value = builder.matmul(value, [[1.0] * 64] * 64)
    builder.graph.outputs.append(Output("y", value.name, "float32"))
    with compilations() as compiled:
        ModelCompilation.of(CompileOptions(microbatch=1, progress=progress)).place(builder.graph)
    return compiled
