"""The vendor's net2pipe and pipegen2, where `../shared/routing` has them: what they say of a netlist, or of pipes."""

import os
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from buda_emu.routing.streams.limits import LIMITS
from buda_emu.routing.streams.model import CoreUse
from shared_files import SHARED

ROUTING = SHARED / "routing"
_SOC = {"grayskull": "grayskull_120_arch.yaml", "wormhole_b0": "wormhole_b0_80_arch.yaml"}
_STREAM = re.compile(r"^ +chip_(\d+)__y_(\d+)__x_(\d+)__stream_id_(\d+):", re.M)

Core = tuple[int, int, int]  # chip, row and column of the NoC

needs_vendor_router = pytest.mark.skipif(
    not ROUTING.is_dir() or (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason=f"no programs of the vendor at {ROUTING} that run here",
)


def verdicts() -> list[tuple[Path, str]]:
    """Netlists of the corpus that need one chip only, and their architectures."""
    if not ROUTING.is_dir():
        return []
    rows = [line.split("\t") for line in (ROUTING / "verdicts.tsv").read_text().splitlines()[1:]]
    return [(SHARED / "corpus/netlists" / row[0], row[1]) for row in rows]


def pipe_graphs(netlist: Path, arch: str, out: Path) -> Iterator[Path]:
    """The `pipegen.yaml` of each epoch; none where net2pipe refuses the netlist."""
    if _run("net2pipe", arch, netlist, out, 0, ROUTING / "soc" / _SOC[arch]).returncode:
        return
    for epoch in sorted(out.glob("temporal_epoch_*"), key=lambda path: int(path.name.rsplit("_", 1)[1])):
        yield epoch / "overlay/pipegen.yaml"


def streams(pipes: Path, arch: str) -> tuple[dict[Core, set[int]] | None, str]:
    """Ids of the streams of each core that pipegen2 allocates; None, and what it says, where it refuses."""
    blob = pipes.with_name("blob.yaml")
    done = _run("pipegen2", arch, pipes, ROUTING / "soc" / _SOC[arch], blob, 0, 0)
    if done.returncode:
        return None, (done.stdout + done.stderr).decode(errors="replace")
    found: dict[Core, set[int]] = defaultdict(set)
    for chip, y, x, stream in _STREAM.findall(blob.read_text()):
        found[int(chip), int(y), int(x)].add(int(stream))
    return dict(found), ""


def ours(cores: tuple[CoreUse, ...], arch: str) -> dict[Core, set[int]]:
    """The same of what we allocate."""
    limits = LIMITS[arch]
    found: dict[Core, set[int]] = {}
    for core in cores:
        chip, row, column, ethernet = core.place
        place = (chip, row, column) if ethernet else (chip, limits.rows[row], limits.columns[column])
        found[place] = {stream.id for stream in core.streams}
    return found


def _run(program: str, arch: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    command = [ROUTING / "bin" / arch / program, *map(str, words)]
    return subprocess.run(command, env={**os.environ, "ARCH_NAME": arch}, capture_output=True, timeout=600, check=False)
