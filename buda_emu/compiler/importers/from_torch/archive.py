"""A file of torch.export.save before torch reads it: torch runs code that pickles, libraries and text in it hold, and a
stranger's model must not.

torch gets another archive, made of what was checked here, and not the file: it finds members by other rules than the
check would, and the file may change in between.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from buda_emu.compiler.graph.builder import shown_name
from buda_emu.compiler.importers.from_torch.serialized import fault_of, fault_of_names
from buda_emu.support.errors import HostError

_Members = Mapping[str, str]
"""Patterns of names, and what a member of such a name holds: "text" of the format's own, "json", "names" (JSON by names
of tensors), "tensors" (a pickle of torch.save), "bytes" (of one tensor), or "unread", which torch does not get."""
_NUMBER: Final = "(?:0|[1-9][0-9]*)"
_OF_ARCHIVES: Final[_Members] = {
    r"archive_format|archive_version|byteorder|\.data/version": "text",
    r"models/model\.json": "json",
    r"data/weights/model_weights_config\.json|data/constants/model_constants_config\.json": "names",
    rf"data/weights/weight_{_NUMBER}|data/constants/tensor_{_NUMBER}": "bytes",
    r"data/sample_inputs/model\.pt|data/(?:weights|constants)/model\.pt": "tensors",
    rf"\.data/serialization_id|data/constants/(?:custom|opaque)_obj_{_NUMBER}|extra/.+": "unread",
}
"""From torch 2.8; pickled tensors (`weights/model.pt`) are of its first versions. All are below one folder."""
_OF_OLDER: Final[_Members] = {
    "version": "text",
    r"serialized_exported_program\.json": "json",
    r"serialized_(?:state_dict|constants|example_inputs)\.pt": "tensors",
    "extra_files/.+": "unread",
}
"""Before torch 2.8."""
_ROOT: Final = "archive/"


@dataclass(frozen=True, slots=True)
class _Source:
    """The file, and how its members are named."""

    path: Path
    root: str
    members: _Members

    def holds(self, name: str) -> str:
        """What a member holds. Raises HostError for one that torch.export.save does not write."""
        inner = name.removeprefix(self.root)
        for pattern, content in self.members.items() if name.startswith(self.root) else ():
            if re.fullmatch(pattern, inner):
                return content
        raise self.refused(name, "is no member that torch.export.save writes for a model")

    def refused(self, name: str, what: str) -> HostError:
        return HostError(
            f"compile: {self.path}: {shown_name(name)} {what}: reading such a file may run any code: "
            "where you trust it, compile what torch.export.load gives"
        )


def checked_archive(path: Path) -> io.BytesIO:
    """An archive of the members that torch.export.load reads, as they were checked. Raises HostError for a file that is
    not there or no such archive, and for one with what torch would run as code: members that torch.export.save does not
    write or that are there twice, Python objects as pickles (those of tensors alone torch reads without running any),
    expressions that call anything but functions of sizes, and operators and names that are not such."""
    if not path.exists():
        raise HostError(f"compile: {path}: no such file")
    result = io.BytesIO()
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(result, "w") as copy:
            source = _source_of(path, archive)
            root = _ROOT if source.root else ""
            for info in archive.infolist():
                content = source.holds(info.filename)
                if content != "unread":
                    data = _checked(source, info.filename, content, archive.read(info))
                    copy.writestr(root + info.filename.removeprefix(source.root), data)
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError) as error:
        raise HostError(f"compile: {path} is not a file of torch.export.save: {error}") from None
    result.seek(0)
    return result


def _source_of(path: Path, archive: zipfile.ZipFile) -> _Source:
    """Raises HostError for members that torch might take for another one or that are larger than they look, and
    BadZipFile where there are none."""
    infos = archive.infolist()
    if not infos:
        raise zipfile.BadZipFile("it has no members")
    first, slash, _ = infos[0].filename.partition("/")
    is_older = any(info.filename == "version" for info in infos)
    source = _Source(path, "" if is_older else first + slash, _OF_OLDER if is_older else _OF_ARCHIVES)
    seen: set[str] = set()
    for info in infos:
        if info.filename.lower() in seen:
            raise source.refused(info.filename, "stands in it twice, as torch compares names")
        seen.add(info.filename.lower())
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise HostError(
                f"compile: {path}: {shown_name(info.filename)} is compressed or encrypted, and torch.export.save does "
                "neither: write the file with it"
            )
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise zipfile.BadZipFile("its members share their bytes")
    return source


def _checked(source: _Source, name: str, content: str, data: bytes) -> bytes:
    """What torch gets of a member."""
    if content == "tensors" and data and not _is_of_tensors(data):
        raise source.refused(name, "holds Python objects as pickles")
    if content not in ("json", "names"):
        return data
    document = json.loads(data)
    if not isinstance(document, dict):
        raise zipfile.BadZipFile(f"{shown_name(name)} is no JSON object")
    fault = fault_of(document) or (fault_of_names(document) if content == "names" else "")
    if fault:
        raise source.refused(name, fault)
    return json.dumps(_without_guards(document)).encode()


def _without_guards(document: dict[str, Any]) -> dict[str, Any]:
    """Without the Python code by which torch would check inputs; the compiler does not call it."""
    return {key: [] if key == "guards_code" else value for key, value in document.items()}


def _is_of_tensors(data: bytes) -> bool:
    """Whether torch reads it with `weights_only`, which runs no code; where it does not, torch.export.load goes on to
    read it without."""
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # noqa: BLE001 - whatever it is, it would be read the other way
        return False
    return True
