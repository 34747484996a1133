"""Small models of many kinds, trainings and generations, compiled with every effort, format, objective and number of
chips: right by our rules, by the vendor's programs where they are, and by torch (benchmarks/acceptance.py)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be

pytest.importorskip("torch")
pytest.importorskip("onnx")
import acceptance

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
CASES = acceptance.cases(packaged=False)
QUICK = {
    ("torch.recommender", "grayskull"), ("torch.splits_and_joins", "wormhole_b0"), ("torch.patches", "grayskull"),
    ("onnx.gathered", "wormhole_b0"), ("train.linear_attention", "wormhole_b0"),
    ("generate.gpt48", "grayskull"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number", "arch"),
    [
        pytest.param(name, number, arch, id=f"{name}-{arch}", marks=() if (name, arch) in QUICK else pytest.mark.slow)
        for number, name in enumerate(CASES)
        for arch in acceptance.ARCHS
    ],
)
def test_what_is_compiled_is_taken_and_right(name, number, arch, tmp_path):
    row = acceptance.Row(name, arch, acceptance.settings(name, arch, number))
    acceptance.judge(row, CASES[name], tmp_path / "now")
    assert (row.verdict, row.why) == ("right", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(acceptance.SETTINGS)))
@pytest.mark.parametrize("name", ["torch.small_unet", "torch.transformer", "onnx.fan_out", "train.masked_attention"])
@pytest.mark.parametrize("arch", acceptance.ARCHS)
def test_every_setting(name, number, arch, tmp_path):
    test_what_is_compiled_is_taken_and_right(name, number, arch, tmp_path)


def test_the_judges_speak():
    """A wrong value, a refusal and a fault of ours each have their verdict."""

    class Compiled:
        placement = type("Placement", (), {"ops": (), "epochs": 0})
        text = ""

        def check(self, strict):  # noqa: ARG002 - as that of a compiled model
            return ("V001 an error",)

    def judged(build):
        row = acceptance.Row("case", "grayskull", {})
        return acceptance.judge(row, build, Path("unused")).verdict

    def refuses(**_):
        raise be.UnsupportedError("compile: no")

    assert judged(lambda **_: (Compiled(), lambda: 1.0)) == "strict"
    assert judged(refuses) == "refused"
    assert judged(lambda **_: 1 / 0) == "error"
    assert acceptance.least([np.ones(3)], [np.zeros(3)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("script", ["acceptance", "compile_models"])
def test_it_runs_as_a_script(script: str) -> None:
    """It finds the vendor's programs by itself, not by what pytest adds to the path."""
    path = Path(acceptance.__file__).with_name(f"{script}.py")
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
