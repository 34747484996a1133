"""Bugs in kernels are found by generated netlists, and reduced to a few ops (tools/planted_bugs.py)."""

import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import planted_bugs
from buda_emu.arithmetic.kernels.functions.elementary import clear_outside
from buda_emu.arithmetic.kernels.products.tile_product import depthwise_tiles
from buda_emu.arithmetic.kernels.tensix.functions.lanes import execute_row
from buda_emu.arithmetic.tensix.registers import REGISTERS, exponent_of, to_word
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from mutation.sites import PACKAGE, at_lines, sample
from shared_files import ROOT

TOOL = str(ROOT / "tools/planted_bugs.py")


def in_product():
    """A mutant of what depthwise products call."""
    drawn = sample([PACKAGE / "arithmetic/kernels/products/tile_product.py"], None, 0)
    return next(item for item in drawn if item.source == "s += a0 * b[k * EDGE + j]")


def test_what_is_planted_is_of_kernels_that_netlists_run():
    found = planted_bugs.draw_mutants(20, 0)
    assert len(found) == len({mutant.key for mutant in found}) == 20
    for mutant in found:
        package, room, *inside = mutant.path.relative_to(planted_bugs.PACKAGE).parts
        assert (package, room) == ("arithmetic", "kernels")
        assert inside[0] not in planted_bugs.OTHERS
        assert not mutant.at_import


def test_what_no_netlist_can_show_is_of_today_and_left_out():
    for path, source, change in planted_bugs.UNSEEN:
        there = [item.key for item in at_lines(PACKAGE / path, {source})]
        assert (path, source, change) in there
    assert not {mutant.key for mutant in planted_bugs.draw_mutants(20, 0)} & planted_bugs.UNSEEN.keys()


@pytest.mark.parametrize("register", [name for name, family in REGISTERS.items() if family == "a"])
@pytest.mark.parametrize("core", ["wormhole_b0", "blackhole"])
def test_a_sum_of_zeros_has_a_lower_exponent_than_what_it_is_added_to(register, core):
    """Why the mutant of `UNSEEN` changes nothing: every word of 16 bits as a running value, in a 32-bit Dst."""
    words = to_word(np.arange(1 << 16, dtype=np.uint32).reshape(-1, 1024), "fp16")
    running = KernelUnits(core).copy(words, register, "fp32")
    assert set(np.unique(exponent_of(running))) == {0, *range(113, 144)}
    assert not running[exponent_of(running) == 0].any()


def test_what_calls_the_changed_function_is_known():
    mutant = in_product()
    assert planted_bugs.is_in_kernel(mutant)
    assert any(
        planted_bugs.has_line(code, str(mutant.path), mutant.line) for code in planted_bugs._callees(depthwise_tiles)
    )
    assert not any(
        planted_bugs.has_line(code, str(mutant.path), mutant.line) for code in planted_bugs._callees(clear_outside)
    )


def test_definitions_of_llvm_code_are_not_compiled():
    _, first_line = inspect.getsourcelines(execute_row)
    mutants = sample([PACKAGE / "arithmetic/kernels/tensix/functions/lanes.py"], None, 0)
    mutants_of_definitions = [mutant for mutant in mutants if mutant.line >= first_line]
    assert mutants_of_definitions
    assert not any(planted_bugs.is_in_kernel(mutant) for mutant in mutants_of_definitions)


class Always:
    """An unchanged package that always says the same."""

    seconds = 0.0

    def __init__(self, digest):
        self._digest = digest

    def digest(self, *_):
        return self._digest


def test_a_netlist_shows_a_bug_by_other_bits_or_an_error_where_the_unchanged_package_is_right(monkeypatch):
    monkeypatch.setattr(planted_bugs, "_digest", lambda *_: "own")
    assert planted_bugs.shows("", {}, Always("other"))
    assert not planted_bugs.shows("", {}, Always("own"))
    assert not planted_bugs.shows("", {}, Always(""))
    monkeypatch.setattr(planted_bugs, "_digest", lambda *_: 1 // 0)
    assert planted_bugs.shows("", {}, Always("own"))


def test_a_bug_that_ends_the_process_is_found_and_reduced(tmp_path):
    (tmp_path / planted_bugs.TRIED).write_text((ROOT / "netlists/softmax.yaml").read_text())
    (tmp_path / "ends.py").write_text(
        "import json, os, signal, sys\n"
        "if 'type: exp' in open(sys.argv[2]).read() and json.loads(sys.argv[3])['inputs'] == 3:\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    row = {"netlists": 4, "seconds": 0.0, "ops": 4, "arch": "wormhole_b0", "precision": "format", "inputs": 3}
    environment = {**os.environ, "PLANTED_CLEAN": json.dumps(dict(os.environ))}
    found = planted_bugs._of_crash(row, [sys.executable, str(tmp_path / "ends.py")], tmp_path, environment)
    assert found["left"] == 1


@pytest.mark.slow
def test_a_planted_bug_is_found_and_reduced():
    """That of a product, by its kernel that is compiled anew."""
    number = next(
        n for n, item in enumerate(planted_bugs.draw_mutants(20, 2), 1) if item.path.name == "tile_product.py"
    )
    command = [sys.executable, TOOL, "--seed", "2", "--only", str(number), "--seconds", "150"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 found, 1 of them reduced to 3 ops or fewer" in done.stdout


@pytest.mark.slow
def test_nine_of_ten_are_found_and_keep_three_ops_at_most():
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
