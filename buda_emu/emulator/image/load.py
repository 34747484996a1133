"""Opens an image file for use, or checks it and returns every finding."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from buda_emu.emulator.image.archive import DEVICE, LIMITS, TOP, Archive, Limits, open_archive
from buda_emu.emulator.image.checks import CONFIG, mismatches
from buda_emu.emulator.image.device_image import DeviceImage
from buda_emu.emulator.image.fields import map_of, parse_object, read_value, text
from buda_emu.emulator.image.metadata import DeviceMetadata, read_metadata
from buda_emu.emulator.image.rules import RULES, ImageError, Mismatch, combine_errors, finding, pointer
from buda_emu.netlist.load import NetlistResult, check_bytes
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import MAX_BYTES
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render
from buda_emu.support.errors import NetlistError
from buda_emu.support.options import document_path, small_letters, with_hints

StrPath = str | os.PathLike[str]
NetlistCheck = Callable[[bytes, str, str | None], NetlistResult]
"""A check of a netlist's bytes, under a name, for an architecture."""


@with_hints
def load_image(
    path: StrPath, *, allow_pickle: bool = False, arch: str | None = None, limits: Limits = LIMITS
) -> DeviceImage:
    """Open a device image: tar or zip (NETLIST 8). Nothing is unpacked to disk and no code of the image runs.

    `allow_pickle`: load pickled tensors (DEFAULT dump format) too; they are unpickled when they are asked for, and a
    pickle can run any code, so do this only for images whose maker you trust. `arch`: the architecture that the caller
    expects. Raises ImageError for an image that is refused, NetlistError for its netlist, OSError.
    """
    archive = open_archive(document_path(path, "load_image"), limits)
    metadata, config = _read_content(archive, limits)
    if arch is not None and small_letters("arch", arch) != metadata.arch:
        raise archive.place.at(DEVICE).below("arch").error("image-device", f"it is for {metadata.arch}, not for {arch}")
    if not allow_pickle:
        _refuse_pickles(archive, metadata)
    result = _check_netlist_inside(archive, metadata)
    if result.netlist is None:
        raise NetlistError(render(result.diagnostics), result.diagnostics)
    found_mismatches = [
        mismatch for mismatch in mismatches(metadata, result.netlist, archive) if mismatch.rule != "image-pickle"
    ]
    wrong = [
        archive.place.at(mismatch.member).below(*mismatch.steps).error(mismatch.rule, mismatch.problem)
        for mismatch in found_mismatches
        if mismatch.severity == "error"
    ]
    if wrong:
        raise combine_errors(wrong)
    return DeviceImage(
        archive=archive,
        metadata=metadata,
        netlist=result.netlist,
        runtime_config=config,
        findings=tuple(_make_diagnostic(mismatch, archive) for mismatch in found_mismatches),
    )


def _refuse_pickles(archive: Archive, metadata: DeviceMetadata) -> None:
    """Raise ImageError for an image with tensors that are pickles."""
    pickled = [entry for entry in metadata.compiled_graph_state.tensors.values() if entry.dump_format == "DEFAULT"]
    if pickled:
        raise archive.place.at(pickled[0].member).error(
            "image-pickle",
            f"{len(pickled)} of its tensors are pickles, and loading a pickle can run any code on this machine: "
            "do you know who made this file?",
        )


def _mismatch_diagnostics(
    metadata: DeviceMetadata, netlist: Netlist, archive: Archive, *, strict: bool
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each contradiction between the parts of an image; warnings become errors if `strict`."""
    for mismatch in mismatches(metadata, netlist, archive):
        if strict:
            yield _make_diagnostic(replace(mismatch, severity="error"), archive)
        else:
            yield _make_diagnostic(mismatch, archive)


def _with_fixes(error: ImageError) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a refused image, each with the fix of its rule as hint."""
    return tuple(replace(diagnostic, hint=RULES[diagnostic.rule].fix) for diagnostic in error.diagnostics)


def check_image(
    path: StrPath,
    arch: str | None = None,
    *,
    strict: bool = False,
    check_netlist: NetlistCheck = check_bytes,
    limits: Limits = LIMITS,
) -> NetlistResult:
    """Return every finding on an image: on the archive, device.json, the netlist inside, and whether they belong
    together.

    Never raises for what is in the file. `arch` is the architecture that the caller expects. `strict` makes warnings of
    the image errors. `check_netlist` checks the netlist inside: `netlist.load.check_bytes`, or
    `routing.checking.check_bytes`, which also holds it against its pipes and streams. The bytes of tensors are not
    looked at, but for how many there are.
    """
    name = os.fspath(path)
    try:
        archive = open_archive(path, limits)
        metadata, _ = _read_content(archive, limits)
        result = _check_netlist_inside(archive, metadata, check_netlist)
    except ImageError as error:
        return NetlistResult(None, _with_fixes(error))
    except OSError as error:
        return NetlistResult(None, (finding(name, "", "image-archive", error.strerror or str(error)),))
    diagnostics = list(result.diagnostics)
    if arch is not None and arch.lower() != metadata.arch:
        problem = f"the image is for {metadata.arch}, not for {arch}"
        diagnostics.append(_make_diagnostic(Mismatch(DEVICE, "image-device", problem, steps=("arch",)), archive))
    if result.netlist is not None:
        diagnostics += _mismatch_diagnostics(metadata, result.netlist, archive, strict=strict)
    refused = any(diagnostic.severity == "error" for diagnostic in diagnostics)
    return NetlistResult(None if refused else result.netlist, tuple(diagnostics))


def _make_diagnostic(mismatch: Mismatch, archive: Archive) -> Diagnostic:
    """Return the diagnostic that reports a mismatch, with its place in the archive."""
    return finding(
        archive.place.archive,
        mismatch.member,
        mismatch.rule,
        mismatch.problem,
        mismatch.severity,
        pointer(mismatch.steps),
    )


def _read_content(archive: Archive, limits: Limits) -> tuple[DeviceMetadata, Mapping[str, str]]:
    """Read device.json, and compile_and_runtime_config.json ({} where there is none). Raises ImageError."""
    device = archive.place.at(DEVICE)
    metadata = read_metadata(parse_object(archive.read(DEVICE, limits.json_bytes), device), device)
    if not archive.has(CONFIG):
        return metadata, {}
    place = archive.place.at(CONFIG)
    config = parse_object(archive.read(CONFIG, limits.json_bytes), place)
    return metadata, read_value(map_of(text), config, place)


def _check_netlist_inside(
    archive: Archive, metadata: DeviceMetadata, check_netlist: NetlistCheck = check_bytes
) -> NetlistResult:
    """Check the netlist in the image, for the image's architecture, and return netlist and findings. Raises ImageError
    where the archive has none."""
    member = _netlist_member(metadata)
    data = archive.read(member, MAX_BYTES)
    return check_netlist(data, f"{archive.place.archive}!{member}", metadata.arch)


def _netlist_member(metadata: DeviceMetadata) -> str:
    """Return the name of the member that is the netlist."""
    return f"{TOP}/{metadata.compiled_graph_state.netlist_filename}"


def holds_netlist(path: StrPath, netlist: bytes) -> bool:
    """Return whether an image holds these bytes as its netlist. False for an image that cannot be read."""
    try:
        archive = open_archive(path, LIMITS)
        metadata, _ = _read_content(archive, LIMITS)
        return archive.read(_netlist_member(metadata), MAX_BYTES) == netlist
    except (ImageError, OSError):
        return False
