"""What is known of earlier test runs: verdicts of netlists that did not change, and those that failed."""

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
from buda_emu.support.caches import cache_folder, read_cache_file, read_regular, sources, unpickle, write_cache_file
from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file
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
"""Statuses that are kept. The others may come from the machine, as its memory may: see `_from_machine`."""
_WORDS_OF_MACHINE: Final = ("memory", NO_FILE, NOT_READ)
_NO_VALUES: Final = ("threads", "memory_limit", "cache")  # settings that never change a verdict of `KEPT`
_MAGIC: Final = b"buda-emu verdict 1\n"
_RECORDS: Final[tuple[type[Any], ...]] = (
    CaseResult, results.OutputResult, results.OutputDetail, results.TilePlace, results.ValueStats, results.OpResult,
    results.FirstBad, results.PerformanceResult, InputUsed, Comparison,
)  # fmt: skip


class Verdicts:
    """What is kept of some cases.

    `timeout`: seconds; a verdict that took longer does not answer, this run would have ended it. `memory_limit`: as it
    was asked for, None where it was not.
    """

    def __init__(self, cases: Sequence[Case], *, timeout: float, memory_limit: int | None = None) -> None:
        self._cases = cases
        self._timeout = timeout
        self._memory_limit = memory_limit
        self._names = [self._name(case) for case in cases]

    def known(self, number: int) -> CaseResult | None:
        """The verdict of a case, `from_cache` then; None where it has to be tested."""
        name = self._names[number]
        file = _file(name) if name else ""
        payload = read_cache_file(file, _MAGIC, MOST_BYTES) if file else None
        if payload is None:
            return None
        try:
            found = unpickle(_NAMES, payload, "a verdict")
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None
        if not isinstance(found, CaseResult) or _from_machine(found) or found.seconds > self._timeout:
            return None
        return replace(found, from_cache=True)

    def keep(self, number: int, result: CaseResult) -> None:
        """Keep the verdict of a case that was tested now, if nothing of it changed meanwhile."""
        name = self._names[number]
        if _from_machine(result) or not name or self._name(self._cases[number]) != name:
            return
        file = _file(name)
        if file:
            stream = io.BytesIO()
            with suppress(RecursionError, pickle.PicklingError):
                _Pickler(stream, 5).dump(result)
                write_cache_file(file, _MAGIC, stream.getvalue(), MOST_BYTES)

    def _name(self, case: Case) -> str:
        """The digest that names a case's verdict; "" where something of it cannot be read."""
        settings = {name: value for name, value in asdict(case.settings).items() if name not in _NO_VALUES}
        try:
            text = case.text if case.text is not None else Path(case.path).read_bytes()
            outside = (case.reference.where, _tensors(case.reference)) if case.reference is not None else None
        except (OSError, HostError):
            return ""
        about = (_versions(), case.name, case.path, settings, self._memory_limit, case.defaults, outside)
        return digest(about, text)


def _from_machine(result: CaseResult) -> bool:
    """Whether a result may be another one on this machine tomorrow. What lacks memory, or could not be read, is
    rejected or unsupported, and says so."""
    refused = result.status in ("rejected", "unsupported")
    return result.status not in KEPT or (refused and any(word in result.message for word in _WORDS_OF_MACHINE))


def _file(name: str) -> str:
    """The place of a verdict; "" where nothing can be kept."""
    folder = cache_folder(FOLDER)
    return os.path.join(folder, name) if folder else ""  # noqa: PTH118


def _versions() -> tuple[Any, ...]:
    return __version__, sources(), sys.version, platform.machine(), tuple(library_digests().items())


def _tensors(files: "Files") -> str:
    """A digest of all tensor files, names and contents. Raises HostError."""
    from buda_emu.emulator.inputs.reference import DirectoryFiles

    if not isinstance(files, DirectoryFiles):
        return _hashed(files)
    directory = Path(files.where)
    states: list[tuple[object, ...]] = []
    for name in files.names():
        with suppress(OSError):
            found = os.stat(directory / name)  # noqa: PTH116
            states.append((name, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return _contents(files, tuple(states))


@lru_cache(maxsize=64)  # netlists share their folder
def _contents(files: "DirectoryFiles", _: tuple[tuple[object, ...], ...]) -> str:
    return _hashed(files)


def _hashed(files: "Files") -> str:
    contents = ((name, files.read(name)) for name in files.names())
    return digest([(name, None if content is None else digest(len(content), content)) for name, content in contents])


class _Pickler(pickle.Pickler):
    """Arrays and their elements without a word of numpy's."""

    def reducer_override(self, obj: Any, /) -> Any:
        """How an array is written; everything else as it is."""
        numpy: Any = sys.modules.get("numpy")
        if numpy is None:  # then there is nothing of it either
            return NotImplemented
        if isinstance(obj, numpy.ndarray):
            return _array, (obj.tobytes(), obj.dtype.str, obj.shape)
        if isinstance(obj, numpy.generic):
            return _element, (obj.item(),)
        return NotImplemented


def _array(data: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    import numpy as np

    return np.frombuffer(data, np.dtype(dtype)).reshape(shape).copy()


def _element(value: Any) -> Any:
    return value


_NAMES: Final[dict[tuple[str, str], Any]] = {
    **{(kind.__module__, kind.__qualname__): kind for kind in _RECORDS},
    (__name__, "_array"): _array,
    (__name__, "_element"): _element,
}


SCHEMA_VERSION = 2
_MOST_BYTES = 64 << 20  # hundreds of thousands of netlists


def remember(directory: Path, results: Iterable[CaseResult]) -> None:
    """Note what of these results failed, and how long each took; of what was not run this time the last is kept."""
    path = _path(directory)
    if path is None:
        return
    known = _known(path)
    for result in results:
        name = _absolute(directory, result.netlist)
        known[name] = {"failed": result.status not in ("passed", "skipped"), "seconds": round(result.seconds, 3)}
    content = json.dumps({"schema_version": SCHEMA_VERSION, "netlists": dict(sorted(known.items()))})
    with suppress(OSError):
        if path.exists() and not path.is_file():  # who writes to a pipe waits for a reader
            path.unlink()
        write_file(path, lambda stream: stream.write(content.encode()))


def failed_last_time(directory: Path, names: Iterable[str]) -> list[str]:
    """Those of the names that failed when they were last run from this directory."""
    known = recall(directory)
    return [name for name in names if known.get(_absolute(directory, name), {}).get("failed")]


def longest_first(directory: Path, names: Iterable[str]) -> list[int]:
    """The positions of the names in the order in which to begin them: what nothing is known of, then what took longest.

    So the last worker does not begin with the longest when all others are done.
    """
    known = recall(directory)
    taken = [known.get(_absolute(directory, name), {}).get("seconds", float("inf")) for name in names]
    return sorted(range(len(taken)), key=lambda place: -taken[place])


def recall(directory: Path) -> Mapping[str, Mapping[str, Any]]:
    """Absolute path -> whether it failed and the seconds it took, when it was last run from this directory."""
    path = _path(directory)
    return _known(path) if path is not None else {}


def _known(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = json.loads(read_regular(path, _MOST_BYTES).decode("utf-8"))
        if content["schema_version"] == SCHEMA_VERSION:
            return {
                str(name): {"failed": bool(item["failed"]), "seconds": float(item["seconds"])}
                for name, item in content["netlists"].items()
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return {}


def _absolute(directory: Path, name: str) -> str:
    return os.path.normpath(directory / name)


def _path(directory: Path) -> Path | None:
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    folder = cache_folder("last-time")
    return Path(folder, f"{digest}.json") if folder else None
