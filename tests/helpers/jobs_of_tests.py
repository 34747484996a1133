"""Jobs that tests give to workers beside the closed list of the package. Run as a module it is their worker process."""

import sys

from buda_emu.support.workers import job
from buda_emu.support.workers import pool as process

MODULES = ("case_functions", "case_functions_that_die", "no_module_at_all", "spread_functions")
FUNCTIONS = (
    "after_others", "dies_at_one", "dies_once", "no_three", "none", "obedient", "part_of", "reports_halves", "twice",
)  # fmt: skip
JOBS = job.JOBS | {f"{module}:{name}" for module in MODULES for name in FUNCTIONS}


def allow(patch=setattr):
    """Let this process ask for them, and start workers that do them."""
    patch(job, "JOBS", JOBS)
    patch(process, "_MODULE", "jobs_of_tests")


if __name__ == "__main__":
    from buda_emu.support.workers.child import run

    allow()
    run(int(sys.argv[1]))
