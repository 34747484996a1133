"""Rules of the checker that apply to a netlist: passed or broken."""

from collections.abc import Mapping
from functools import cache

from buda_emu.netlist import rules
from buda_emu.netlist.build import check_text
from buda_emu.netlist.rules import registry
from buda_emu.netlist.yaml_reader import UnreadableError, decode


@cache
def asked_of_objects() -> tuple[str, ...]:
    """Ids of the rules that are asked of objects; the others are found where something is read or made."""
    return tuple(sorted({check.rule.id for kind in registry.EVERY_KIND for check in kind.all}))


@cache
def found_by_check() -> tuple[str, ...]:
    """Ids of the rules that `check` finds broken without `--strict`."""
    return tuple(name for name in rules.RULES if name not in rules.NOT_CHECKED | rules.ROUTED)


def outcomes(text: bytes, path: str, arch: str | None) -> Mapping[str, tuple[str, ...]]:
    """By list the rules that the text of a netlist passes, and those that it breaks; others are not asked of it."""
    asked: set[str] = set()
    try:
        _, _, found = check_text(
            decode(text), path, arch.lower() if arch is not None else None, strict=False, asked=asked
        )
    except UnreadableError as error:
        found = [error.diagnostic(path)]
    broken = {item.rule for item in found}
    return {"rules passed": tuple(sorted(asked - broken)), "rules broken": tuple(sorted(broken))}
