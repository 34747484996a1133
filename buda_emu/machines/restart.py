"""Work on machines that outlasts the loss of a worker: all parts start again, on new workers, from the last state that
they have in common. That is the one between two programs, where all parts are on this machine and can write it to
files; else the beginning.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from buda_emu.machines.machines import Machines, WorkerLostError

RESTARTS: Final = 3
"""Lost workers that a run outlasts."""
R = TypeVar("R")


class Saved:
    """States of all parts between two programs: `done`, how many programs have run in the last one, 0 for none."""

    def __init__(self, stack: ExitStack, *, is_local: bool) -> None:
        """`stack`: files are removed with it. `is_local`: workers write files where this process finds them."""
        self._stack = stack
        self._is_local = is_local
        self._folder: Path | None = None
        self.done = 0

    def save(self, machines: Machines, done: int) -> None:
        """After so many programs. The state before it is dropped when all parts have written this one."""
        if not self._is_local:
            return
        if self._folder is None:
            made = TemporaryDirectory(prefix="buda-emu-run-", ignore_cleanup_errors=True)
            self._folder = Path(self._stack.enter_context(made))
        folder = self._folder / str(done)
        folder.mkdir(exist_ok=True)
        machines.save(folder)
        before, self.done = self._folder / str(self.done), done
        shutil.rmtree(before, ignore_errors=True)

    def restore(self, machines: Machines) -> int:
        """Bring new machines to the last state; how many programs have run in it."""
        if self.done and self._folder is not None:
            machines.restore(self._folder / str(self.done))
        return self.done

    @property
    def place(self) -> str:
        """From where a restart goes on, in words."""
        if self.done:
            return f"from the snapshot after program {self.done}"
        return "from the beginning"


def lasting(
    make: Callable[[], Machines], work: Callable[[Machines, Saved], R], tell: Callable[[str], None], *, is_local: bool
) -> R:
    """What `work` gives on the machines that `make` gives, once more after each lost worker, `RESTARTS` times at most.
    `work` begins with `Saved.restore`. Raises what both raise, and the last WorkerLostError."""
    with ExitStack() as stack:
        saved = Saved(stack, is_local=is_local)
        for _ in range(RESTARTS):
            try:
                with make() as machines:
                    return work(machines, saved)
            except WorkerLostError as error:
                tell(f"{error}: all parts start again {saved.place}")
        with make() as machines:
            return work(machines, saved)
