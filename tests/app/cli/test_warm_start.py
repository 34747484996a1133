"""A second process runs on kernels that the first one compiled."""

import os
import subprocess
import sys

import pytest

from shared_files import ROOT


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled or cached")
def test_compiled_kernels_serve_another_process(tmp_path, child_environment):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    printed, out = [], tmp_path / "out"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "buda_emu", "run", "-q", "netlists/softmax.yaml", "--outputs", str(out)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert printed[0] == printed[1]
    assert printed[0]
    assert any((tmp_path / "cache").rglob("*.o"))
