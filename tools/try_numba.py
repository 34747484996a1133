"""Tries kernels with another numba: those at both ends of what pyproject.toml allows, or the newest that there is.

    python tools/try_numba.py                  the newest; for a job that runs now and then
    python tools/try_numba.py 0.62.0 0.68.1    these, each in an environment of its own

Numba's private names (docs/jit.md) may mean something else in any version. So everything is compiled anew, in caches of
their own, and what compiles and what is compiled are tested. Prints a line for each version; exit code 1 if one failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/arithmetic/jit",
    "tests/arithmetic/kernels",
    "tests/arithmetic/tensix/products",
    "tests/emulator/runtime/graph/test_worker_pool.py",
)
NEEDED = ("pytest>=8.2", "hypothesis>=6.100", "ml_dtypes>=0.4")


def main() -> int:
    """Try the versions that are named, or the newest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="*", help="of numba; the newest if none is given")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what pytest runs")
    args = parser.parse_args()
    passed = [try_version(version, args.tests) for version in args.version or [""]]
    return int(not all(passed))


def try_version(version: str, tests: tuple[str, ...]) -> bool:
    """Return whether the tests pass with a version of numba ("": the newest) in a new environment."""
    with tempfile.TemporaryDirectory(prefix="buda-emu-numba-") as folder:
        environment = Path(folder, "environment")
        venv.create(environment, with_pip=True)
        python = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        variables = os.environ | {"XDG_CACHE_HOME": str(Path(folder, "caches")), "BUDA_EMU_SHARED": folder}
        numba = f"numba=={version}" if version else "numba"  # beyond our bound, too
        passed = (
            _run([*pip, "--editable", str(ROOT), *NEEDED], variables)
            and _run([*pip, "--upgrade", numba], variables)
            and _run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], variables)
        )
        print(f"{_versions(python)}: {'passed' if passed else 'FAILED'}", flush=True)
        return passed


def _run(command: list[str], variables: Mapping[str, str]) -> bool:
    """Return whether a command succeeds."""
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0


def _versions(python: str) -> str:
    """Return the versions of numba, llvmlite and numpy in an environment."""
    code = "import numba, llvmlite, numpy\nfor n in numba, llvmlite, numpy: print(n.__name__, n.__version__, end=' ')"
    process = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return process.stdout.strip() or "no numba"


if __name__ == "__main__":
    sys.exit(main())
