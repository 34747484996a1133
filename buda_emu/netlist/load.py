"""Load netlists: `check` reports findings, `load` returns a netlist or raises them as NetlistError."""

import re
from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.yaml_reader import StrPath, UnreadableError, decode, read_bytes, split_lines
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker import CheckResult, Diagnostic
from buda_emu.support.checker.render import render, with_source_lines
from buda_emu.support.errors import NetlistError
from buda_emu.support.garbage import no_collections
from buda_emu.support.options import document_path, require_choice, small_letters, with_hints
from buda_emu.support.records import dataclass

_IGNORES = "buda: ignore"  # no comment that silences findings is without it (buda_emu.netlist.ignores)


@dataclass(frozen=True, slots=True, repr=False)
class NetlistResult(CheckResult[Netlist]):
    """Result of a check: the findings, and the netlist. `netlist` is None exactly when a finding is an error."""

    @property
    def netlist(self) -> Netlist | None:
        """Return the netlist, or None if it is refused."""
        return self.document


@with_hints
def check(path: StrPath, arch: str | None = None, *, strict: bool = False, cache: bool = True) -> NetlistResult:
    """Read a netlist file and check it as the reference's parser does. The file's content never raises an exception.

    `arch` selects one architecture of a list in `devices.arch` (default: wormhole_b0 if listed, else the first); a
    netlist with a single architecture is read for it in any case. `strict` turns findings of the device's compiler and
    runtime into errors. With `cache`, an accepted netlist is stored in the user's caches and taken from there the next
    time (docs/run/cache.md). Raises HostError for a text in place of a path, for what is no path, and for an `arch`
    that is no text.
    """
    document_path(path, "check")
    name = str(path)
    try:
        data = read_bytes(path)
        if not cache:
            return check_bytes(data, name, arch, strict=strict)
        return _check_through_cache(data, name, small_letters("arch", arch), strict)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(name),))


def _check_through_cache(data: bytes, path: str, arch: str | None, strict: bool) -> NetlistResult:
    """Check the bytes of a netlist file, or take the result from the cache; accepted netlists are stored there.

    Raises UnreadableError where the bytes are not UTF-8 text.
    """
    from buda_emu.netlist.cache import NetlistCache

    entry = NetlistCache(data, path, arch, strict)
    with no_collections():
        stored = entry.read()
        if stored is not None:
            return NetlistResult(*stored)
        result, root = _check(decode(data), path, arch, strict)
        if result.netlist is not None and root is not None and _uses_only_built_in_ops(result.netlist):
            entry.write((result.netlist, result.diagnostics), root)
    return result


def _uses_only_built_in_ops(netlist: Netlist) -> bool:
    """Return whether this package declares all op types. Those of other packages may change before the next load."""
    return all(OP_TYPES.is_own(op.type) for op in netlist.ops.values())


def check_bytes(data: bytes, path: str, arch: str | None = None, *, strict: bool = False) -> NetlistResult:
    """Check the bytes of a netlist file, without the cache. `path` is the name that findings give; `arch` and `strict`
    are as in `check`, HostError for an `arch` that is no text included."""
    try:
        text = decode(data)
    except UnreadableError as error:
        return NetlistResult(None, (error.diagnostic(path),))
    return check_text(text, path, arch, strict=strict)


def check_text(text: str, path: str = "<text>", arch: str | None = None, *, strict: bool = False) -> NetlistResult:
    """Check the text of a netlist, without the cache. `path` is the name that findings give; `arch` and `strict` are as
    in `check`, HostError for an `arch` that is no text included."""
    with no_collections():
        return _check(text, path, small_letters("arch", arch), strict)[0]


def _check(text: str, path: str, arch: str | None, strict: bool) -> tuple[NetlistResult, Mapping | None]:
    """Check a text, silence the findings that its comments ignore, and attach fixes to the others. Returns the result
    and the YAML tree of the text, None for a text that is no YAML map."""
    from buda_emu.netlist.build import check_text  # reader and rules: only where the cache has no result

    netlist, root, findings = check_text(text, path, arch, strict)
    ignores = has_ignores(text)
    lines = split_lines(text) if findings or ignores else []
    if ignores:
        from buda_emu.netlist.ignores import apply_ignores

        findings = apply_ignores(findings, lines, path)
    if findings:
        from buda_emu.netlist.fixes import attach_fixes

        findings = attach_fixes(findings, text)
    diagnostics = tuple(sorted(with_source_lines(dict.fromkeys(findings), lines), key=_sort_key))
    if netlist is None or any(finding.severity == "error" for finding in diagnostics):
        return NetlistResult(None, diagnostics), root
    return NetlistResult(replace(netlist, diagnostics=diagnostics), diagnostics), root


def has_ignores(text: str) -> bool:
    """Return whether a text may hold comments that silence findings (`buda_emu.netlist.ignores`)."""
    return _IGNORES in text


def _sort_key(finding: Diagnostic) -> tuple[int, int, str]:
    """Return the order of findings: by line, column and rule."""
    return finding.line, finding.column, finding.rule


def load(path: StrPath, arch: str | None = None, *, cache: bool = True) -> Netlist:
    """Return a netlist that is ready to run; `arch` and `cache` are as in `check`. Raises NetlistError with all
    findings when the netlist is refused or is not for `arch`, and HostError as `check` and for an unknown `arch`."""
    document_path(path, "load")
    word = small_letters("arch", arch)
    if word is not None:
        require_choice("arch", word, tuple(ARCHS))
    result = check(path, arch, cache=cache)
    diagnostics = result.diagnostics
    if arch is not None and result.netlist is not None and result.netlist.arch_name != arch.lower():
        # `check` only warns, as the reference goes on; a caller that names an architecture must not get another one.
        diagnostics = tuple(
            replace(finding, severity="error") if finding.rule == "V002" else finding for finding in diagnostics
        )
    elif result.netlist is not None:
        return result.netlist
    raise NetlistError(render(diagnostics), diagnostics)


YAML_SUFFIXES: Final = (".yaml", ".yml")
"""Ends of the names of YAML files, in small letters: names are compared without case."""
_SECTION: Final = re.compile(rb"^(devices|queues|graphs|programs)[ \t]*:", re.MULTILINE)
_MOST_BYTES: Final = 16 << 20  # larger files are not netlists, and some have no end
_LEAST_SECTIONS: Final = 2  # other YAML files are something else


def looks_like_netlist(path: str) -> bool:
    """Return whether a file in a folder is a netlist, by its name and its sections. True for a YAML file that cannot
    be read, so that opening it reports the reason."""
    return path.lower().endswith(YAML_SUFFIXES) and holds_sections(path)


def may_be_cut_off(path: str) -> bool:
    """Return whether a YAML file in a folder, which `looks_like_netlist` refuses, may be what is left of a netlist: it
    is empty, or has a single section of one."""
    return path.lower().endswith(YAML_SUFFIXES) and _section_count(path) in (_EMPTY, 1)


def holds_sections(path: str) -> bool:
    """Return whether a file, of any name, holds at least two of a netlist's sections. True for a file that cannot
    be read, so that opening it reports the reason.
    """
    return _section_count(path) >= _LEAST_SECTIONS


_EMPTY: Final = -1  # no number of sections


def _section_count(path: str) -> int:
    """Return how many sections of a netlist begin in the first `_MOST_BYTES` of a file; `_EMPTY` for one without any
    text. A file that cannot be read counts as a netlist (`_LEAST_SECTIONS`), so that opening it reports why."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than all of this
            data = file.read(_MOST_BYTES)
    except OSError:
        return _LEAST_SECTIONS
    if not data.strip():
        return _EMPTY
    return len({match[1] for match in _SECTION.finditer(data)})
