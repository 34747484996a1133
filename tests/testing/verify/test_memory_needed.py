"""A run that cannot fit is refused before it starts, with what needs how much."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.emulator.inputs.entries import walk_programs
from buda_emu.emulator.inputs.prepared import held_bytes, require_memory, try_walk
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.support.errors import HostError, UnsupportedError
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

TILE = 4096


def netlist(queues: list[str], *steps: str, inputs: int = 2) -> Netlist:
    content = text(
        queues,
        [graph("g", op("s", "add", ["a", "w"]), inputs=inputs)],
        [
            program(
                "p",
                "param: [$p_loop_count]",
                "var: {$c_zero: 0}",
                "loop: $p_loop_count",
                execute("g", fifo_settings("a"), ram_settings("w")),
                "endloop",
                *steps,
            )
        ],
    )
    found = check_text(content)
    assert found.netlist is not None, found.diagnostics
    return found.netlist


QUEUES = [queue("a", entries=8), queue("w", kind="ram", entries=3), queue("o", "s", entries=8)]


def held(queues: list[str], loops: int, **options: Any) -> dict[str, int]:
    found = netlist(queues)
    tiles = held_bytes(
        found, walk_programs(found, list(found.programs.values()), {"$p_loop_count": str(loops)}), **options
    )
    return {name: count // TILE for name, count in tiles.items()}


def test_entries_that_are_used_count() -> None:
    assert held(QUEUES, 1) == {"a": 2, "w": 3, "o": 2}
    assert held(QUEUES, 3) == {"a": 2, "w": 3, "o": 6}
    assert held(QUEUES, 9) == {"a": 2, "w": 3, "o": 8}  # no more than it holds
    assert held(QUEUES, 1, rams=False) == {"a": 2, "w": 0, "o": 2}
    assert held(QUEUES, 1, rams=False, filled=["w"]) == {"a": 2, "w": 3, "o": 2}  # an image fills it
    rams = [*QUEUES[:2], queue("o", "s", kind="ram", entries=8)]
    assert held(rams, 3) == {"a": 2, "w": 3, "o": 1}


def test_bits_take_what_their_formats_take() -> None:
    queues = [line.replace("Float32", "Bfp8_b") for line in QUEUES[:2]]
    content = text(
        [*queues, QUEUES[2]],
        [graph("g", op("s", "add", ["a", "w"], df="Bfp8_b", out_df="Float32"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), ram_settings("w")))],
    )
    found = check_text(content).netlist
    assert found is not None
    steps = walk_programs(found, list(found.programs.values()), {})
    assert held_bytes(found, steps, as_bits=True) == {"a": 1088, "w": 3 * 1088, "o": TILE}
    assert held_bytes(found, steps) == {"a": TILE, "w": 3 * TILE, "o": TILE}  # else every tile is of float32
    assert require_memory(found, steps, 5 * 1088 + TILE, as_bits=True)
    with pytest.raises(UnsupportedError):
        require_memory(found, steps, 5 * 1088 + TILE)
    with be.Emulator(found, "device", memory_limit=4 * 1088, threads=1) as emulator:
        emulator.push("a", np.ones((1, 1, 32, 32), np.float32))
        emulator.push("w", np.ones((3, 1, 32, 32), np.float32))
        with pytest.raises(HostError, match="memory of a needs"):
            emulator.push("a", np.ones((1, 1, 32, 32), np.float32))


def test_host_copies_of_entries_above_a_part_count_five_times() -> None:
    """An entry of 16 MiB: 8 MiB of it beyond a part."""
    source = text(
        [queue("a", mblock=(64, 64), entries=1), queue("o", "n", mblock=(64, 64), entries=1)],
        [graph("g", op("n", "nop", ["a"], mblock=(64, 64)), inputs=1)],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    found = check_text(source).netlist
    assert found is not None
    with pytest.raises(UnsupportedError, match=r"at least 32.* in queues and rams and 40.* of host copies"):
        require_memory(found, walk_programs(found, list(found.programs.values()), {}), 1)


def test_two_views_of_one_memory_count_once() -> None:
    second = QUEUES[1].replace("  w:", "  v:").replace("entries: 3", "entries: 3")
    assert held([*QUEUES, second], 1) in ({"a": 2, "w": 3, "o": 2}, {"a": 2, "v": 3, "o": 2})


@pytest.mark.parametrize("loops", [1, 4])
def test_no_run_takes_less(loops: int) -> None:
    """What is foreseen is what the memory of a machine counts in the end."""
    found = netlist(QUEUES)
    values = {"$p_loop_count": str(loops)}
    total = sum(held_bytes(found, walk_programs(found, list(found.programs.values()), values)).values())

    def run(limit: int) -> int:
        with be.Emulator(found, threads=1, memory_limit=limit) as emulator:
            emulator.push("a", np.ones((2, 1, 32, 32)))
            emulator.push("w", np.ones((3, 1, 32, 32)))
            emulator.run("p", values)
            return emulator.memory.queues

    assert run(1 << 30) == total
    with pytest.raises((HostError, be.ProgramError)):
        run(total - TILE)


def test_the_error_says_what_needs_how_much() -> None:
    found = netlist(QUEUES)
    steps = try_walk(found, list(found.programs.values()), {"$p_loop_count": "3"})
    assert require_memory(found, steps, 11 * TILE) == 11 * TILE
    with pytest.raises(UnsupportedError) as caught:
        require_memory(found, steps, 11 * TILE - 1)
    assert str(caught.value) == (
        "this run holds at least 44.0 KiB in queues and rams, the memory limit is 44.0 KiB. The largest: o 24.0 KiB, "
        "w 12.0 KiB, a 8.0 KiB. Give smaller parameters, or a higher limit (--memory-limit)"
    )
    said: list[str] = []
    assert require_memory(found, steps, 22 * TILE, machines=2, tell=said.append) == 11 * TILE
    (words,) = said
    assert words.endswith("the memory limit for each of 2 machines side by side is 44.0 KiB")
    with pytest.raises(UnsupportedError, match=r"limit for each of 2 machines side by side is 40\.0 KiB"):
        require_memory(found, steps, 20 * TILE, machines=2)


def test_without_a_limit_it_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buda_emu.emulator.memory.host.available_memory", lambda: 8 * TILE)
    found = netlist(QUEUES)
    steps = try_walk(found, list(found.programs.values()), {"$p_loop_count": "1"})
    with pytest.raises(UnsupportedError, match=r"is 24\.0 KiB \(75% of the memory that is available now\)"):
        require_memory(found, steps, None)
    assert require_memory(found, None, None) == 6 * TILE


def test_programs_that_fail_without_data_are_left_to_the_run() -> None:
    found = netlist(QUEUES)
    assert try_walk(found, list(found.programs.values()), {"$p_loop_count": "0"}) is None


def test_a_word_is_said_before_programs_are_walked(root: Path) -> None:
    """Loops just below the limit of steps take many seconds, in which nothing else is said."""
    path = root / "netlists" / "training.yaml"
    said: dict[str, list[str]] = {"run": [], "numerics": [], "perf": []}
    run_netlist(be.load(path), progress=said["run"].append)
    explain(be.load(path), progress=said["numerics"].append)
    be.perf(str(path), progress=said["perf"].append)
    for words in said.values():
        assert words[0] == "walking the programs"
        assert len(words) > 1


def test_results_do_not_depend_on_the_limit_or_on_who_watches(root: Path) -> None:
    found = be.load(root / "netlists" / "training.yaml")
    told: list[tuple[int, int]] = []
    plain = run_netlist(found, memory_limit=1 << 30)
    watched = run_netlist(found, inputs_done=lambda done, count: told.append((done, count)))
    assert plain.outputs == watched.outputs
    assert told == sorted(told)
    assert (
        told[-1][0]
        == told[-1][1]
        == walk_programs(
            found,
            list(found.programs.values()),
            {name: value for item in plain.programs for name, value in item.parameters.items()},
        ).inputs
    )
