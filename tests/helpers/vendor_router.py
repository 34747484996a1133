"""The vendor's net2pipe and pipegen2, where somebody has them: what they say of a netlist, or of pipes.

`BUDA_EMU_ROUTER` names a folder with `bin/ARCH/net2pipe` and `bin/ARCH/pipegen2`. What they said of many netlists is
recorded (`router_vectors`), so most of what is known of them is tested without them.
"""

import os
import platform
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from buda_emu.performance.routing.streams.model import LIMITS, UNUSED_L1, CoreUse, Place
from core_streams import Core, Streams
from router_vectors import VECTORS

_FOLDER = os.environ.get("BUDA_EMU_ROUTER", "")
_PROGRAMS = Path(_FOLDER) / "bin"
_SOC = {"grayskull": "grayskull_120_arch.yaml", "wormhole_b0": "wormhole_b0_80_arch.yaml"}
ARCHS = tuple(_SOC)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TOLD = re.compile(r"ERROR|exceeded|limit:|out of")
_STREAM = re.compile(r"^ +chip_(\d+)__y_(\d+)__x_(\d+)__stream_id_(\d+):", re.M)
_STREAM_OR_ADDRESS = re.compile(
    _STREAM.pattern + r"|^ +(?:buf_addr|buf_base_addr|msg_info_buf_addr): (0x[0-9a-f]+)", re.M
)

_HIGH_USE = re.compile(
    r"WARNING: op (\S+) has high stream/blob resource usage:\s+phases in input-side blob: (\d+)"
    r"\s+phases in output-side blob: (\d+)\s+streams in output-side fork: (\d+)"
)
_MANY_READS = re.compile(r"WARNING: op (\S+) has a hign number of DRAM read indexes = (\d+)")

AVAILABLE = bool(_FOLDER) and _PROGRAMS.is_dir() and (platform.system(), platform.machine()) == ("Linux", "x86_64")
needs_vendor_router = pytest.mark.skipif(
    not AVAILABLE, reason="BUDA_EMU_ROUTER names no folder with programs of the vendor that run here"
)


def pipe_graphs(netlist: Path, arch: str, out: Path) -> Iterator[Path]:
    """The `pipegen.yaml` of each epoch; none where net2pipe refuses the netlist."""
    if _run("net2pipe", arch, netlist, out, 0, _soc(arch)).returncode:
        return
    yield from epoch_pipes(out)


def epoch_pipes(out: Path) -> list[Path]:
    """The `pipegen.yaml` of each epoch that net2pipe wrote, in order."""
    epochs = sorted(out.glob("temporal_epoch_*"), key=lambda path: int(path.name.rsplit("_", 1)[1]))
    return [epoch / "overlay/pipegen.yaml" for epoch in epochs]


def refusal(text: str, arch: str, folder: Path, *, pipes_only: bool = False, chips: int = 1, cluster: str = "") -> str:
    """What the programs say against a netlist, "" where both take it; `pipes_only`: net2pipe alone; several `chips`
    stand in a row, each connected with the next; `cluster`: the text of another description."""
    netlist, out = folder / "netlist.yaml", folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    netlist.write_text(text)
    words: list[object] = [netlist, out, 0, _soc(arch)]
    if chips > 1 or cluster:
        (folder / "cluster.yaml").write_text(cluster or row_of_chips(arch, chips))
        words.append(folder / "cluster.yaml")
    done = _run("net2pipe", arch, *words)
    if done.returncode or pipes_only:
        return _told("net2pipe", done)
    for epoch in sorted(out.glob("temporal_epoch_*")):
        number = epoch.name.rsplit("_", 1)[1]
        given = epoch / "overlay/pipegen.yaml", _soc(arch), epoch / "overlay/blob.yaml", number, 0
        if said := _told("pipegen2", _run("pipegen2", arch, *given)):
            return f"epoch {number}: {said}"
    return ""


def row_of_chips(arch: str, chips: int) -> str:
    """A cluster's file (NETLIST 7.3): chips in a row, on wormhole_b0 four links between neighbours (PERF 1)."""
    near = [(n, n + 1, channel) for n in range(chips - 1) for channel in range(4)] if arch == "wormhole_b0" else []
    lines = [f"arch: {{{', '.join(f'{n}: {arch.capitalize()}' for n in range(chips))}}}"]
    lines += [f"chips: {{{', '.join(f'{n}: [{n}, 0, 0, 0]' for n in range(chips))}}}", "ethernet_connections:"]
    lines += [f"  - [{{chip: {a}, chan: {c}}}, {{chip: {b}, chan: {8 + c}}}]" for a, b, c in near] or ["  []"]
    lines += [f"chips_with_mmio: [{', '.join(f'{{{n}: {n}}}' for n in range(chips))}]", "harvesting:"]
    lines += [f"  {n}: {{noc_translation: false, harvest_mask: 0}}" for n in range(chips)]
    return "\n".join(lines) + "\n"


def pipe_warnings(text: str, arch: str, folder: Path) -> set[tuple[str, str, int]] | None:
    """What net2pipe warns of: our rule for it, the op, and the number; None where it refuses the netlist."""
    netlist = folder / "netlist.yaml"
    netlist.write_text(text)
    done = _run("net2pipe", arch, netlist, folder / "out", 0, _soc(arch), LOGGER_LEVEL="Trace")
    if done.returncode:
        return None
    found: set[tuple[str, str, int]] = set()
    said = _COLOURS.sub("", (done.stdout + done.stderr).decode(errors="replace"))
    for name, received, sent, forks in _HIGH_USE.findall(said):
        found |= {("V358", name, int(received) + int(sent))} if int(received) + int(sent) > 1800 else set()
        found |= {("V357", name, int(forks))} if int(forks) > 16 else set()
    return found | {("V360", name, int(number)) for name, number in _MANY_READS.findall(said)}


def _told(program: str, done: subprocess.CompletedProcess[bytes]) -> str:
    """ "" where it ended well."""
    if done.returncode == 0:
        return ""
    lines = _COLOURS.sub("", (done.stdout + done.stderr).decode(errors="replace")).splitlines()
    told = [line.strip() for line in lines if _TOLD.search(line)]
    return f"{program}: {' | '.join(dict.fromkeys(told))[:600] or lines[-1:]}"


def streams(pipes: Path, arch: str) -> tuple[dict[Core, Streams] | None, str]:
    """The streams of each core that pipegen2 allocates; None, and what it says, where it refuses."""
    blob = pipes.with_name("blob.yaml")
    done = _run("pipegen2", arch, pipes, _soc(arch), blob, 0, 0)
    if done.returncode:
        return None, (done.stdout + done.stderr).decode(errors="replace")
    found: dict[Core, Counter[int]] = defaultdict(Counter)
    text = blob.read_text()
    for chip, y, x, stream in _STREAM.findall(text, _first_phase(text)):
        found[int(chip), int(y), int(x)][int(stream)] += 1
    return {core: Streams(phases) for core, phases in found.items()}, ""


def stream_counts(pipes: Path, arch: str) -> dict[Place, int]:
    """How many streams each core has in the blob that pipegen2 wrote beside its pipes."""
    limits = LIMITS[arch]
    text = pipes.with_name("blob.yaml").read_text()
    found: dict[Place, set[str]] = defaultdict(set)
    for chip, y, x, stream in _STREAM.findall(text, _first_phase(text)):
        row, column = int(y), int(x)
        ethernet = (row, column) in limits.ethernet_cores
        place = (row, column) if ethernet else (limits.rows.index(row), limits.columns.index(column))
        found[Place(int(chip), *place, ethernet)].add(stream)
    return {place: len(ids) for place, ids in found.items()}


def _first_phase(blob: str) -> int:
    begin = re.search(r"^phase_", blob, re.M)
    assert begin is not None
    return begin.start()


def lowest_addresses(pipes: Path, arch: str) -> dict[Core, int]:
    """Where the data buffers of each worker core begin, in the blob that pipegen2 wrote; they end where L1 does."""
    blob = pipes.with_name("blob.yaml").read_text()
    found: dict[Core, int] = {}
    core = (0, 0, 0)
    for chip, y, x, _, address in _STREAM_OR_ADDRESS.findall(blob, _first_phase(blob)):
        if chip:
            core = (int(chip), int(y), int(x))
        elif int(address, 16) >= LIMITS[arch].l1_begin:  # before it lies one buffer of tile headers
            found[core] = min(found.get(core, LIMITS[arch].l1_end), int(address, 16))
    return found


def our_lowest_addresses(cores: tuple[CoreUse, ...], arch: str) -> dict[Core, int]:
    """The same of what we allocate, where no queues are tracked in L1, which the blob gives no address of."""
    limits = LIMITS[arch]
    return {
        (core.place.chip, limits.rows[core.place.row], limits.columns[core.place.column]): (
            limits.l1_end - UNUSED_L1 - core.stream_bytes - core.tile_header_bytes
        )
        for core in cores
        if not core.place.ethernet
    }


def _run(program: str, arch: str, *words: object, **settings: str) -> subprocess.CompletedProcess[bytes]:
    command = [_PROGRAMS / arch / program, *map(str, words)]
    environment = {**os.environ, "ARCH_NAME": arch, **settings}
    return subprocess.run(command, env=environment, capture_output=True, timeout=600, check=False)


def _soc(arch: str) -> Path:
    """The vendor's description of one chip."""
    return VECTORS / "soc" / _SOC[arch]
