"""What the parts of a release share: commands, digests, and the error of a step that failed."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ReleaseError(Exception):
    """A step failed, for the reason that it says."""


def run(command: Sequence[str | os.PathLike[str]], cwd: Path = ROOT, **environment: str) -> str:
    """Run a command and return what it printed. Raises ReleaseError with all of that where it fails."""
    words = [str(word) for word in command]
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env={**clean, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def digest(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
