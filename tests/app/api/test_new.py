"""First netlists from a few words: valid, in the house's layout, and they run."""

import random

import pytest

import buda_emu
from buda_emu.app.api.new import FORMATS, new
from buda_emu.app.cli.main import main
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.load import check_text
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import HostError

ARCHS = ("grayskull", "wormhole_b0", "blackhole")
OPS = ("matmul:96", "matmul", "exp", "add", "multiply", "nop", "sqrt")


@pytest.mark.parametrize("seed", range(24))
def test_any_words_give_a_sound_netlist(seed):
    chosen = random.Random(seed)
    sizes = [32 * chosen.choice((1, 2, 3, 4, 8, 12)) for _ in range(2)]
    words = [f"{chosen.choice((1, 2, 4))}x{sizes[0]}x{sizes[1]}", *chosen.choices(OPS, k=chosen.randint(1, 5))]
    arch, df = chosen.choice(ARCHS), chosen.choice(FORMATS)
    text = new(words, arch=arch, df=df, inputs=chosen.randint(1, 4))
    assert check_text(text, "new", arch, strict=True).diagnostics == ()
    assert format_text(text) == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["matmul"], "the first word is the shape"),
        (["64x128"], "come op types"),
        (["65x128", "nop"], "multiples of 32"),
        (["0x128", "nop"], "multiples of 32"),
        (["64x128", "matmull"], "\\(did you mean 'matmul'\\?\\)$"),
        (["64x128", "splice"], "written by hand"),
        (["64x128", "softmax"], "no op type softmax: several ops, see docs/recipes.md"),
        (["64x128", "LayerNorm"], "no op type LayerNorm: several ops"),
        (["64x128", "matmul", "bias"], "no op type bias: a third input of a matmul"),
        (["64x128", "transpose"], "a TM of an input"),
        (["64x128", "gelu+add"], r"no op type gelu\+add \(op types are words of their own"),
        (["64x128", "frobnicate"], "no op type frobnicate$"),
        (["64x128", "gelu:3"], "only a matmul"),
        (["64x128", "ethernet_datacopy"], "another chip, .* see `buda-emu example two_chips`$"),
        (["64x128", "nop", "quantization"], "quantization changes the format, .* `buda-emu explain V103`$"),
        (["64x128", "subtract", "nop", "log"], "what nop gives may be negative: put abs between them, nop abs log$"),
        (["64x128", "matmul:64", "sine", "sqrt"], "what sine gives may be negative"),
        (["32000x32000", "nop"], "more than the chip's cores hold"),
        (["64x128", *["nop"] * 90], "no cores left"),
    ],
)
def test_what_cannot_be_written_is_said(words, said):
    with pytest.raises(HostError, match=said):
        new(words)


def _text_or_refusal(words):
    """Return the netlist of these words and "", or "" and the reason why there is none."""
    try:
        return new(words), ""
    except HostError as error:
        return "", str(error)


@pytest.mark.parametrize("name", [name for name in OP_TYPES if OP_TYPES.is_own(name)])
def test_every_op_type_gives_a_sound_netlist_that_passes_its_test_or_is_refused_by_name(name, tmp_path):
    text, refusal = _text_or_refusal(["32x64", name])
    if refusal:
        assert refusal.startswith(f"new: {name} ")
        assert "[V" not in refusal
        return
    assert check_text(text, "new", strict=True).diagnostics == ()
    path = tmp_path / "new.yaml"
    path.write_text(text)
    (case,) = buda_emu.test(str(path)).cases
    assert case.status == "passed", case.message
    assert case.doubts == ()
    assert [output.figures.not_finite_observed + output.figures.not_finite_expected for output in case.outputs] == [0]


@pytest.mark.parametrize("ops", [("subtract", "abs", "log"), ("matmul", "sqrt"), ("sine", "square", "reciprocal")])
def test_chains_with_ops_of_positive_numbers_run(ops, tmp_path):
    path = tmp_path / "new.yaml"
    path.write_text(new(["32x64", *ops]))
    assert main(["run", str(path), "-q"]) == 0


def test_the_verb_writes_a_file_that_runs_and_writes_over_none(tmp_path, capsys):
    path = tmp_path / "first.yaml"
    assert main(["new", "32x64", "matmul:32", "gelu", "-o", str(path)]) == 0
    assert main(["run", str(path)]) == 0
    assert "2x1x32x32" in capsys.readouterr().out
    assert main(["new", "32x64", "nop", "-o", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["new", "32x64", "nop", "-o", str(path), "--force"]) == 0
