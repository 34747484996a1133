"""The main facts about a package; nothing here is measured or estimated by buda-emu."""

from dataclasses import dataclass

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.foreign.darwinn.idl import INPUT, OUTPUT, PARAMETER, DmaDescriptorHint, Executable, InstructionHint, Layer
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.tflite import describe_builtin_operator


@dataclass(frozen=True, slots=True)
class ExecutableSummary:
    """Figures of one executable. `cycles` is the compiler's estimate, None where there is none."""

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
    """Figures of one input or output. `zero_point` is TFLite's, as the host sees it."""

    direction: str
    name: str
    shape: tuple[int, int, int]
    type: str
    scale: float | None
    zero_point: int | None
    bytes: int
    padded_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The facts about a package that fit on one screen."""

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
    """True where the main executable's hints list all transfers."""
    switch_bytes: int
    """Bytes that the first request after one of another model moves besides: instructions and parameters to cache."""
    executables: tuple[ExecutableSummary, ...]
    layers: tuple[LayerSummary, ...]
    parts: int
    """Number of packages for single chips in a package for several."""


def summarise(package: Package) -> Summary:
    """Return the main facts about a package, as far as it could be read."""
    main = package.main if package.executables else None
    caching = package.caching
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    if package.model is not None:
        before, after = cpu_operators(package.model)
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
        streamed_bytes=_transfer_bytes(main, PARAMETER),
        input_bytes=_transfer_bytes(main, INPUT),
        output_bytes=_transfer_bytes(main, OUTPUT),
        complete_dma_list=main is not None and main.fully_deterministic,
        switch_bytes=_instruction_bytes(caching) + _transfer_bytes(caching, PARAMETER),
        executables=tuple(map(_summarise_executable, package.executables)),
        layers=tuple(_summarise_layer(layer) for layer in (*main.inputs, *main.outputs)) if main else (),
        parts=len(package.parts),
    )


def cpu_operators(model: tflite.Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the operators before and after the first custom operator of the Edge TPU."""
    before: list[str] = []
    after: list[str] = []
    names = before
    codes = model.operator_codes or ()
    for graph in model.subgraphs or ():
        for operator in graph.operators or ():
            code = codes[operator.opcode_index]
            if code.custom_code == CUSTOM_CODE:
                names = after
            else:
                names.append(operator_name(code))
    return tuple(before), tuple(after)


def operator_name(code: tflite.OperatorCode) -> str:
    """Return TFLite's name of an operator; for a custom operator the name that the model has for it."""
    if code.code == tflite.CUSTOM:
        return code.custom_code or "a custom operator without a name"
    return describe_builtin_operator(code.code)


def _transfer_bytes(executable: Executable | None, desc: int) -> int:
    """Return the bytes that an executable's hints move of one kind of buffer, `desc` (such as INPUT); 0 without an
    executable."""
    if executable is None:
        return 0
    total = 0
    for hint in executable.hints:
        dma = hint.any_hint
        if isinstance(dma, DmaDescriptorHint) and dma.meta is not None and dma.meta.desc == desc:
            total += max(dma.size_in_bytes, 0)
    return total


def _instruction_bytes(executable: Executable | None) -> int:
    """Return the bytes of instructions that the hints of an executable send; 0 without an executable."""
    if executable is None:
        return 0
    numbers = [
        hint.any_hint.instruction_chunk_index for hint in executable.hints if isinstance(hint.any_hint, InstructionHint)
    ]
    return sum(len(executable.chunks[n].bitstream or b"") for n in numbers if 0 <= n < len(executable.chunks))


def _summarise_executable(executable: Executable) -> ExecutableSummary:
    """Return the figures of an executable for the summary."""
    return ExecutableSummary(
        kind=executable.kind,
        chunks=len(executable.chunks),
        instruction_bytes=sum(len(chunk.bitstream or b"") for chunk in executable.chunks),
        parameter_bytes=executable.parameter_bytes,
        token=executable.parameter_caching_token,
        cycles=executable.cycles,
        hints=len(executable.hints),
        complete_dma_list=executable.fully_deterministic,
        scratch_bytes=executable.scratch_size_bytes,
        narrow_memory_bytes_per_tile=executable.used_narrow_memory_bytes_per_tile,
        batch=executable.batch_size,
    )


def _summarise_layer(layer: Layer) -> LayerSummary:
    """Return the figures of a layer for the summary, with the zero point as the host sees it."""
    element = layer.element
    numerics = layer.numerics
    zero = None
    if numerics is not None and element is not None:
        if element.signed:
            flip = 1 << (8 * element.size - 1)
        else:
            flip = 0
        zero = numerics.zero_point - flip
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
