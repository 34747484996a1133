"""Loading: text -> Netlist or findings. `load` for those who want a netlist, `check` for those who want to know."""

import re
from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.yaml_reader import StrPath, UnreadableError, decode, read_bytes, split_lines
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker import CheckResult, Diagnostic
from buda_emu.support.checker.render import render, with_source_lines
from buda_emu.support.errors import NetlistError
from buda_emu.support.garbage import no_collections
from buda_emu.support.records import dataclass

_IGNORES = "buda: ignore"  # no comment that silences findings is without it (buda_emu.netlist.ignores)


@dataclass(frozen=True, slots=True)
class NetlistResult(CheckResult[Netlist]):
    """What a check found. `netlist` is None exactly when a finding is an error."""

    @property
    def netlist(self) -> Netlist | None:
        """The document."""
        return self.document


def check(path: StrPath, arch: str | None = None, *, strict: bool = False, cache: bool = True) -> NetlistResult:
    """Read and judge a netlist file, as the reference's parser does; never raises for what is in the file.

    `arch` selects one of a list in `devices.arch` (default: wormhole_b0 if listed, else the first); a netlist with a
    single architecture is read for it in any case. `strict` makes findings of the device's compiler and runtime errors.
    `cache`: keep what an accepted netlist was read as in the user's caches, and take it from there (docs/run/cache.md).
    """
    name = str(path)
    try:
        data = read_bytes(path)
        if not cache:
            return check_bytes(data, name, arch, strict=strict)
        return _through_cache(data, name, arch.lower() if arch is not None else None, strict)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(name),))


def _through_cache(data: bytes, path: str, arch: str | None, strict: bool) -> NetlistResult:
    """As `check_bytes`; accepted netlists are kept. Raises UnreadableError where the bytes are not text."""
    from buda_emu.netlist.cache import NetlistCache

    place = NetlistCache(data, path, arch, strict)
    with no_collections():
        kept = place.read()
        if kept is not None:
            return NetlistResult(*kept)
        result, root = _check(decode(data), path, arch, strict)
        if result.netlist is not None and root is not None and _is_self_contained(result.netlist):
            place.write((result.netlist, result.diagnostics), root)
    return result


def _is_self_contained(netlist: Netlist) -> bool:
    """Whether this package alone accepts it: op types of others may change or be gone the next time."""
    return all(OP_TYPES.is_own(op.type) for op in netlist.ops.values())


def check_bytes(data: bytes, path: str, arch: str | None = None, *, strict: bool = False) -> NetlistResult:
    """The same for what a file holds; `path` is the name that findings give."""
    try:
        text = decode(data)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(path),))
    return check_text(text, path, arch, strict=strict)


def check_text(text: str, path: str = "<text>", arch: str | None = None, *, strict: bool = False) -> NetlistResult:
    """The same for a text; `path` is the name that findings give."""
    with no_collections():
        return _check(text, path, arch.lower() if arch is not None else None, strict)[0]


def _check(text: str, path: str, arch: str | None, strict: bool) -> tuple[NetlistResult, Mapping | None]:
    """The result, and the tree that it was read from where there is one."""
    from buda_emu.netlist.build import check_text  # reader and rules: only where nothing was kept

    netlist, root, findings = check_text(text, path, arch, strict)
    ignores = has_ignores(text)
    lines = split_lines(text) if findings or ignores else []
    if ignores:
        from buda_emu.netlist.ignores import without_ignored

        findings = without_ignored(findings, lines, path)
    if findings:
        from buda_emu.netlist.fixes import with_fixes

        findings = with_fixes(findings, text)
    diagnostics = tuple(sorted(with_source_lines(dict.fromkeys(findings), lines), key=_place))
    if netlist is None or any(item.severity == "error" for item in diagnostics):
        return NetlistResult(None, diagnostics), root
    return NetlistResult(replace(netlist, diagnostics=diagnostics), diagnostics), root


def has_ignores(text: str) -> bool:
    """Whether comments may silence findings in a text (`buda_emu.netlist.ignores`)."""
    return _IGNORES in text


def _place(item: Diagnostic) -> tuple[int, int, str]:
    return item.line, item.column, item.rule


def load(path: StrPath, arch: str | None = None, *, cache: bool = True) -> Netlist:
    """A netlist ready to run; `arch` and `cache` as in `check`. Raises NetlistError with all findings when it is
    refused."""
    result = check(path, arch, cache=cache)
    diagnostics = result.diagnostics
    if arch is not None and result.netlist is not None and result.netlist.arch_name != arch.lower():
        # `check` warns, as the reference goes on; who asked for another architecture must not get this one.
        diagnostics = tuple(replace(item, severity="error") if item.rule == "V002" else item for item in diagnostics)
    elif result.netlist is not None:
        return result.netlist
    raise NetlistError(render(diagnostics), diagnostics)


_NAMES: Final = (".yaml", ".yml")
_SECTION: Final = re.compile(rb"^(devices|queues|graphs|programs)[ \t]*:", re.MULTILINE)
_MOST_BYTES: Final = 16 << 20  # larger files are not netlists, and some have no end
_LEAST_SECTIONS: Final = 2  # other YAML files are something else


def looks_like_netlist(path: str) -> bool:
    """Whether a file found in a folder is one. A YAML file that cannot be read is: let who opens it say why."""
    return path.endswith(_NAMES) and holds_sections(path)


def holds_sections(path: str) -> bool:
    """Whether a file has the sections of one, whatever it is called; True where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than all of this
            data = file.read(_MOST_BYTES)
    except OSError:
        return True
    return len({match[1] for match in _SECTION.finditer(data)}) >= _LEAST_SECTIONS
