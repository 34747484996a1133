"""Names of the parameters that programs take, and of those that callers give (NETLIST 3.7)."""

from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.variants import LOOP
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.options import SettingsName

T = TypeVar("T")


class Cache(NamedTuple):
    """The parameters of a program that writes caches: the first slot, and two loops that move on from there."""

    write_index: str = "$p_cache_write_index"
    inner_count: str = "$p_inner_loop_count"
    inner_increment: str = "$p_inner_increment"
    outer_count: str = "$p_outer_loop_count"
    outer_increment: str = "$p_outer_increment"


CACHE: Final = Cache()


def parameters_of_rounds(count: int, write_index: int = 0) -> dict[str, str]:
    """Return the loop and cache parameters for `count` rounds of inputs, of which the first writes the slot
    `write_index` of the caches and each other one the slot behind that of the round before."""
    return {
        LOOP: str(count),
        CACHE.write_index: str(write_index),
        CACHE.inner_count: "1",
        CACHE.inner_increment: "0",
        CACHE.outer_count: str(count),
        CACHE.outer_increment: "1",
    }


def parameter_names(programs: Iterable[Program]) -> dict[str, None]:
    """Return every parameter that the programs take, as written, in order."""
    names: dict[str, None] = {}
    for program in programs:
        names.update(dict.fromkeys(program.parameters))
    return names


def values_for(program: Program, values: Mapping[str, T]) -> dict[str, T]:
    """Return those of the values, by names of parameters as written, that a program takes."""
    return {name: values[name] for name in parameter_names([program]) if name in values}


def no_program(netlist: Netlist, name: object) -> HostError:
    """Return the error for the name of a program that does not exist, with the one that was probably meant."""
    listing = f"programs: {', '.join(netlist.programs)}"
    if isinstance(name, str):
        return HostError(f"no program {name!r}{_hint(name, netlist.programs)}; {listing}")
    return HostError(f"no program {name!r}; {listing}")


def _hint(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant as a part of a message, "" where none is near."""
    hint = near(name, names)
    if hint:
        return f" ({hint})"
    return ""


def declared_name(name: str, names: Container[str]) -> str:
    """Return a caller's name of a parameter with the `$` that may be left out; `names` are those that programs
    declare."""
    if name in names or name.startswith("$"):
        return name
    return f"${name}"


def with_declared_names(programs: Iterable[Program], parameters: Mapping[str, T]) -> dict[str, T]:
    """Return the caller's parameters under the names that programs declare: the `$` may be left out. Names of a
    settings file are left out where no program takes them.

    Raises HostError for any other name, most likely misspelt, and for one that is given with and without `$`.
    """
    names = parameter_names(programs)
    declared: dict[str, T] = {}
    for name, value in parameters.items():
        full_name = declared_name(name, names)
        if full_name not in names and isinstance(name, SettingsName):
            continue
        if full_name not in names:
            listing = ", ".join(names) or "none"
            raise HostError(
                f"no program takes the parameter {full_name}{_hint(full_name, names)}; parameters: {listing}"
            )
        if full_name in declared:
            raise HostError(f"parameter {full_name} is given twice, with and without $")
        declared[full_name] = value
    return declared
