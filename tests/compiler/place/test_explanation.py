"""The report says in three sentences and a picture why a placement is as it is."""

import re

import pytest

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.explanation import BAR, DRAWN, EpochCost, draw_epochs, epoch_costs, explanation

pytest.importorskip("onnx")


def sentences(compiled, first_cycles=None):
    return explanation(evaluate(compiled.placement), first_cycles)[0]


@pytest.fixture(scope="module")
def two_layers():
    from onnx_graphs import products_in_a_row

    return products_in_a_row(2, 32, 64)


@pytest.fixture(scope="module")
def stack():
    """A model with more than one epoch."""
    from onnx_graphs import products_in_a_row

    return products_in_a_row(8, 64, 256)


def test_the_sentences_name_the_choice_the_cut_and_what_takes_the_cycles(two_layers):
    compiled = compile_model(two_layers, microbatch=1)
    cycles = evaluate(compiled.placement).cycles
    text = sentences(compiled, 2 * cycles)
    assert "takes the fewest cycles: the first legal one takes 2.00 times the cycles." in text
    assert "All ops share one epoch, on " in text
    assert "What takes the cycles: " in text
    assert "loading epochs for " in text


def test_low_effort_says_that_nothing_was_searched(two_layers):
    text = sentences(compile_model(two_layers, effort="low"))
    assert text.startswith("Nothing was searched, as effort is low")
    assert "finds no room" not in text


def test_the_shares_of_what_takes_the_cycles_make_up_all_of_them(stack):
    text = sentences(compile_model(stack, microbatch=1, effort="low"))
    shares = [int(share) for share in re.findall(r"for (\d+) %", text[text.index("What takes") :])]
    assert len(shares) > 1
    assert abs(sum(shares) - 100) <= len(shares)


def test_costs_of_epochs_are_those_of_the_model(stack):
    compiled = compile_model(stack, microbatch=1, effort="low")
    evaluation = evaluate(compiled.placement)
    costs = epoch_costs(evaluation)
    assert len(costs) == compiled.placement.epochs
    assert sum(cost.cycles for cost in costs) == pytest.approx(sum(evaluation.run.programs().values()))
    assert all(0 < cost.loading <= cost.cycles for cost in costs)


def test_several_epochs_are_counted_and_the_longest_is_named():
    from onnx_graphs import products_in_a_row

    compiled = compile_model(products_in_a_row(24, 64, 1024), microbatch=1, effort="low")
    text = sentences(compiled)
    assert compiled.placement.epochs > 1
    assert f"The ops are cut into {compiled.placement.epochs} epochs" in text
    assert re.search(r"the longest epoch, \d+, \d+ %", text)


def test_bars_are_as_long_as_their_epochs_and_show_loading_first():
    costs = [EpochCost("0", 100.0, 50.0, "a link"), EpochCost("1", 50.0, 0.0, "an op on its largest grid")]
    first, second = draw_epochs(costs)
    assert "." * (BAR // 2) + "#" * (BAR // 2) + "   67 %  a link" in first
    assert "#" * (BAR // 2) in second
    assert "." not in second
    assert first.index("67 %") == second.index("33 %")


def test_the_picture_has_the_longest_epochs_and_one_line_for_the_others():
    costs = [EpochCost(str(number), float(number + 1), 0.0, "a link") for number in range(DRAWN + 3)]
    lines = list(draw_epochs(costs))
    assert len(lines) == DRAWN + 1
    assert lines[0].startswith("epoch 3 ")
    assert lines[-1] == "3 shorter epochs 3 %"


def test_the_report_and_the_command_begin_with_it(two_layers, tmp_path, capsys):
    import onnx

    from buda_emu.app.cli.main import main

    compiled = compile_model(two_layers)
    first = "This is the only placement that was tried: the first legal one takes "
    assert str(compiled.report()).split("\n\n")[1].startswith(first)
    onnx.save(two_layers, tmp_path / "model.onnx")
    assert main(["compile", str(tmp_path / "model.onnx"), "--explain", "--quiet"]) == 0
    assert first in capsys.readouterr().out
    assert main(["compile", str(tmp_path / "model.onnx"), "--explain", "--stop-after", "lower"]) == 2
    assert "--explain cannot be combined with --stop-after" in capsys.readouterr().err
