"""The main facts about a package; nothing here is measured or estimated by buda-emu."""

from dataclasses import dataclass

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.foreign.darwinn.idl import INPUT, OUTPUT, PARAMETER, DmaDescriptorHint, Executable, InstructionHint, Layer
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.tflite_names import describe_builtin_operator


@dataclass(frozen=True, slots=True)
class ExecutableSummary:
    """One executable. `cycles`: the compiler's estimate, None where it gave none."""

    kind: str
    chunks: int
    instruction_bytes: int
    parameter_bytes: int
    token: int
    cycles: int | None
    hints: int
    complete_dma_list: bool
    scratch_bytes: int
    narrow_memory_bytes_per_tile: int
    batch: int


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """One input or output. `zero_point`: as the host sees it, TFLite's."""

    direction: str
    name: str
    shape: tuple[int, int, int]
    type: str
    scale: float | None
    zero_point: int | None
    bytes: int
    padded_bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A package on one screen."""

    path: str
    file_bytes: int
    package_bytes: int
    wrapped: bool
    min_runtime_version: int
    compiler_version: str
    chips: tuple[int, ...] | None
    cpu_operators_before: tuple[str, ...]
    """Operators that the compiler left on the CPU, in front of the custom operator."""
    cpu_operators_after: tuple[str, ...]
    cached_bytes: int
    """Parameters that stay on the device between requests."""
    streamed_bytes: int
    """Parameters that every inference moves again."""
    input_bytes: int
    output_bytes: int
    complete_dma_list: bool
    """Whether the main executable's hints say all that is moved."""
    switch_bytes: int
    """What the first request after another model's moves besides: instructions and parameters for caching."""
    executables: tuple[ExecutableSummary, ...]
    layers: tuple[LayerSummary, ...]
    parts: int
    """Packages for single chips in a package for several."""


def summarise(package: Package) -> Summary:
    """Of any package that can be read."""
    main = package.main if package.executables else None
    caching = package.caching
    before, after = cpu_operators(package.model) if package.model is not None else ((), ())
    return Summary(
        path=package.path,
        file_bytes=len(package.source),
        package_bytes=len(package.raw),
        wrapped=package.custom_op is not None,
        min_runtime_version=package.table.min_runtime_version,
        compiler_version=package.table.compiler_version or "",
        chips=package.custom_op.chips if package.custom_op else None,
        cpu_operators_before=before,
        cpu_operators_after=after,
        cached_bytes=caching.parameter_bytes if caching else 0,
        streamed_bytes=_moved(main, PARAMETER),
        input_bytes=_moved(main, INPUT),
        output_bytes=_moved(main, OUTPUT),
        complete_dma_list=main is not None and main.fully_deterministic,
        switch_bytes=_sent(caching) + _moved(caching, PARAMETER),
        executables=tuple(_executable(item) for item in package.executables),
        layers=tuple(_layer(layer) for layer in (*main.inputs, *main.outputs)) if main else (),
        parts=len(package.parts),
    )


def cpu_operators(model: tflite.Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the operators before and after the first custom operator of the Edge TPU."""
    before: list[str] = []
    after: list[str] = []
    found = before
    codes = model.operator_codes or ()
    for graph in model.subgraphs or ():
        for operator in graph.operators or ():
            code = codes[operator.opcode_index]
            if code.custom_code == CUSTOM_CODE:
                found = after
            else:
                found.append(operator_name(code))
    return tuple(before), tuple(after)


def operator_name(code: tflite.OperatorCode) -> str:
    """TFLite's name of an operator, or its own name for a custom one."""
    if code.code == tflite.CUSTOM:
        return code.custom_code or "a custom operator without a name"
    return describe_builtin_operator(code.code)


def _moved(executable: Executable | None, desc: int) -> int:
    """Bytes that the hints of an executable move of one kind."""
    hints = (hint.any_hint for hint in executable.hints) if executable is not None else ()
    return sum(
        max(hint.size_in_bytes, 0)
        for hint in hints
        if isinstance(hint, DmaDescriptorHint) and hint.meta is not None and hint.meta.desc == desc
    )


def _sent(executable: Executable | None) -> int:
    """Bytes of instructions that the hints of an executable send."""
    if executable is None:
        return 0
    numbers = [
        hint.any_hint.instruction_chunk_index for hint in executable.hints if isinstance(hint.any_hint, InstructionHint)
    ]
    return sum(len(executable.chunks[n].bitstream or b"") for n in numbers if 0 <= n < len(executable.chunks))


def _executable(item: Executable) -> ExecutableSummary:
    return ExecutableSummary(
        kind=item.kind,
        chunks=len(item.chunks),
        instruction_bytes=sum(len(chunk.bitstream or b"") for chunk in item.chunks),
        parameter_bytes=item.parameter_bytes,
        token=item.parameter_caching_token,
        cycles=item.cycles,
        hints=len(item.hints),
        complete_dma_list=item.fully_deterministic,
        scratch_bytes=item.scratch_size_bytes,
        narrow_memory_bytes_per_tile=item.used_narrow_memory_bytes_per_tile,
        batch=item.batch_size,
    )


def _layer(layer: Layer) -> LayerSummary:
    element = layer.element
    numerics = layer.numerics
    zero = None
    if numerics is not None and element is not None:
        zero = numerics.zero_point - (1 << (8 * element.size - 1) if element.signed else 0)
    return LayerSummary(
        direction="output" if layer.output is not None else "input",
        name=layer.name or "",
        shape=(layer.y_dim, layer.x_dim, layer.z_dim),
        type=element.name if element else str(layer.data_type),
        scale=numerics.dequantization_factor if numerics else None,
        zero_point=zero,
        bytes=layer.actual_bytes,
        padded_bytes=layer.padded_bytes,
    )
