"""Faults that are drawn and what they do, as they are: whoever changes one draw, one corruption or one comparison sees
which others move.

`PYTHONPATH=tests:tests/helpers python tests/testing/injection/test_today.py` writes the lines anew, after a change that
is meant.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from buda_emu.testing.injection.fault import KINDS
from buda_emu.testing.injection.result import Effect
from faults_bench import bench

KEPT = Path(__file__).with_name("today.txt")
CAMPAIGNS: dict[str, dict[str, Any]] = {
    "attention, format": {"name": "attention", "kinds": KINDS},
    "attention, ideal": {"name": "attention", "precision": "ideal", "kinds": KINDS},
    "attention, device": {"name": "attention", "precision": "device", "kinds": KINDS},
    "attention, bits": {"name": "attention", "strata": "bit"},
    "training, tensors": {"name": "training", "strata": "tensor", "kinds": ("flip", "burst"), "burst": 2},
    "two_chips, ops": {"name": "two_chips", "strata": "op", "scatter": True, "burst": 3, "top1": True},
    "matmul, protected": {"name": "matmul", "kinds": ("flip", "burst"), "protect": ("parity", "ecc", "range")},
}
COUNT = 40


def told(effect: Effect) -> str:
    fault, words = effect.fault, effect.as_json()
    spot = f"{fault.where}[{fault.entry}] tile {fault.tile} datum {fault.datum} bits {list(fault.bits)}"
    more = f"operand {fault.operand} core {fault.core} step {fault.step} {fault.how} {fault.stratum}"
    figures = " ".join(f"{key} {rounded(words[key])}" for key in sorted(words.keys() - {"error", *fault.as_json()}))
    return f"{fault.kind} {fault.place} {fault.op_type} {fault.df} {fault.tensor} {spot} {more}: {figures}"


def rounded(value: object) -> object:
    return f"{value:.5g}" if isinstance(value, float) else value


def today(name: str) -> Iterator[str]:
    found = bench(**CAMPAIGNS[name])
    for number in range(COUNT):
        yield f"{name}: {told(found.effect(number))}"


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_faults_and_effects_are_those_of_today(name: str) -> None:
    kept = [line for line in KEPT.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name}: ")]
    assert list(today(name)) == kept


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for name in CAMPAIGNS for line in today(name)), encoding="utf-8")
