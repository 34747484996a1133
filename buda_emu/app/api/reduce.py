"""`be.reduce`: finds the smallest netlist on which a command still fails (docs/stress/reduce.md)."""

from os import PathLike

from buda_emu.app.api.load import load
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.netlist.load import YAML_SUFFIXES
from buda_emu.netlist.model import Netlist
from buda_emu.support.options import document_path, integer_of, seconds_of, with_hints
from buda_emu.testing.reduce.search import Progress, Reduction, Trials, reduce_netlist


@with_hints
def reduce(
    netlist: "str | PathLike[str] | Netlist",
    command: str,
    *,
    timeout: float = 60,
    workers: int | None = None,
    any_failure: bool = False,
    most_trials: int | None = None,
    progress: Progress | None = None,
) -> Reduction:
    """Shrink a netlist as long as a shell command still fails on it.

    `{}` in the command stands for the file's name, which otherwise follows the command. Failing is any exit code but 0,
    a signal, or no end within `timeout` seconds; a smaller netlist has to fail in the same way, or with `any_failure`
    in any. `workers` trials run at once (default: one for each processor), which does not change the result. At most
    `most_trials` are run. Each netlist that is tried is one that `buda_emu.load` accepts.

    Raises NetlistError if the netlist is refused, and HostError if the command does not fail on it.
    """
    timeout = seconds_of(timeout)
    most_trials = integer_of("most_trials", 1, optional=True)(most_trials)
    workers = integer_of("workers", 1, optional=True)(workers)
    if not isinstance(netlist, Netlist):
        netlist = load(document_path(netlist, "reduce"))
    trials = Trials(command, _file_name(netlist.path), timeout, workers or usable_processors())
    try:
        return reduce_netlist(netlist, trials, any_failure=any_failure, most_trials=most_trials, progress=progress)
    finally:
        trials.close()


def _file_name(path: str) -> str:
    """Return the name of the files that the command gets: that of the netlist's file, or `netlist.yaml` where the path
    names no YAML file."""
    name = path.replace("\\", "/").rpartition("/")[2]
    if name.lower().endswith(YAML_SUFFIXES):
        return name
    return "netlist.yaml"
