"""Verbs that use a netlist show what the checker finds about it, and refuse what is bound to fail."""

import warnings

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.support.errors import NetlistError, NetlistWarning
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def write_copies(tmp_path, *, inputs=1, entries=4, size=(1, 1), warned=0):
    """Copies of queues; `warned`: that many lie in a DRAM channel that the chip has not."""
    channel = [(0 if number >= warned else 7) for number in range(5)]
    names = [f"o{number}" for number in range(5)]
    lines = [queue("x", entries=entries)]
    lines += [
        queue(name, f"n{number}", entries=entries, mblock=size).replace("dram: [[0,", f"dram: [[{channel[number]},")
        for number, name in enumerate(names)
    ]
    ops = [op(f"n{number}", "nop", ["x"], loc=(0, number), mblock=size) for number in range(5)]
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            lines,
            [graph("g", *ops, inputs=inputs)],
            [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
        )
    )
    return str(path)


VERBS = [["run"], ["graph"], ["perf"], ["numerics"]]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_line_for_each_of_a_few_warnings_else_their_number(verb, tmp_path, capsys):
    assert main([*verb, write_copies(tmp_path, warned=2)]) == 0
    said = capsys.readouterr().err
    assert said.count("warning[V151]") == 2
    path = write_copies(tmp_path, warned=4)
    assert main([*verb, path]) == 0
    assert f"4 warnings about {path}: `buda-emu check {path}` shows them" in capsys.readouterr().err
    assert main([*verb, write_copies(tmp_path)]) == 0
    assert "warning" not in capsys.readouterr().err


def test_the_verb_test_prints_the_number_of_warnings(tmp_path, capsys):
    assert main(["test", write_copies(tmp_path, warned=2), "-n", "1", "-v"]) == 0
    assert "the checker has 2 warnings (V151)" in capsys.readouterr().out


def test_loading_warns(tmp_path):
    with pytest.warns(NetlistWarning, match=r"V151: queue o0: .*V151: queue o1"):
        netlist = be.load(write_copies(tmp_path, warned=2))
    assert len(netlist.diagnostics) == 2
    with pytest.warns(NetlistWarning, match="and 1 more"):
        be.load(write_copies(tmp_path, warned=4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        be.load(write_copies(tmp_path))


@pytest.mark.parametrize("verb", [["run"], ["numerics"], ["test", "-n", "1"]], ids=lambda verb: verb[0])
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"inputs": 2, "entries": 1}, "error[V208]: queue o0: has 1 entry, one execute of g writes 2"),
        ({"inputs": 2, "entries": 3}, "error[V208]: program run: queue x has 3 entries"),
        ({"size": (2, 1)}, "error[V179]: op n0: input 0 has [1, 1, 1] after its TMs"),
    ],
    ids=["results", "batches", "shapes"],
)
def test_what_is_bound_to_fail_is_an_error_at_its_place(verb, broken, said, tmp_path, capsys):
    path = write_copies(tmp_path, **broken)
    assert be.check(path).ok  # the reference loads it
    assert main([verb[0], path, *verb[1:]]) == 2
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert "^" in printed.out + printed.err


def test_what_no_program_executes_is_no_error(tmp_path):
    from buda_emu.emulator.inputs.entries import select_programs
    from buda_emu.emulator.inputs.prepared import require_runnable

    netlist = be.load(write_copies(tmp_path, size=(2, 1)))
    with pytest.raises(NetlistError, match="V179"):
        require_runnable(netlist, select_programs(netlist, ["run"]))
    require_runnable(netlist, [])


def test_a_run_says_that_a_loop_has_no_end(tmp_path, capsys):
    """It does what the reference does: the body once (NETLIST 3.4)."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x"), queue("o", "n")],
            [graph("fwd", op("n", "nop", ["x"]))],
            [program("run", "var: {$c_zero: 0}", "loop: 4", execute("fwd", fifo_settings("x")))],
        )
    )
    assert main(["run", str(path)]) == 0
    shown = capsys.readouterr()
    assert "warning[V276]: program run: a loop without an endloop: its body is run once" in shown.err
    assert main(["check", "--strict", str(path)]) == 0


def test_a_misspelt_variable_is_reported_before_the_run(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    settings = fifo_settings("x").replace("$c_zero", "$c_zreo", 1)
    path.write_text(
        text(
            [queue("x"), queue("o", "n")],
            [graph("g", op("n", "nop", ["x"]))],
            [program("run", "var: {$c_zero: 0}", execute("g", settings))],
        )
    )
    assert main(["run", str(path)]) == 4
    shown = capsys.readouterr()
    assert "warning[V270]" in shown.err
    assert "unknown variable $c_zreo" in shown.err
    assert main(["check", "--strict", str(path)]) == 2
    assert "did you mean '$c_zero'?" in capsys.readouterr().out


def test_what_may_be_left_of_a_netlist_in_a_folder_is_named(tmp_path, capsys):
    (path := tmp_path / "empty.yaml").write_text("")
    write_copies(tmp_path)
    assert main(["check", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "1 file: no findings\n"
    assert printed.err == f"buda-emu: {path} is left out: it is empty, or has a single section of a netlist\n"
