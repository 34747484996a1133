"""Answers of a Dask cluster that have not the form of Dask's: an error in one line, and no traceback."""

import socket
import subprocess
import sys

import pytest

from buda_emu.app.cli.main import main
from case_functions import until
from shared_files import ROOT

pytest.importorskip("distributed", reason="the extra `dask` is not installed")

NETLIST = str(ROOT / "netlists" / "matmul.yaml")


LIES = """
import distributed.protocol as protocol
dumps = protocol.__dict__.setdefault("honest", protocol.dumps)  # Dask executes this file twice

def lie(message, *more, **named):
    if isinstance(message, dict) and "compression" not in message:  # not the greeting of a connection
        message = {**message, "zz": 1}
    elif isinstance(message, (list, tuple)) and message and all(isinstance(part, dict) for part in message):
        message = [{**part, "zz": 1} for part in message]
    return dumps(message, *more, **named)

protocol.dumps = lie
"""


@pytest.fixture
def lying_scheduler(tmp_path, child_environment):
    """The address of a scheduler each of whose messages has an entry that does not belong there."""
    (tmp_path / "lies.py").write_text(LIES)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--preload", str(tmp_path / "lies.py")]
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *words],
        env=child_environment,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )

    def listens():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert until(listens)
        yield f"tcp://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_an_answer_of_another_form_is_an_error_in_one_line(lying_scheduler, capfd):
    assert main(["test", NETLIST, "--no-cache", "-q", "--dask", lying_scheduler]) == 2
    assert f"buda-emu: the answer of the Dask scheduler at {lying_scheduler} makes no sense (" in capfd.readouterr().err
