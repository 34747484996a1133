"""Images from files: opened for use, or checked with every finding."""

import os
from collections.abc import Mapping
from dataclasses import replace

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render
from buda_emu.errors import NetlistError
from buda_emu.image.archive import Archive, open_archive
from buda_emu.image.checking.checks import CONFIG, mismatches
from buda_emu.image.device_image import DeviceImage
from buda_emu.image.fields import mapped, read_value, text
from buda_emu.image.member import LIMITS, Limits
from buda_emu.image.metadata import DeviceMetadata, read_metadata
from buda_emu.image.mismatch import DEVICE, Mismatch
from buda_emu.image.names import TOP
from buda_emu.image.rules import RULES, ImageError, finding, pointer, together
from buda_emu.image.strict_json import parse_object
from buda_emu.netlist.load import NetlistResult, check_bytes
from buda_emu.netlist.yaml_reader import MAX_BYTES
from buda_emu.spec.cluster import Cluster

StrPath = str | os.PathLike[str]


def load_image(
    path: StrPath, *, allow_pickle: bool = False, arch: str | None = None, limits: Limits = LIMITS
) -> DeviceImage:
    """Open a device image: tar or zip (NETLIST 8). Nothing is unpacked to disk and no code of the image runs.

    `allow_pickle`: load pickled tensors (DEFAULT dump format) too; they are unpickled when they are asked for, and a
    pickle can run any code, so do this only for images whose maker you trust. `arch`: the architecture that the caller
    expects. Raises ImageError for an image that is refused, NetlistError for its netlist, OSError.
    """
    archive = open_archive(path, limits)
    metadata, config = _content(archive, limits)
    if arch is not None and arch.lower() != metadata.arch:
        raise archive.place.at(DEVICE).below("arch").error("image-device", f"it is for {metadata.arch}, not for {arch}")
    pickled = [entry for entry in metadata.compiled_graph_state.tensors.values() if entry.dump_format == "DEFAULT"]
    if pickled and not allow_pickle:
        raise archive.place.at(pickled[0].member).error(
            "image-pickle",
            f"{len(pickled)} of its tensors are pickles, and loading a pickle can run any code on this machine: "
            "do you know who made this file?",
        )
    result = _netlist(archive, metadata)
    if result.netlist is None:
        raise NetlistError(render(result.diagnostics), result.diagnostics)
    found = [item for item in mismatches(metadata, result.netlist, archive) if item.rule != "image-pickle"]
    wrong = [
        archive.place.at(item.member).below(*item.steps).error(item.rule, item.problem)
        for item in found
        if item.severity == "error"
    ]
    if wrong:
        raise together(wrong)
    return DeviceImage(archive, metadata, result.netlist, config, tuple(_told(item, archive) for item in found))


def check_image(
    path: StrPath,
    arch: str | None = None,
    *,
    strict: bool = False,
    cluster: Cluster | None = None,
    limits: Limits = LIMITS,
) -> NetlistResult:
    """Every finding on an image: the archive, device.json, the netlist inside, and whether they belong together.

    Never raises for what is in the file. `arch` is the architecture that the caller expects. `strict` makes warnings of
    the netlist and of the image errors, and holds the netlist against its pipes and streams, too, with the links of
    `cluster` between its chips. The bytes of tensors are not looked at, but for how many there are.
    """
    name = os.fspath(path)
    try:
        archive = open_archive(path, limits)
        metadata, _ = _content(archive, limits)
        result = _netlist(archive, metadata, strict=strict, cluster=cluster)
    except ImageError as error:
        return NetlistResult(None, tuple(replace(item, hint=RULES[item.rule].fix) for item in error.diagnostics))
    except OSError as error:
        return NetlistResult(None, (finding(name, "", "image-archive", error.strerror or str(error)),))
    found = list(result.diagnostics)
    if arch is not None and arch.lower() != metadata.arch:
        problem = f"the image is for {metadata.arch}, not for {arch}"
        found.append(_told(Mismatch(DEVICE, "image-device", problem, "error", ("arch",)), archive))
    if result.netlist is not None:
        for item in mismatches(metadata, result.netlist, archive):
            found.append(_told(replace(item, severity="error") if strict else item, archive))
    refused = any(item.severity == "error" for item in found)
    return NetlistResult(None if refused else result.netlist, tuple(found))


def _told(item: Mismatch, archive: Archive) -> Diagnostic:
    return finding(archive.place.archive, item.member, item.rule, item.problem, item.severity, pointer(item.steps))


def _content(archive: Archive, limits: Limits) -> tuple[DeviceMetadata, Mapping[str, str]]:
    """device.json and compile_and_runtime_config.json. Raises ImageError."""
    device = archive.place.at(DEVICE)
    metadata = read_metadata(parse_object(archive.read(DEVICE, limits.json_bytes), device), device)
    if not archive.has(CONFIG):
        return metadata, {}
    place = archive.place.at(CONFIG)
    config = parse_object(archive.read(CONFIG, limits.json_bytes), place)
    return metadata, read_value(mapped(text), config, place)


def _netlist(
    archive: Archive, metadata: DeviceMetadata, *, strict: bool = False, cluster: Cluster | None = None
) -> NetlistResult:
    """The netlist inside, for the image's architecture. Raises ImageError where it is not there."""
    member = f"{TOP}/{metadata.compiled_graph_state.netlist_filename}"
    data = archive.read(member, MAX_BYTES)
    name = f"{archive.place.archive}!{member}"
    if strict:
        from buda_emu.routing import checking  # only then: it makes pipes and streams

        return checking.check_bytes(data, name, metadata.arch, cluster=cluster)
    return check_bytes(data, name, metadata.arch)
