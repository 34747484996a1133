"""What a worker process does with a case in the tests of the pools. It stands here and not in a test file because
spawned processes import it by name.

A case's name says what becomes of it: `passed`, `failed`, `exit 7`, `hang`, `kill`, `raise`, `number 3`, `sleep 0.5`.
"""

import os
import signal
import time
from pathlib import Path

from buda_emu.testing.verify.runs.collect import Case, unfinished_result


def obey(case: Case):
    """Do what the name says."""
    verb, _, rest = case.name.partition(" ")
    if verb == "exit":
        os._exit(int(rest))
    if verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if verb == "hang":
        if case.path:
            Path(case.path).write_text(str(os.getpid()))
        while True:
            time.sleep(0.01)
    if verb == "raise":
        raise ValueError(rest)
    if verb == "sleep":
        time.sleep(float(rest))
    return unfinished_result(case, "failed" if verb == "failed" else "passed", f"process {os.getpid()}", 0.0)


def obedient(_about):
    """The work of a job: `buda_emu.support.workers.job.Job("case_functions:obedient")`."""
    return obey


def until(condition, seconds=120.0):
    """Wait for it; whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
