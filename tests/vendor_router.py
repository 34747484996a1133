"""The vendor's two programs between a netlist and a chip (../shared/routing), where they are: what one of them refuses
never runs on silicon."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from shared_files import SHARED

ROUTING = SHARED / "routing"
_CHIPS = {"grayskull": "grayskull_120_arch.yaml", "wormhole_b0": "wormhole_b0_80_arch.yaml"}
ARCHS = tuple(_CHIPS)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TOLD = re.compile(r"ERROR|exceeded|limit:|out of")

needs_router = pytest.mark.skipif(not (ROUTING / "bin").exists(), reason="needs ../shared/routing")


def refusal(text: str, arch: str, folder: Path, *, pipes_only: bool = False) -> str:
    """What they say against a netlist, "" where both take it; `pipes_only`: the first one alone."""
    netlist, out, chip = folder / "netlist.yaml", folder / "out", ROUTING / "soc" / _CHIPS[arch]
    out.mkdir(parents=True, exist_ok=True)
    netlist.write_text(text)
    said = _said(arch, "net2pipe", netlist, out, 0, chip)
    if said or pipes_only:
        return said
    for epoch in sorted(out.glob("temporal_epoch_*")):
        number = epoch.name.rsplit("_", 1)[1]
        words = epoch / "overlay/pipegen.yaml", chip, epoch / "overlay/blob.yaml", number, 0
        said = _said(arch, "pipegen2", *words)
        if said:
            return f"epoch {number}: {said}"
    return ""


def _said(arch: str, tool: str, *words: object) -> str:
    """ "" where the program ends well."""
    done = subprocess.run(
        [ROUTING / "bin" / arch / tool, *map(str, words)],
        cwd=ROUTING, env={**os.environ, "ARCH_NAME": arch}, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return ""
    lines = _COLOURS.sub("", (done.stdout + done.stderr).decode(errors="replace")).splitlines()
    told = [line.strip() for line in lines if _TOLD.search(line)]
    return f"{tool}: {' | '.join(dict.fromkeys(told))[:600] or lines[-1:]}"
