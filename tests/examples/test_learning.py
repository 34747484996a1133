"""The examples that train torch modules run to their end, and learn (docs/compile/train-a-model.md)."""

import re
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("torch")
import learn_digits
import learn_to_sort
import write_text

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


def curves(path):
    """The curves of a picture, and those of its legend."""
    return [item for item in ET.parse(path).iter("{http://www.w3.org/2000/svg}path") if item.get("style")]


def losses(text):
    """By the name in front: the last loss, and the share in percent, of each line that has both."""
    found = re.findall(r"^(\w+):? +loss .*?([\d.]+), .*?([\d.]+)%", text, re.MULTILINE)
    return {name: (float(loss), float(share)) for name, loss, share in found}


def test_a_classifier_trains_in_a_block_format(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(learn_digits, "FORMATS", ("Bfp8_b",))
    learn_digits.main(["--steps", "4", "--picture", str(tmp_path / "digits.svg")])
    found = losses(capsys.readouterr().out)
    assert found["Bfp8_b"][0] == pytest.approx(found["torch"][0], rel=0.1)
    assert len(curves(tmp_path / "digits.svg")) == 4


def test_a_sorter_takes_the_steps_of_torch(capsys, tmp_path):
    learn_to_sort.main(["--steps", "2", "--picture", str(tmp_path / "sort.svg")])
    out = capsys.readouterr().out
    found = losses(out)
    assert found["ideal"][0] == pytest.approx(found["torch"][0], abs=0.002)
    assert re.search(r"^(\d ){8}->( \d){8}$", out, re.MULTILINE)
    assert len(curves(tmp_path / "sort.svg")) == 4


def test_a_gpt_goes_on_writing(monkeypatch, capsys):
    for name, value in {"WIDTH": 32, "LENGTH": 32, "WRITTEN": 5}.items():
        monkeypatch.setattr(write_text, name, value)
    write_text.main(["--steps", "1"])
    first, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"step +0 loss 3\.\d+", first)
    assert re.fullmatch(r"a queue \|[a-z .,]{5}", last)


@pytest.mark.slow
def test_the_classifier_learns_in_both_formats(capsys):
    learn_digits.main([])
    found = losses(capsys.readouterr().out)
    assert set(found) == {"torch", *learn_digits.FORMATS}
    assert min(share for _, share in found.values()) > 90


@pytest.mark.slow
def test_the_sorter_learns_to_sort(capsys):
    learn_to_sort.main([])
    found = losses(capsys.readouterr().out)
    assert found["ideal"][1] > 90
    assert found["ideal"][1] == pytest.approx(found["torch"][1], abs=5)


@pytest.mark.slow
def test_the_gpt_learns_its_sentences(capsys):
    write_text.main([])
    written = capsys.readouterr().out.splitlines()[-1].partition("|")[2]
    assert written[:40] in write_text.TEXT * 2
