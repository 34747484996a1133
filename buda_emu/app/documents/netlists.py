"""Load, check, summarise and time a netlist through the interface that documents of every kind have."""

from typing import IO, TYPE_CHECKING

from buda_emu.netlist import load as netlists
from buda_emu.netlist.load import NetlistResult
from buda_emu.netlist.model import Netlist
from buda_emu.support.checker import Options
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture
    from buda_emu.spec.boards import Cluster


@dataclass(frozen=True, slots=True)
class NetlistDocument:
    """A netlist that was opened from a file."""

    path: str
    netlist: Netlist

    def summary(self) -> dict[str, int | str]:
        """Return architecture, chips, numbers of objects and programs, by name."""
        netlist = self.netlist
        return {
            "arch": netlist.arch_name,
            "chips": len({graph.target_device for graph in netlist.graphs.values()}),
            "graphs": len(netlist.graphs),
            "ops": len(netlist.ops),
            "queues": len(netlist.queues),
            "programs": ", ".join(netlist.programs),
        }

    def timeline(self) -> "TimelinePicture":
        """Return a picture of the modelled cycles of all programs, with their default parameters."""
        from buda_emu.app.api.perf import perf
        from buda_emu.report.pictures.epoch_picture import run_picture

        return run_picture(perf(self.path).run)


def load(path: str) -> NetlistDocument:
    """Load a netlist for its default architecture. Raises NetlistError."""
    return NetlistDocument(path, netlists.load(path))


def check_file(path: str, options: Options) -> NetlistResult:
    """Check a netlist file; a strict check also routes it. Raises HostError for the file of a cluster that cannot be
    read."""
    if options.strict:
        from buda_emu.performance.routing import checking  # only a strict check makes pipes and streams

        return checking.check(path, options.arch, cache=options.cache, cluster=cluster_of(options))
    return netlists.check(path, options.arch, cache=options.cache)


def check_stream(stream: IO[bytes], options: Options) -> NetlistResult:
    """Check a netlist that is read from a stream, as `check_file` does."""
    if options.strict:
        from buda_emu.performance.routing import checking

        return checking.check_bytes(stream.read(), "-", options.arch, cluster=cluster_of(options))
    return netlists.check_bytes(stream.read(), "-", options.arch)


def cluster_of(options: Options) -> "Cluster | None":
    """Read the file of the cluster that the options name, None without one. Raises HostError."""
    if options.cluster is None:
        return None
    from buda_emu.spec.boards import read_cluster

    return read_cluster(options.cluster)
