"""The result of routing as YAML, to read and to compare."""

from collections.abc import Iterable, Iterator

from buda_emu.performance.routing.streams.model import (
    LIMITS,
    CoreUse,
    Refusal,
    Routed,
    Stream,
)
from buda_emu.spec.archs import EXTRA_STREAMS, KERNEL_STREAMS


def as_yaml(routed: Routed, name: str, arch: str) -> str:
    """Return as YAML streams by core with their pipes, the use of each core's resources, and refusals. `name` is that
    of the pipe graph. Equal pipes give equal text."""
    lines = [f"graph: {_word(name)}", f"arch: {arch}", "refusals:" if routed.refusals else "refusals: []"]
    for refusal in routed.refusals:
        lines += _refusal(refusal)
    lines.append("cores:" if routed.cores else "cores: []")
    for core in routed.cores:
        lines += _core(core, arch)
    return "\n".join(lines) + "\n"


def _refusal(refusal: Refusal) -> Iterator[str]:
    """Yield the lines of a refusal."""
    yield f"  - what: {refusal.what}"
    yield f"    message: {_word(refusal.message)}"
    if refusal.place is not None:
        yield f"    core: {list(refusal.place[:3])}"
    if refusal.number is not None:
        yield f"    number: {refusal.number}"
        yield f"    limit: {refusal.limit}"


def _core(core: CoreUse, arch: str) -> Iterator[str]:
    """Yield the lines of a core: the use of its resources with their limits, and its streams."""
    limits = LIMITS[arch]
    place = core.place
    yield f"  - {'ethernet' if place.ethernet else 'core'}: [{place.chip}, {place.row}, {place.column}]"
    yield f"    ops: [{', '.join(map(_word, core.ops))}]"
    if not place.ethernet:
        yield f"    extra_streams: {core.extra_streams}  # of {len(EXTRA_STREAMS)}"
        yield f"    multicast_streams: {core.multicast_streams}  # of {limits.multicast_streams}"
        yield f"    kernel_inputs: {core.kernel_inputs}  # of {KERNEL_STREAMS}"
        yield f"    kernel_outputs: {core.kernel_outputs}  # of {KERNEL_STREAMS}"
    yield f"    l1_bytes: {core.l1_bytes}  # of {core.available_bytes}"
    for key, size in (
        ("stream_bytes", core.stream_bytes),
        ("tile_header_bytes", core.tile_header_bytes),
        ("blob_bytes", core.blob_bytes),
        ("fallback_bytes", core.fallback_bytes),
    ):
        if size:
            yield f"    {key}: {size}"
    yield "    streams:"
    for stream in core.streams:
        yield f"      {stream.id}: {{{', '.join(_stream(stream))}}}"


def _stream(stream: Stream) -> Iterator[str]:
    """Yield the fields of a stream, without those that are 0 or empty."""
    yield f"kind: {stream.kind}"
    if stream.op:
        yield f"op: {_word(stream.op)}"
    if stream.operand is not None:
        yield f"operand: {stream.operand}"
    yield f"pipes: [{_join_numbers(stream.pipes)}]"
    for key, value in (
        ("buffer_bytes", stream.buffer_bytes),
        ("phases", stream.phases),
        ("reads_queues", stream.reads_queues),
        ("writes_queues", stream.writes_queues),
    ):
        if value:
            yield f"{key}: {value}"


def _join_numbers(numbers: Iterable[int]) -> str:
    """Return numbers with commas between them."""
    return ", ".join(map(str, numbers))


def _word(text: str) -> str:
    """Return `text` as YAML reads it: names as they are, other text quoted, characters that cannot be printed
    escaped."""
    plain = text.replace("_", "").replace(".", "").replace("-", "")
    if plain.isalnum() and text[0].isalpha() and text.isascii() and text.lower() not in _NO_TEXT:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    """Return a character as a quoted YAML string has it."""
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"


_NO_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
