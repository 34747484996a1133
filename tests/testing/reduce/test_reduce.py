"""Reductions: what is kept, what must not depend on workers, and how commands that crash or hang are told apart."""

import os
import random
import signal
import time

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.testing.reduce.moves import MOVES
from buda_emu.testing.reduce.search import Outcome, Trials
from example_netlists import DIRECTORY

ATTENTION = str(DIRECTORY / "attention.yaml")
EXAMPLES = sorted(DIRECTORY.glob("**/*.yaml"))


def types(found):
    return [op.type for op in found.netlist.ops.values()]


def test_only_what_the_command_looks_for_is_left():
    found = be.reduce(ATTENTION, "! grep -q 'type: reciprocal'")
    assert types(found) == ["reciprocal"]
    (op,) = found.netlist.ops.values()
    assert (op.blocking.shape, op.blocking.grid_size) == ((1, 1, 1), (1, 1))
    assert len(found.netlist.queues) == 2
    assert not found.netlist.sections
    assert found.finished
    assert not found.interrupted
    assert found.outcome == Outcome(1)


def test_two_ops_that_are_far_apart_stay_together():
    found = be.reduce(ATTENTION, "! (grep -q 'type: exp' {} && grep -q 'type: add' {})")
    assert sorted(types(found)) == ["add", "exp"]


def test_the_result_does_not_depend_on_the_number_of_workers():
    texts = {be.reduce(ATTENTION, "! grep -q 'hslice'", workers=workers).text for workers in (1, 2, 5)}
    assert len(texts) == 1


def test_a_smaller_netlist_fails_in_the_same_way_unless_any_will_do():
    command = "grep -q 'type: exp' {} && exit 7; grep -q 'type: matmul' {} && exit 3; exit 0"
    assert types(be.reduce(ATTENTION, command)) == ["exp"]
    assert types(be.reduce(ATTENTION, command, any_failure=True)) != ["exp"]


def test_the_command_has_to_fail_at_first():
    with pytest.raises(be.HostError, match="there is nothing to reduce"):
        be.reduce(ATTENTION, "true")
    with pytest.raises(be.HostError, match="timeout must be a number of seconds above 0, not 0"):
        be.reduce(ATTENTION, "false", timeout=0)


def test_trials_are_bounded():
    found = be.reduce(ATTENTION, "! grep -q 'type: exp'", workers=1, most_trials=4)
    assert found.trials <= 4
    assert not found.finished
    assert "exp" in types(found)


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_hang_is_a_failure_and_leaves_no_process(tmp_path):
    trials = Trials(f"sh -c 'echo $$ > {tmp_path}/pid; sleep 60' # ", "net.yaml", 2, 1)
    started = time.monotonic()
    assert trials.run([""]) == [Outcome(None)]
    assert time.monotonic() - started < 50
    process = int((tmp_path / "pid").read_text())
    while is_there(process) and time.monotonic() - started < 50:
        time.sleep(0.01)  # whoever inherits a process that was killed takes a moment to see it
    assert not is_there(process)
    trials.close()


def test_outcomes_are_in_the_order_of_the_texts():
    trials = Trials("exit $(cat {})", "net.yaml", 10, 3)
    assert [outcome.code for outcome in trials.run(["3", "0", "5", "1"])] == [3, 0, 5, 1]
    assert trials.run(["kill"]) != [Outcome(0)]
    trials.close()
    assert str(Outcome(-signal.SIGSEGV)) == "signal 11"
    assert str(Outcome(None)) == "no end within the time limit"


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    be.reduce(ATTENTION, "! grep -q 'type: exp'")
    assert list(tmp_path.iterdir()) == []


TEMPLATES = (
    "cat {0}",
    'cat "{0}"',
    "cat '{0}'",
    "sh -c 'cat \"{0}\"'",
    "cat `echo {0}`",
    'cat "$(echo "{0}")"',
    "cat <{0}",
    "cat",
)
"""Ways to write the place of the file's name."""


def drawn_name(draw):
    """Of a netlist, with what a shell reads as something else."""
    parts = (
        "$(touch INJECTED)",
        "`touch INJECTED`",
        ";touch INJECTED;",
        "$IFS",
        "'",
        '"',
        "\\",
        "\n",
        " ",
        "&",
        "|",
        "*",
    )
    return (
        "".join(draw.choice((*parts, "a", "é", "-", "~", "!", "{}", "\u2028")) for _ in range(draw.randrange(1, 8)))
        + ".yaml"
    )


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_a_netlists_name_is_never_run(template, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(f"{template} {seed}")
    names = ["$(touch INJECTED).yaml", "`touch INJECTED`.yaml", "'; touch INJECTED; '.yaml", "-rf.yaml"]
    for name in (*names, *(drawn_name(draw) for _ in range(6)), "x" * 240 + ".yaml"):
        trials = Trials(template.format("{}") + " | grep -q text", name, 30, 1)
        assert trials.run(["text"]) == [Outcome(0)], name
        trials.close()
    assert list(tmp_path.iterdir()) == []


def test_a_plain_name_is_what_the_command_sees():
    trials = Trials('test "$(basename {})" = my-net_2.5.yaml', "my-net_2.5.yaml", 10, 1)
    assert trials.run([""]) == [Outcome(0)]
    trials.close()


def test_a_folder_that_a_shell_would_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "$(touch INJECTED)"))
    with pytest.raises(be.HostError, match=r"has '\$' in its name.*set TMPDIR"):
        be.reduce(ATTENTION, "false")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_lose_all_but_one_op(path):
    """And what is left is accepted, as it is read from its text."""
    found = be.reduce(str(path), "! grep -q 'grid_loc\\|grid_size'")
    assert len(found.netlist.ops) == 1
    assert check_text(found.text, "net.yaml").ok


def test_each_move_makes_something_smaller_somewhere():
    """A move that never yields a valid netlist would only cost time."""
    from buda_emu.netlist.printer import document_text

    useful = set()
    for path in EXAMPLES:
        netlist = be.load(path)
        for name, move in MOVES:
            if name not in useful:
                texts = (document_text(document) for document in move(netlist))
                useful |= {name} if any(check_text(text, "net.yaml").ok for text in texts) else set()
    assert useful == {name for name, _ in MOVES}
