"""Outputs to `-`, devices and pipes; streams that are closed or full. Nothing of it shows a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from buda_emu.app.cli.main import VERBS
from small_images import good, tar_bytes, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices and redirections of POSIX")


@pytest.fixture
def shell(root: Path, tmp_path: Path, child_environment: dict[str, str]):
    """Runs a line of shell, `$BUDA` being the command and `$NET` a netlist."""

    def run(line: str) -> "subprocess.CompletedProcess[str]":
        environment = child_environment | {
            "BUDA": f"{sys.executable} -m buda_emu",
            "NET": str(root / "netlists" / "matmul.yaml"),
        }
        return subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_a_dash_is_standard_output_and_words_go_elsewhere(shell) -> None:
    done = shell("$BUDA run $NET --json -")
    assert json.loads(done.stdout)["schema_version"] == 1
    assert "out" in done.stderr
    done = shell("$BUDA test $NET --json -")
    assert json.loads(done.stdout)["schema_version"]
    assert shell("$BUDA graph $NET -o -").stdout.startswith("<svg")


def test_standard_output_by_its_name_keeps_what_was_printed(shell, tmp_path: Path) -> None:
    assert shell("(echo before; $BUDA run $NET -q --json /dev/stdout; echo behind) > all").returncode == 0
    first, *middle, last = (tmp_path / "all").read_text().splitlines()
    assert (first, last) == ("before", "behind")
    assert json.loads("\n".join(middle))["schema_version"] == 1


def test_a_pipe_that_nobody_reads_to_its_end(shell) -> None:
    done = shell("$BUDA run $NET -q --json - | head -c 1")
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("$BUDA check $NET >&-", 0, ""),
        ("$BUDA check $NET 2>&-", 0, ""),
        ("$BUDA check $NET >&- 2>&- <&-", 0, ""),
        ("$BUDA check nothing 2>&-", 2, ""),
        ("$BUDA check $NET > /dev/full", 2, "buda-emu: <stdout>: No space left on device\n"),
        ("$BUDA graph $NET -o /dev/full", 2, "buda-emu: /dev/full: No space left on device\n"),
        ("$BUDA graph $NET -o missing/x.svg", 2, "buda-emu: missing/x.svg: there is no folder missing\n"),
        ("$BUDA graph $NET -o .", 2, "buda-emu: .: Is a directory\n"),
        ("$BUDA graph $NET -o /dev/null", 0, ""),
    ],
)
def test_streams_and_files_that_cannot_be_written(shell, line: str, code: int, error: str) -> None:
    done = shell(line)
    assert (done.returncode, done.stderr) == (code, error)


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("$BUDA lsp <&-", 2, "buda-emu: lsp: standard input is closed\n"),
        ("$BUDA lsp >&- </dev/null", 2, "buda-emu: lsp: standard output is closed\n"),
        ("$BUDA debug --dap <&-", 2, "buda-emu: debug --dap: standard input is closed\n"),
        ("$BUDA debug --dap >&- </dev/null", 2, "buda-emu: debug --dap: standard output is closed\n"),
        ("$BUDA debug --dap 2>&- </dev/null", 0, ""),
        ("$BUDA debug --dap <&- >&- 2>&-", 2, ""),
        ("$BUDA debug $NET -q <&-", 0, ""),
        ("$BUDA debug $NET -q -e where >&- 2>&- <&-", 0, ""),
        ("$BUDA check - <&-", 2, "buda-emu: check -: standard input is closed\n"),
        ("$BUDA fmt - <&-", 2, "buda-emu: fmt -: standard input is closed\n"),
    ],
)
def test_a_verb_that_needs_a_closed_stream_says_so(shell, line: str, code: int, error: str) -> None:
    done = shell(line)
    assert (done.returncode, done.stderr) == (code, error)


CLOSED = ("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-")
LINES = (
    *VERBS,
    *(
        f"{verb} $NET"
        for verb in (
            "run -q",
            "check",
            "info",
            "test",
            "debug",
            "numerics",
            "perf",
            "advise",
            "graph",
            "route",
            "fmt",
            "diff $NET",
        )
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("words", LINES)
def test_no_verb_fails_for_closed_streams(shell, words: str, closed: str) -> None:
    done = shell(f"$BUDA {words} {closed}")
    assert done.returncode in (0, 1, 2, 3, 4), done.stderr
    assert "Traceback" not in done.stderr


linux = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are opened anew on Linux alone")
READERS = ("check", "info", "run", "test -n 2")
OTHER_READERS = (
    "check --strict", "test", "perf", "graph", "route", "fmt --check", "numerics", "faults --count 2 -n 2",
    "debug --batch -x /dev/null", "diff $NET",
)  # fmt: skip
"""Verbs that look at a document more than once, some in worker processes."""


@linux
@pytest.mark.parametrize("verb", [*READERS, *(pytest.param(verb, marks=pytest.mark.slow) for verb in OTHER_READERS)])
def test_a_pipe_is_as_good_as_a_file(shell, verb: str) -> None:
    expected = shell(f"$BUDA {verb} $NET")
    assert expected.returncode == 0, expected.stderr
    for line in ("$BUDA {verb} /dev/stdin", "$BUDA {verb} /dev/fd/7 7<&0 </dev/null"):
        done = shell(f"cat $NET | {line.format(verb=verb)}")
        assert done.returncode == 0, done.stderr
        assert done.stdout or done.stderr


@linux
def test_every_kind_of_document_is_known_through_a_pipe(shell, tmp_path: Path) -> None:
    write(tmp_path / "image.tti", tar_bytes(good()))
    for name in ("$NET", "image.tti"):
        expected = shell(f"$BUDA info {name}").stdout
        found = shell(f"cat {name} | $BUDA info /dev/stdin").stdout
        assert found.splitlines()[1:] == expected.splitlines()[1:]
        assert found.partition(": ")[2].splitlines()[0] == expected.partition(": ")[2].splitlines()[0]


@linux
def test_a_changed_document_cannot_go_back_into_a_pipe(shell) -> None:
    for name, line in (("/dev/stdin", "$BUDA fmt"), ("/dev/fd/7", "7<&0 $BUDA fmt"), ("link", "$BUDA fmt")):
        done = shell(f"ln -sf /dev/stdin link; sed 's/: /:   /' $NET | {line} {name}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"buda-emu: {name}: ")


@pytest.mark.parametrize("verb", ["check", "info", "run", "faults", "fmt", "gemini check", "vpux check", "diff $NET"])
def test_a_pipe_with_a_name_is_refused(shell, tmp_path: Path, verb: str) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    done = shell(f"timeout 60 $BUDA {verb} pipe.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pipe.yaml: a pipe can be read only once" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "opcycles /dev/zero",
        "vpux serialize empty.mlir --code a=/dev/zero",
        "faults $NET --inputs /dev/zero",
        "info /dev/zero",
        "perf $NET --against /dev/zero",
        "run $NET --inputs /dev/zero",
        "test $NET --defaults /dev/zero",
        "debug --batch -x /dev/zero $NET",
    ],
)
def test_an_endless_document_is_refused(shell, tmp_path: Path, line: str) -> None:
    (tmp_path / "empty.mlir").write_text("func.func @main(%a: memref<4xf16>) {\nreturn\n}\n")
    done = shell(f"ulimit -v 6000000; timeout 60 $BUDA {line}")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "memory" not in done.stderr


def test_what_is_written_to_a_pipe_is_not_read_from_it(shell) -> None:
    done = shell("$BUDA run $NET -q --json /dev/fd/5 5>&1 | cat")
    assert json.loads(done.stdout)["schema_version"] == 1


def test_an_interrupt_while_modules_are_imported_shows_no_traceback(shell) -> None:
    """At any time from the first instruction of the command on."""
    for microseconds in (10_000, 40_000, 150_000):
        done = shell(f"""
            {sys.executable} -c '
import os, signal, sys, threading
from buda_emu.app.cli.entry import entry
handle = signal.signal
def first(*given):
    signal.signal = handle
    before = handle(*given)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return before
signal.signal = first
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # what comes before belongs to Python
threading.Timer({microseconds / 1e6}, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv = ["buda-emu", "run", os.environ["NET"]]
entry()
' """)
        assert "Traceback" not in done.stderr
        assert done.returncode == 130


@pytest.mark.parametrize("module", ["datetime", "zlib"])
def test_an_interrupt_while_a_c_extension_is_imported_shows_no_traceback(shell, module: str) -> None:
    """numpy's C parts import these, and raise ImportError in place of what these raise."""
    done = shell(f"""
        {sys.executable} -c '
import os, signal, sys
from importlib.machinery import ExtensionFileLoader
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe()
        while name == "{module}" and (frame := frame.f_back):
            if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
                print("inside", file=sys.stderr)
                os.kill(os.getpid(), signal.SIGINT)
                break
sys.meta_path.insert(0, Interrupting())
sys.argv = ["buda-emu", "run", os.environ["NET"]]
from buda_emu.app.cli.entry import entry
entry()
' """)
    assert (done.returncode, done.stderr) == (130, "inside\nbuda-emu: interrupted\n")
