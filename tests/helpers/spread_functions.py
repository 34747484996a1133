"""What workers do in the tests of `spread`: they import it by name."""

import os
import signal
from pathlib import Path

from buda_emu.support.errors import HostError
from case_functions import until

_LOADS = []


def twice(_about):
    return lambda number: 2 * number


def reports_halves(about, report):
    def work(number):
        report(("half of", number / 2))
        return number + about

    return work


def no_three(_about):
    def work(number):
        if number == 3:
            raise HostError("three is refused")
        return number

    return work


def dies_once(_about):
    """The item names a file that says whether it has died already."""

    def work(path):
        if path and not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return path

    return work


def dies_at_one(_about):
    def work(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    return work


def after_others(about):
    """One process waits until another one has written its number into a file. `about`: that process, the file."""
    number, file = about

    def work(item):
        if os.getpid() == number:
            until(Path(file).exists)
        elif not Path(file).exists():
            written = Path(f"{file}.{os.getpid()}")
            written.write_text(str(os.getpid()))
            written.rename(file)
        return item, os.getpid()

    return work


def part_of(_about):
    def work(item):
        values, place = item
        if not any(known is values for known in _LOADS):
            _LOADS.append(values)
        return values[place], os.getpid(), len(_LOADS)

    return work
