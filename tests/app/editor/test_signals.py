"""The language server ends on a signal while it waits for its client."""

import json
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pygls")
START = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_that_waits(number, child_environment):
    command = [sys.executable, "-m", "buda_emu", "lsp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=child_environment, **pipes) as server:
        body = json.dumps(START).encode()
        server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-Length: ")  # it serves
        server.send_signal(number)
        try:
            assert server.wait(timeout=20) == 128 + number  # its input is still open
        finally:
            server.kill()
