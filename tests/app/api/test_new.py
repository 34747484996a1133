"""First netlists from a few words: valid, in the house's layout, and they run."""

import random

import pytest

from buda_emu.app.api.new import FORMATS, new
from buda_emu.app.cli.main import main
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import HostError

ARCHS = ("grayskull", "wormhole_b0", "blackhole")
OPS = ("matmul:96", "matmul", "gelu", "exp", "add", "multiply", "nop", "sqrt")


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
        (["32000x32000", "nop"], "more than the chip's cores hold"),
        (["64x128", *["nop"] * 90], "no cores left"),
    ],
)
def test_what_cannot_be_written_is_said(words, said):
    with pytest.raises(HostError, match=said):
        new(words)


def test_the_verb_writes_a_file_that_runs_and_writes_over_none(tmp_path, capsys):
    path = tmp_path / "first.yaml"
    assert main(["new", "32x64", "matmul:32", "gelu", "-o", str(path)]) == 0
    assert main(["run", str(path)]) == 0
    assert "2x1x32x32" in capsys.readouterr().out
    assert main(["new", "32x64", "nop", "-o", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["new", "32x64", "nop", "-o", str(path), "--force"]) == 0
