"""What `check` may take of the processor and of memory for a document of any kind (docs/netlists/check.md, bounds)."""

import subprocess
import sys

import pytest

from shared_files import ROOT

SMALL, LARGE = 400_000, 3_200_000  # bytes
SECONDS, STARTED = 2.0, 1.5  # for each megabyte, and for the process itself
BYTES, PROCESS = 100, 64 << 20  # for each byte, and for the process itself
SOUND = (ROOT / "netlists" / "matmul.yaml").read_text()
QUEUES, GRAPHS, PROGRAMS = (SOUND.index(f"{name}:\n") for name in ("queues", "graphs", "programs"))


def many(text, size):
    """A piece again and again, `%` its number."""
    found, length = [], 0
    while length < size:
        found.append(text.replace("%", str(len(found))))
        length += len(found[-1])
    return "".join(found)


TRIALS = 4

KINDS = {
    "maps": lambda size: SOUND + "other:\n" + many("- {}\n", size),
    "flow maps": lambda size: SOUND + "other: [" + many("{},", size) + "]\n",
    "words": lambda size: SOUND + "other: [" + many("a,", size) + "]\n",
    "pairs": lambda size: SOUND + "other: {" + many("a,", size) + "}\n",
    "nothing": lambda size: SOUND + "other:\n" + many("-\n", size),
    "levels": lambda size: SOUND + "other:\n" + many("- " + "[" * 80 + "a" + "]" * 80 + "\n", size),
    "anchors": lambda size: SOUND + "other:\n" + many("- &a% [x]\n", size),
    "aliases": lambda size: SOUND + "other:\n- &a [x, x, x, x, x, x, x, x, x, x]\n" + many("- *a\n", size),
    "one word": lambda size: SOUND + "other: " + "a" * size + "\n",
    "one number": lambda size: SOUND.replace("entries: 2", "entries: " + "9" * size, 1),
    "one name": lambda size: SOUND.replace("arch: [", "arch: [" + "a" * size + ", ", 1),
    "comments": lambda size: SOUND + many("# buda: ignore\n", size),
    "queues": lambda size: SOUND[:QUEUES] + "queues: {" + many("k%: {},", size) + "}\n" + SOUND[GRAPHS:],
    "the same queue": lambda size: SOUND[:QUEUES] + "queues: {" + many("k: {},", size) + "}\n" + SOUND[GRAPHS:],
    "graphs": lambda size: SOUND[:GRAPHS] + "graphs: {" + many("k%: {},", size) + "}\n" + SOUND[PROGRAMS:],
    "ops": lambda size: SOUND[:GRAPHS] + "graphs: {g: {" + many("k%: {},", size) + "}}\n" + SOUND[PROGRAMS:],
    "fields": lambda size: SOUND.replace("  activations: {", "  activations: {" + many("k%: 1, ", size), 1),
    "variables": lambda size: SOUND[:PROGRAMS] + "programs:\n- p:\n" + many("  - var: {$k%: 0}\n", size),
    "loops": lambda size: SOUND[:PROGRAMS] + "programs:\n- p:\n" + many("  - loop: 1\n", size),
    "executes": lambda size: SOUND[:PROGRAMS] + "programs:\n- p:\n" + many("  - execute: {}\n", size),
    "comparisons": lambda size: SOUND + "test-config:\n  comparison-config: {" + many("a,", size // 2) + "}\n",
    "overrides": lambda size: SOUND
    + "test-config: {stimulus-config: {overrides: {" + many("k%: {x: 1},", size) + "}}}\n",
    "metrics": lambda size: SOUND + "performance-check: {" + many("k%: 1,", size) + "}\n",
}  # fmt: skip


# In a process of its own, which is small: what the process of the tests holds counts for no child of it.
MEASURED = """
import os, sys
child = os.fork()
if not child:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.execv(sys.executable, [sys.executable, "-m", "buda_emu", "check", "--no-cache", sys.argv[1]])
_, status, used = os.wait4(child, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss << 10, os.waitstatus_to_exitcode(status))
"""


def taken(path):
    """Seconds of the processor and bytes of memory of a `check`, and its exit code."""
    done = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    seconds, memory, code = done.stdout.split()
    return float(seconds), int(memory), int(code)


def judge(kind, size, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(KINDS[kind](size))
    length = path.stat().st_size
    seconds, memory, code = taken(path)
    assert code in (0, 2)
    limit = STARTED + SECONDS * length / 1e6
    # Beside other processes the same work takes up to twice the processor seconds: the least of several is the check's.
    for _ in range(TRIALS - 1):
        if seconds >= limit:
            seconds = min(seconds, taken(path)[0])
    assert seconds < limit
    assert memory < PROCESS + BYTES * length


@pytest.mark.skipif(sys.platform != "linux", reason="bytes of memory are counted otherwise")
@pytest.mark.parametrize("kind", KINDS)
def test_a_check_takes_what_is_stated(kind, tmp_path):
    judge(kind, SMALL, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="bytes of memory are counted otherwise")
@pytest.mark.parametrize("kind", KINDS)
def test_a_check_of_a_large_document_takes_what_is_stated(kind, tmp_path):
    judge(kind, LARGE, tmp_path)
