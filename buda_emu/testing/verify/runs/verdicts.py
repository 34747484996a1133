"""The store of earlier test runs: verdicts of netlists that did not change, and the netlists that failed."""

import hashlib
import io
import json
import os
import pickle
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.netlist.yaml_reader import NO_FILE, NOT_READ
from buda_emu.spec.test_config import Comparison
from buda_emu.support.caches import cache_folder, read_cache_file, sources, unpickle, write_cache_file
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_regular, write_file
from buda_emu.support.identity import digest, library_digests
from buda_emu.support.version import __version__
from buda_emu.testing.verify import result as results
from buda_emu.testing.verify.result import CaseResult
from buda_emu.testing.verify.runs.collect import Case

if TYPE_CHECKING:
    from buda_emu.emulator.inputs.reference import DirectoryFiles, Files


MOST_BYTES: Final = 128 << 20  # of all files; those that were not used for longest go first
FOLDER: Final = "verdicts"
KEPT: Final = ("passed", "failed", "stopped", "skipped", "rejected", "unsupported")
"""Statuses that are stored, unless the cause may be in the machine (`_may_depend_on_machine`)."""
_WORDS_OF_MACHINE: Final = ("memory", NO_FILE, NOT_READ)
_NO_VALUES: Final = ("machine", "cache")  # settings that never change a verdict of `KEPT`
_MAGIC: Final = b"buda-emu verdict 1\n"
_RECORDS: Final[tuple[type[Any], ...]] = (
    CaseResult, results.OutputResult, results.OutputFigures, results.OutputDetail, results.TilePlace,
    results.ValueStats, results.OpResult, results.FirstBad, results.PerformanceResult, InputUsed, Comparison,
)  # fmt: skip


class Verdicts:
    """Stored verdicts, by which cases that did not change since an earlier run need not be tested again. `timeout` is
    in seconds; a verdict that took longer is not used, as this run would have ended it. `most_bytes` is the memory
    limit that the caller states, None where there is none."""

    def __init__(self, cases: Sequence[Case], *, timeout: float, most_bytes: int | None = None) -> None:
        self._cases = cases
        self._timeout = timeout
        self._most_bytes = most_bytes
        self._names = [self._verdict_name(case) for case in cases]

    def find(self, number: int) -> CaseResult | None:
        """Return the stored verdict of case number `number`, with `from_cache` set; None where that has to be
        tested."""
        name = self._names[number]
        file = ""
        if name:
            file = _verdict_file(name)
        payload = None
        if file:
            payload = read_cache_file(file, _MAGIC, MOST_BYTES)
        if payload is None:
            return None
        try:
            verdict = unpickle(_NAMES, payload, "a verdict")
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None
        if not isinstance(verdict, CaseResult) or _may_depend_on_machine(verdict) or verdict.seconds > self._timeout:
            return None
        return replace(verdict, from_cache=True)

    def keep(self, number: int, result: CaseResult) -> None:
        """Store the result of a case that was just tested. Nothing is stored if the case changed meanwhile, or if the
        result may depend on the machine."""
        name = self._names[number]
        if _may_depend_on_machine(result) or not name or self._verdict_name(self._cases[number]) != name:
            return
        file = _verdict_file(name)
        if file:
            stream = io.BytesIO()
            with suppress(RecursionError, pickle.PicklingError):
                _Pickler(stream, 5).dump(result)
                write_cache_file(file, _MAGIC, stream.getvalue(), MOST_BYTES)

    def _verdict_name(self, case: Case) -> str:
        """Return the digest of all that decides a case's verdict, which names its file; "" where a part of it cannot be
        read."""
        settings = {name: value for name, value in asdict(case.settings).items() if name not in _NO_VALUES}
        try:
            if case.text is not None:
                text = case.text
            else:
                text = Path(case.path).read_bytes()
            outside = None
            if case.reference is not None:
                outside = (case.reference.where, case.shares_reference, _digest_tensors(case.reference))
        except (OSError, HostError):
            return ""
        about = (_version_parts(), case.name, case.path, settings, self._most_bytes, case.defaults, outside)
        return digest(about, text)


def _may_depend_on_machine(result: CaseResult) -> bool:
    """Return whether a result may be another one on this machine tomorrow, so that it is not stored. A run without
    enough memory, or with a file that could not be read, is rejected or unsupported, and its message has one of these
    words."""
    refused = result.status in ("rejected", "unsupported")
    return result.status not in KEPT or (refused and any(word in result.message for word in _WORDS_OF_MACHINE))


def _verdict_file(name: str) -> str:
    """Return the path of the stored verdict with this name, whether it exists or not; "" where there is no folder of
    caches."""
    folder = cache_folder(FOLDER)
    if not folder:
        return ""
    return os.path.join(folder, name)  # noqa: PTH118


def _version_parts() -> tuple[Any, ...]:
    """Return all that decides a verdict beside the case: versions of this package and its sources, of Python, machine
    and libraries."""
    return __version__, sources(), sys.version, platform.machine(), tuple(library_digests().items())


def _digest_tensors(files: "Files") -> str:
    """Return a digest of names and contents of tensor files; that of a folder is remembered as long as its files have
    the same sizes and times. Raises HostError."""
    from buda_emu.emulator.inputs.reference import DirectoryFiles

    if not isinstance(files, DirectoryFiles):
        return _digest_contents(files)
    directory = Path(files.where)
    states: list[tuple[object, ...]] = []
    for name in files.names():
        with suppress(OSError):
            state = os.stat(directory / name)  # noqa: PTH116
            states.append((name, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    return _digest_folder(files, tuple(states))


@lru_cache(maxsize=64)  # netlists share their folder
def _digest_folder(files: "DirectoryFiles", _: tuple[tuple[object, ...], ...]) -> str:
    """Return the digest of a folder's files; the second argument, the states of the files, is the key of the memory."""
    return _digest_contents(files)


def _digest_contents(files: "Files") -> str:
    """Read all files and return a digest of their names and contents. Raises HostError."""
    contents = ((name, files.read(name)) for name in files.names())
    return digest([(name, None if content is None else digest(len(content), content)) for name, content in contents])


class _Pickler(pickle.Pickler):
    """A pickler that writes arrays and their elements without a reference to numpy's classes."""

    def reducer_override(self, obj: Any, /) -> Any:
        """Return the function and arguments that a numpy array or element is rebuilt from; NotImplemented, which means
        as usual, for other objects."""
        numpy: Any = sys.modules.get("numpy")
        if numpy is None:  # then there are no arrays either
            return NotImplemented
        if isinstance(obj, numpy.ndarray):
            return _array, (obj.tobytes(), obj.dtype.str, obj.shape)
        if isinstance(obj, numpy.generic):
            return _element, (obj.item(),)
        return NotImplemented


def _array(data: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    """Rebuild an array from what `_Pickler` wrote."""
    import numpy as np

    return np.frombuffer(data, np.dtype(dtype)).reshape(shape).copy()


def _element(value: Any) -> Any:
    """Return what `_Pickler` wrote for an element of an array: the Python number itself."""
    return value


_NAMES: Final[dict[tuple[str, str], Any]] = {
    **{(kind.__module__, kind.__qualname__): kind for kind in _RECORDS},
    (__name__, "_array"): _array,
    (__name__, "_element"): _element,
}


SCHEMA_VERSION = 2  # goes up when older verdicts can no longer be read
_MOST_BYTES = 64 << 20  # hundreds of thousands of netlists


def remember(directory: Path, results: Iterable[CaseResult]) -> None:
    """Store for these netlists whether they failed and how long they took, for the next run from this directory.
    Records of netlists that did not run now stay. Where nothing can be stored, nothing happens."""
    path = _records_path(directory)
    if path is None:
        return
    records = _read_records(path)
    for result in results:
        name = _absolute_path(directory, result.netlist)
        records[name] = {"failed": result.status not in ("passed", "skipped"), "seconds": round(result.seconds, 3)}
    content = json.dumps({"schema_version": SCHEMA_VERSION, "netlists": dict(sorted(records.items()))})
    with suppress(OSError):
        if path.exists() and not path.is_file():  # a write to a pipe would wait for a reader
            path.unlink()
        write_file(path, lambda stream: stream.write(content.encode()))


def failed_last_time(directory: Path, names: Iterable[str]) -> list[str]:
    """Return those of the names that failed when they were last run from this directory, in order; [] without
    records."""
    records = recall(directory)
    return [name for name in names if records.get(_absolute_path(directory, name), {}).get("failed")]


def longest_first(directory: Path, names: Iterable[str]) -> list[int]:
    """Return the positions of the names in the order in which to begin them: those without a record, then those that
    took longest, so that the last worker does not begin with the longest when all others are done."""
    records = recall(directory)
    seconds = [records.get(_absolute_path(directory, name), {}).get("seconds", float("inf")) for name in names]
    return sorted(range(len(seconds)), key=lambda place: -seconds[place])


def recall(directory: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return, by absolute path, `failed` and `seconds` of each netlist's last run from this directory; {} without
    records."""
    path = _records_path(directory)
    if path is None:
        return {}
    return _read_records(path)


def _read_records(path: Path) -> dict[str, dict[str, Any]]:
    """Read the records of earlier runs from a file; {} where it is missing, damaged or of another version."""
    try:
        content = json.loads(read_regular(path, _MOST_BYTES).decode("utf-8"))
        if content["schema_version"] == SCHEMA_VERSION:
            return {
                str(name): {"failed": bool(record["failed"]), "seconds": float(record["seconds"])}
                for name, record in content["netlists"].items()
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return {}


def _absolute_path(directory: Path, name: str) -> str:
    """Return the path of a netlist whose name is relative to `directory`, without `..` in it."""
    return os.path.normpath(directory / name)


def _records_path(directory: Path) -> Path | None:
    """Return the file with the records of runs from a directory, whether it exists or not; None without a folder of
    caches."""
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    folder = cache_folder("last-time")
    if not folder:
        return None
    return Path(folder, f"{digest}.json")
