"""The operations that are read: one row each, with its text in the manner of MLIR's declarative formats (VPUX 3).

Elements of a format, separated by blanks (`formats.py` interprets them):

    {}             attributes in braces, if there are any      attributes{}   the same after a word
    word()         a list of values after a word               word()?        the same, if the word is there
    word           that word                                   any( a b? )    such clauses in any order
    ()  ()?        a list of values in parentheses             %   %*         one value; values with commas
    <name>         an attribute in angle brackets (or a string), kept as `name`
    [name] [name]? a list of integers                     @name @name?   a symbol
    word=name      an attribute after a word, `:` between them or not
    =name  name    an attribute after `=`; a bare attribute   , name         further ones after commas
    :T :T?         types after a colon                        :=T            of the results
    ->T ->T?       types of the results                        toT  T         the same after `to`, or bare
    {..} {..}?     a region                                    tail           anything up to the next statement
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Role = Literal["barrier", "buffer", "task", "dma", "view", "kernel", "run", "sequential", "module", "flow", "named"]

ROLES: Final[Mapping[str, str]] = {
    "barrier": "declares a barrier",
    "buffer": "declares memory",
    "task": "work of a unit, with barriers",
    "dma": "moves data",
    "view": "another look at memory, without work",
    "kernel": "a software kernel on a SHAVE",
    "run": "an invocation inside of a kernel",
    "sequential": "computed in order, in functions without tasks",
    "module": "is part of a module and configures it",
    "flow": "structure of a function",
    "named": "read and represented, not emulated",
}


@dataclass(frozen=True, slots=True)
class OpSpec:
    """An operation: its name, its formats (it may be written in several ways), its role, and a summary in a
    sentence."""

    name: str
    formats: tuple[str, ...]
    role: Role
    summary: str


_DMA: Final = "{} any( inputs() outputs() profiling_data()? act_compression_size_entry()? indices()? ) {} ->T?"
_DMA_NEW: Final = "{} any( inputs() outputs() profiling_data()? act_compression_size_entry()? indices()? ) {} ->T"
_VIEW: Final = "{} inputs() {} ->T"
_LAYER: Final = ("{} () {} : (T) -> T", "{} inputs() outputs() {} ->T?", "{} () {} :T?")


def _rows() -> Iterable[OpSpec]:
    """Yield the operations that are read."""

    def row(name: str, role: Role, summary: str, *formats: str) -> OpSpec:
        """Return an operation, of which `formats` are tried in order."""
        return OpSpec(name, formats, role, summary)

    yield row("VPURT.ConfigureBarrier", "barrier", "a physical barrier, by its number", "{} <number> {} ->T")
    yield row("VPURT.DeclareVirtualBarrier", "barrier", "a barrier without a number yet", "{} ->T")
    yield row("VPURT.ConfigurePhysicalBarrier", "barrier", "the same in the old dialect", "{} <number> {} ->T?")
    yield row(
        "VPURT.DeclareBuffer", "buffer", "bytes of a section, from an offset on", "<section> [index]? <offset> {} ->T"
    )
    yield row(
        "VPURT.Task",
        "task",
        "one op with the barriers it waits for and updates",
        "profiling_data()? waits()? updates()? enqueueTarget()? attributes{} {..}",
    )
    yield row("VPURT.TaskList", "task", "tasks of one executor, in the old dialect", "@executor {..}")
    for name, summary in _MOVES.items():
        yield row(f"VPUIP.{name}", "dma", summary, _DMA_NEW)
    yield row("VPUIP.DMA", "dma", "a transfer in the old dialect", _DMA)
    yield row(
        "VPUIP.SubView", "view", "a part of a buffer: offsets, sizes, steps", "% [offsets] [sizes] [steps]? {} :T? toT"
    )
    yield row("VPUIP.GenericReshape", "view", "the same bytes in another shape", _VIEW)
    yield row("VPUIP.PermuteCast", "view", "the same bytes in another order of dimensions", _VIEW)
    yield row("VPUIP.QuantizeCast", "view", "the same bytes with another quantised type", _VIEW)
    yield row("VPUIP.ShapeCast", "view", "the same bytes in another shape of the same order", _VIEW)
    yield row("VPUIP.ViewOp", "view", "the same address with another type", "{} % {} :T? toT")
    yield row(
        "VPUIP.ConcatView", "view", "its output buffer, which others wrote in parts", "{} inputs() outputs() {} ->T"
    )
    yield row("VPUIP.SW.Kernel", "kernel", "a software kernel with its operands", "kernel")
    yield row("VPUIP.SW.Kernel.run", "run", "one call of the kernel's function", "{} ()? {} :T?")
    yield row("constant", "run", "a scalar argument of a kernel, in the old dialect", "value :=T")
    yield row("const.Declare", "buffer", "constant data", "{} T =content , transforms")
    for name in ("memref.alloc", "alloc"):
        yield row(name, "buffer", "memory of its own", "()? {} :=T")
    for name in ("memref.dealloc", "dealloc"):
        yield row(name, "flow", "the end of such memory", "% :T?")
    yield row("VPUIP.StaticAlloc", "buffer", "memory at an offset of its space", "<offset> {} ->T")
    for name in ("return", "func.return"):
        yield row(name, "flow", "the values that a function gives back", "%* :T?")
    yield row(
        "VPURT.SW.Runtime",
        "module",
        "the management kernel and stack bytes for each SHAVE",
        "entryPoint=entryPoint stack_configuration=stack_configuration {}",
    )
    yield row("VPURT.Graph", "module", "the same in the old dialect, with stack bytes for each tile", "{}")
    yield row(
        "IE.CNNNetwork",
        "module",
        "the network's entry point, inputs and outputs",
        "{} any( entryPoint=entryPoint? inputsInfo={..}? outputsInfo={..}? profilingOutputsInfo={..}? )",
    )
    for name in ("IE.DataInfo", "DataInfo"):
        yield row(
            name,
            "module",
            "an input or output: name, precision and layout, or type",
            "entries {} :T? tail",
            "entries tail",
        )
    for name in ("IE.SoftMax", "IERT.SoftMax", "IE.ReLU", "IERT.ReLU", "IERT.Reorder", "linalg.copy"):
        yield row(name, "sequential", _LAYERS[name.rpartition(".")[2]], *_LAYER)
    for name, summary in _NAMED.items():
        yield row(name, "named", summary, "tail")


_MOVES: Final[Mapping[str, str]] = {
    "NNDMA": "copies elements in memory order",
    "Copy": "the same before DMAs are chosen",
    "PermuteDMA": "permutes memory dimensions, or follows its descriptor",
    "ConvertDMA": "converts f32 to f16 or bf16 on the way",
    "ExpandDMA": "pads; emulated with a descriptor",
    "DepthToSpaceDMA": "depth to space; emulated with a descriptor",
    "SpaceToDepthDMA": "space to depth; emulated with a descriptor",
    "PerAxisTileDMA": "repeats along an axis; emulated with a descriptor",
    "UpsamplingDMAOp": "spreads elements; emulated with a descriptor",
    "SyncDMA": "keeps order and moves nothing",
    "CompressDMAOp": "compresses; not emulated",
    "DecompressDMAOp": "decompresses; not emulated",
    "GatherDMA": "gathers rows by indices; not emulated",
}
_LAYERS: Final[Mapping[str, str]] = {
    "SoftMax": "softmax over the logical dimension axisInd, -1 being the last; padSize as the kernel's pad",
    "ReLU": "max(x, 0)",
    "Reorder": "the same logical values in the other buffer's order",
    "copy": "the same logical values",
}
_NAMED: Final[Mapping[str, str]] = {
    "IE.CustomBinaryLayer": "a custom layer as binary code",
    "IE.CustomLayer": "a custom layer as a region",
    "IE.Layer1": "an example of a layer with dynamic shapes",
    "IERT.Layer1": "the same on buffers",
    "IERT.ActualShapeOf": "the shape that a bounded buffer holds",
    "VPUIP.GroupBoundedBuffer": "data and its shape as one value",
    "VPUIP.UngroupBoundedBuffer": "one value as data and its shape",
    "VPUIP.NCEClusterTask": "work of a DPU",
    "VPUIP.NCEClusterTiling": "work spread over clusters",
    "call": "a call of another function",
    "func.call": "a call of another function",
}

OPS: Final[Mapping[str, OpSpec]] = MappingProxyType({spec.name: spec for spec in _rows()})
"""By name. Of any other op only the name is kept."""
