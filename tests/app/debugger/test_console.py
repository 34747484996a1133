"""Commands as text: what each does, help, near words, completion."""

from xml.etree import ElementTree

import numpy as np
import pytest

from buda_emu.app.debugger.console.console import COMMANDS, GROUPS, Console, find_command
from buda_emu.app.debugger.console.execute import OFFERS, complete, execute, line_to_repeat
from buda_emu.app.debugger.tensors import extremes
from buda_emu.support.errors import BudaError, HostError
from debug_sessions import ATTENTION, TRAINING, session


@pytest.fixture
def console():
    with session(TRAINING, parameters={"$p_loop_count": "2"}) as run:
        yield Console(run)


def answer_text(console, *lines):
    for line in lines:
        found = execute(console, line)
    return "\n".join(found.lines)


def test_every_command_has_help_that_begins_with_an_example(console):
    for name, command in COMMANDS.items():
        lines = execute(console, f"help {name}").lines
        assert lines[0] == f"example: {command.example}"
        assert find_command(command.example.split()[0]) is command
        assert lines[1].startswith(f"usage: {command.usage}")
        assert lines[2].endswith(".")
        assert command.group in GROUPS
        assert set(command.takes) <= set(OFFERS)
    everything = answer_text(console, "help")
    assert all(f"  {command.usage}" in everything for command in COMMANDS.values())
    assert "absmax(T)" in answer_text(console, "help expressions")


def test_the_examples_of_all_commands_run(tmp_path, monkeypatch):
    """Each on a run that has what it names."""
    monkeypatch.chdir(tmp_path)
    from small_netlists import execute as run_it
    from small_netlists import fifo_settings, graph, op, program, queue, text

    (tmp_path / "n.yaml").write_text(
        text(
            queue("q", entries=2) + queue("out", "exp", entries=2),
            graph("fwd", op("exp", "exp", ["q"])),
            program(
                "run_fwd",
                "staticvar: {$c_zero: 0}",
                "var: {$i: 0}",
                "loop: 2",
                run_it("fwd", fifo_settings("q", "$i", "$i")),
                "varinst: [$i, incwrap, 1, 4]",
                "endloop",
            ),
        )
    )
    for name, command in COMMANDS.items():
        precision = "device" if name == "into" else "format"
        with session("n.yaml", precision=precision) as run:
            console = Console(run)
            answer_text(console, "break input 1", "continue", "tbreak if nan(op:exp) >= 0")
            if name == "write":
                answer_text(console, "continue")
            execute(console, command.example)
    assert (tmp_path / "epoch.svg").read_text().startswith("<svg")


def test_the_picture_of_an_epoch_has_values(tmp_path):
    with session(ATTENTION) as run:
        console = Console(run)
        answer_text(console, "break probs", "continue")
        lines = execute(console, "graph").lines
        scaled = run.evaluate("min(op:scaled)"), run.evaluate("max(op:scaled)")
        words = ["*", f"{scaled[0]:.4g}", f"{scaled[1]:.4g}", "scaled", "multiply", "2,1", "2x1", "dots,", "scale"]
        assert [line.split() for line in lines if "  scaled  " in line] == [words]
        assert any(line.startswith(">") and "probs" in line and "." not in line for line in lines)
        assert any("nothing yet" in line and "-> e2e_probs" in line for line in lines)
        assert any(line.split() == ["-3.797", "3.156", "x", "read"] for line in lines)
        execute(console, f"graph {tmp_path / 'e.svg'}")
        texts = [
            element.text for element in ElementTree.parse(tmp_path / "e.svg").iter() if element.tag.endswith("text")
        ]
        assert f"min {scaled[0]:.4g}" in texts
        assert f"max {scaled[1]:.4g}" in texts
        assert "min -3.797, max 3.156" in texts
        assert "red: the op where the run stands" in texts
        execute(console, "next")  # into the next input: of x another entry is read, of outputs the entry before stands
        assert any(line.startswith("   [0] ") and "-> e2e_probs" in line for line in execute(console, "graph").lines)


def test_the_picture_counts_elements_that_are_not_finite():
    with session(ATTENTION) as run:
        values = np.ones_like(run.tensor("mask[0]").values())
        values.flat[:3] = np.nan, np.inf, -np.inf
        run.write("mask[0]", values)
        assert extremes(run.tensor("mask[0]")) == ("[0] 1 NaN", "2 infinite")
        values.flat[0] = 0
        run.write("mask[0]", values)
        assert extremes(run.tensor("mask[0]")) == ("[0] 2 infinite", f"of {values.size}")


def test_commands_are_found_by_their_beginnings(console):
    assert find_command("c").name == find_command("cont").name == "continue"
    assert find_command("n").name == "next"
    assert find_command("cond").name == "condition"
    assert find_command("l").name == "list"
    with pytest.raises(HostError, match="beginning of reverse-continue, reverse-step"):
        find_command("reverse")
    with pytest.raises(HostError, match="did you mean 'break'"):
        find_command("braek")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("prnt x", "did you mean 'print'"), ("step x", "a number of 1 or more"),
        ("info quueues", "did you mean 'queues'"), ("print", "print TENSOR"),
        ("print x tile", "after `tile` row,column"), ("print x tile 0,0 more", "too much"),
        ("print x --bit", "did you mean '--bits'"), ("print absmax(y", "is missing"),
        ("print nothing", "no queue or op"), ("print x[7]", "slots 0..1"), ("x", "x QUEUE[slot]"),
        ("x op:h", "has not run"), ("x x[0] -1", "0 or more"), ("diff", "two tensors"),
        ("diff x y.npy", "No such file"), ("diff x w1", "8192 elements"), ("why", "why QUEUE"),
        ("why y[0]", "never written"), ("watch", "watch QUEUE"), ("watch yy", "no queue"),
        ("graph a.png", "ends in .svg"), ("graph", "no epoch runs"), ("list 9999", "lines 1.."),
        ("list nothing", "no queue"), ("into", "is not at an op"), ("set x", "set $NAME"),
        ("set $a = b", "not an integer"), ("write x", "write TENSOR"), ("write x y", "neither a number"),
        ("write x a.npy", "No such file"), ("skip", "no op is about to run"), ("back sideways", "back goes by"),
        ("reverse-until", "reverse-until WHERE"), ("until op h", "goes to instructions"),
        ("condition x", "a breakpoint is a number"), ("ignore 9 1", "no breakpoint 9"),
        ("break", "run has not begun"), ("delete 3", "no breakpoint 3"), ("help nothing", "no command"),
    ],
)  # fmt: skip
def test_refusals_suggest_what_was_meant(console, line, said):
    with pytest.raises(BudaError) as error:
        execute(console, line)
    assert said in str(error.value)


def test_answers_on_the_way_through_a_run(console):
    assert answer_text(console, "break op a if $p_loop_count == 2", "continue").splitlines() == [
        "breakpoint 1: op a (gelu, line 40)",
        "run_fwd instruction 5, line 108: execute forward",
        "  round 1 of 2 of the loop of line 107",
        "  epoch forward, input 1 of 1",
        "  before op a (gelu, chip 0 cores 0,1 2x1, line 40)",
        "     40  a: {type: gelu, grid_loc: [0, 1], grid_size: [2, 1], inputs: [h],",
    ]
    assert answer_text(console, "where").splitlines()[0] == "run_fwd instruction 5, line 108: execute forward"
    assert "-> " in answer_text(console, "info epochs")
    assert "->" in answer_text(console, "list")
    assert "B " in answer_text(console, "list new_w1", "break op new_w1", "list new_w1")
    assert "before op product" in answer_text(console, "n")
    assert "before op a" in answer_text(console, "back")
    assert "before op a" in answer_text(console, "break", "delete 3", "where")
    assert "round 2 of 2" in answer_text(console, "c")
    assert "round 1 of 2" in answer_text(console, "rc")
    assert "run_fwd instruction 6" in answer_text(console, "finish")
    assert "run_fwd instruction 3" in answer_text(console, "reverse-until run_fwd:3")
    assert "all programs have run" in answer_text(console, "delete", "c")
    assert "w1[0] was written by op new_w1" in answer_text(console, "why w1[0]")
    assert "2 checkpoints" in answer_text(console, "info memory") or "checkpoint" in answer_text(console, "info memory")


def test_an_entry_is_compared_with_that_of_its_number_in_a_file(tmp_path):
    file = tmp_path / "q.npy"
    with session(ATTENTION) as run:
        run.cont()
        console = Console(run)
        entries = np.stack([run.tensor(f"out[{slot}]").values() for slot in range(4)])
        np.save(file, entries)
        for slot in range(4):
            text = answer_text(console, f"diff out[{slot}] {file}")
            assert text.startswith(f"out[{slot}] and {file}[{slot}]: all")
        assert f"out[1] and {file}[1]: all" in answer_text(console, f"diff out[1] {file}[1]")
        assert f"out[1] and {file}[0]: " in answer_text(console, f"diff out[1] {file}[0]")
        with pytest.raises(HostError, match="has 4 entries, none of number 4"):
            answer_text(console, f"diff out[1] {file}[4]")
        np.save(file, entries[:2])
        with pytest.raises(HostError, match="has 2 entries, none of number 3"):
            answer_text(console, f"diff out[3] {file}")
        np.save(file, np.concatenate([entries] * 4))
        with pytest.raises(HostError, match=r"has 16 entries: say which one out.3. is, .*q.npy.0. to"):
            answer_text(console, f"diff out[3] {file}")


def test_the_result_of_an_op_needs_the_entry_of_a_file(tmp_path, console):
    file = tmp_path / "a.npy"
    answer_text(console, "tbreak a", "c", "n")
    result = console.run.tensor("op:a").values()
    np.save(file, np.stack([result, result]))
    with pytest.raises(HostError, match="say which one a is"):
        answer_text(console, f"diff op:a {file}")
    assert "elements are equal" in answer_text(console, f"diff op:a {file}[1]")


def test_bytes_are_no_tiles(console):
    with pytest.raises(HostError, match=r"a tile: print x.0. tile 0,1"):
        answer_text(console, "x x[0] tile 0,1")


def test_later_answers_say_what_was_changed(console):
    answer_text(console, "tbreak a", "c")
    assert answer_text(console, "skip") == "op a skipped in input 1"
    assert answer_text(console, "n").splitlines()[-1] == "(changed: op a skipped in input 1)"
    assert answer_text(console, "info vars").splitlines()[-1] == "(changed: op a skipped in input 1)"
    assert "changed" not in answer_text(console, "back epoch")


def test_tensors_against_files_and_bits(console, tmp_path):
    with session(TRAINING) as run:
        values = run.tensor("x[0]").values()
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values + 1, other=values)
    assert "all 8192 elements are equal" in answer_text(console, f"diff x[0] {tmp_path / 'x.npy'}")
    assert "8192 of 8192 elements differ, largest difference 1" in answer_text(
        console, f"diff x[0] {tmp_path / 'x.npz'}"
    )
    np.save(tmp_path / "entries.npy", np.stack([values + 1, values + 2, values]))
    entries = tmp_path / "entries.npy"
    assert f"x[0] and {entries}[0]: 8192 of 8192" in answer_text(console, f"diff x[0] {entries}[0]")
    np.save(tmp_path / "more.npy", np.stack([values, values]).reshape(-1)[:-32])
    with pytest.raises(HostError, match="has 8192 elements"):
        answer_text(console, f"diff x[0] {tmp_path / 'more.npy'}")
    with pytest.raises(HostError, match="no array 'y'"):
        answer_text(console, "tbreak if wr(y) > 0", "c", f"diff y {tmp_path / 'x.npz'}")
    found = execute(console, "print x[0] tile 1,2 --bits").data
    assert found["values"] == values[0, 32:64, 64:96].tolist()
    assert found["words"][0][0] == np.float32(values[0, 32, 64]).view(np.uint32) >> 16
    assert len(execute(console, "print x[0] tile 1,2 --all").lines) == 33
    whole = execute(console, "x x[0] 0 1024").data["buffers"]
    assert len(whole) == 1
    assert bytes.fromhex(whole[0]["data"])[16:18] == (values[0, 0, 0].view(np.uint32) >> 16).astype("<u2").tobytes()


def test_inside_of_an_op_step_and_back_go_from_unit_to_unit():
    with session(TRAINING, precision="device") as run:
        console = Console(run)
        answer_text(console, "break h", "c")
        assert answer_text(console, "into tile 0,0").splitlines()[0].startswith("op h tile 0,0,0: ")
        assert answer_text(console, "s").startswith("2 of ")
        assert answer_text(console, "back").startswith("1 of ")
        assert answer_text(console, "s").startswith("2 of ")
        assert answer_text(console, "n 2").startswith("4 of ")
        assert answer_text(console, "back").startswith("3 of ")
        assert execute(console, "s").data["step"]["unit"] == "matrix unit"
        assert answer_text(console, "finish").startswith("breakpoint 1")
        answer_text(console, "into 0,0")
        assert "before op a" in answer_text(console, "s 999", "n")
        answer_text(console, "back")
        last = execute(console, "into 0,0").data["steps"]
        assert answer_text(console, f"s {last - 1}").startswith(f"{last} of {last}: ")
        assert "epoch forward" in answer_text(console, "s")  # it has left the op
        answer_text(console, "into 0,0")
        assert "epoch forward" in answer_text(console, "back")


def test_inside_of_an_op_without_a_place_is_its_first_tile():
    with session(TRAINING, precision="device") as run:
        console = Console(run)
        answer_text(console, "break h", "c")

        def packed(line):
            return execute(console, f"s {execute(console, line).data['steps'] - 1}").data["step"]

        assert packed("into") == packed("into 0,0") != packed("into 0,1")


@pytest.mark.parametrize(
    ("expression", "shown"), [("1234567", "1234567"), ("0 - 12345678", "-12345678"), ("1e16", "1e+16"), ("0.5", "0.5")]
)
def test_integers_are_shown_with_all_digits(console, expression, shown):
    assert answer_text(console, f"print {expression}") == shown


def test_variables_are_those_of_the_program_that_runs(console):
    assert answer_text(console, "info vars") == "no program runs"
    lines = answer_text(console, "break op a", "c", "info vars").splitlines()
    assert lines == ["$p_loop_count = 2", "$x_global = 0", "$x_local = 0", "$x_shadow = 0"]


def test_the_nearest_command_may_be_one_of_two_letters(console):
    for word, nearest in (("rcc", "rc"), ("btt", "bt")):
        with pytest.raises(HostError, match=rf"no command '{word}' \(did you mean '{nearest}'\?\)"):
            answer_text(console, word)


def test_completion(console):
    def offers(text):
        begin, words = complete(console, text)
        return [text[:begin] + word for word in words]

    assert offers("conti") == ["continue"]
    assert offers("info q") == ["info queues"]
    assert offers("break prod") == ["break product"]
    assert "break if absmax(" in offers("break if abs")
    assert offers("break if absmax(op:prod") == ["break if absmax(op:product"]
    assert offers("print grad_w1") == ["print grad_w1"]
    assert offers("help brea") == ["help break"]
    assert offers("back ep") == ["back epoch"]
    assert offers("nonsense x") == []
    answer_text(console, "break h", "c")
    assert offers("set $p") == ["set $p_loop_count"]
    assert offers("delete ") == ["delete 1"]


def test_the_line_that_an_empty_line_repeats():
    assert line_to_repeat("next 3") == "next 3"
    assert line_to_repeat("list 40") == "list"
    assert line_to_repeat("print x") == ""
    assert line_to_repeat("") == ""


def test_comments_and_empty_lines_do_nothing(console):
    assert execute(console, "# a note").lines == ()
    assert execute(console, "  ").lines == ()
    assert not console.quit
    execute(console, "q")
    assert console.quit


def test_a_failed_program_is_explained(tmp_path):
    with session(ATTENTION) as run:
        assert answer_text(Console(run), "why-not") == (
            "the program did not stop with an error: there is nothing to explain"
        )
