"""What is kept between programs, and from where a run goes on when a worker is lost."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from buda_emu.emulator.distributed.machines import RESTARTS, WorkerLostError, run_with_restarts


class Parts:
    """In place of machines: they run programs 1 to 3, and are lost when they save after these, in turn."""

    def __init__(self, lost_after):
        self.lost_after = list(lost_after)
        self.log = []

    def save(self, folder: Path):
        (folder / "part").write_text("half")
        if self.lost_after and int(folder.name) == self.lost_after[0]:
            self.lost_after.pop(0)
            raise WorkerLostError("worker 0 is lost")
        (folder / "part").write_text("whole")
        self.log.append(f"saved {folder.name} beside {sorted(path.name for path in folder.parent.iterdir())}")

    def restore(self, folder: Path):
        self.log.append(f"restored {folder.name}, which is {(folder / 'part').read_text()}")

    def work(self, _machines, saved):
        for done in range(saved.restore(self) + 1, 4):
            self.log.append(f"ran {done}")
            saved.save(self, done)
        return "result"

    def run(self, *, is_local=True):
        told = []
        return run_with_restarts(lambda: nullcontext(self), self.work, told.append, is_local=is_local), told


def test_a_part_that_is_lost_while_it_saves_saves_again():
    """The state before is there until then, and gone after."""
    parts = Parts([2])
    result, told = parts.run()
    assert result == "result"
    assert told == ["worker 0 is lost: all parts start again from the snapshot after program 1"]
    assert parts.log == [
        "ran 1", "saved 1 beside ['1']", "ran 2",
        "restored 1, which is whole", "ran 2", "saved 2 beside ['1', '2']", "ran 3", "saved 3 beside ['2', '3']",
    ]  # fmt: skip


def test_nothing_is_kept_of_workers_elsewhere():
    parts = Parts([2])
    assert parts.run(is_local=False) == ("result", [])
    assert parts.log == ["ran 1", "ran 2", "ran 3"]


def test_there_are_so_many_restarts_and_no_more():
    assert len(Parts([1] * RESTARTS).run()[1]) == RESTARTS
    with pytest.raises(WorkerLostError):
        Parts([1] * (RESTARTS + 1)).run()
