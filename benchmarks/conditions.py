"""What every benchmark prints about where it ran, and where the shared corpus lies."""

import os
import platform
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("BUDA_EMU_SHARED") or ROOT.parent / "shared")


def conditions() -> str:
    """Return interpreter, processor count and load of this machine as one line."""
    load, _, _ = os.getloadavg()
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}"


def processor() -> str:
    """Return the name of the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def public_netlists() -> list[Path]:
    """Return the netlists of the corpus, smallest first; none without the corpus."""
    return sorted((SHARED / "corpus" / "netlists").rglob("*.yaml"), key=lambda path: (path.stat().st_size, path))
