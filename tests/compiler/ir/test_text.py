"""IR as text and back: equal bit by bit, short, and refused with a place where it is none."""

import numpy as np
import pytest

from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.text import Ir, parse_file, parse_ir, print_file, print_ir, read_ir, write_ir
from buda_emu.compiler.ir.values import IrError, digest, load_arrays, save_arrays
from buda_emu.compiler.pipeline import NAMES, PASSES, Context, file_of
from buda_emu.compiler.target import Objective, Target
from buda_emu.support.errors import HostError
from shared_files import SHARED

pytest.importorskip("onnx")
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))
ALWAYS = ("mlp", "lenet", "dlrm")
EVERY = [pytest.param(path, marks=() if path.stem in ALWAYS else pytest.mark.slow, id=path.stem) for path in MODELS]
WORMHOLE = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
SMALL = """core "g":
  x = input {label: "x"} : float32[2, 3] from "x"
  y = exp(x) : float32[2, 3]
  output "y" = y : float32
"""


@pytest.mark.parametrize("path", EVERY)
@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull"])
def test_every_pass_of_a_model_leaves_what_its_text_says(path, arch):
    context = Context(
        Target.from_names(arch, "Float16_b", "HiFi3"), Objective.from_options("default", "throughput", 1, None)
    )
    forms = [Ir(FRONT, read_model(path, None))]
    for name, step in zip(NAMES, (*PASSES, None), strict=True):
        text, arrays = print_file(file_of(name, forms, context))
        again = parse_file(text, arrays)
        assert again.forms == tuple(forms), name
        assert print_file(again)[0] == text
        forms = step.run(forms, context) if step is not None and step.wanted(context) else forms


def test_files_are_read_as_they_were_written(tmp_path):
    graph = parse_ir(SMALL).graph
    graph.nodes["y"].attrs["odd"] = np.arange(40, dtype=np.float32)  # type: ignore[index]
    file = file_of("dce", [Ir("core", graph)], Context(WORMHOLE))
    write_ir(tmp_path, "model.dce", file)
    assert read_ir(tmp_path / "model.dce.ir").forms == file.forms


def test_large_arrays_stand_as_a_digest_and_even_ones_as_a_number():
    graph = parse_ir(SMALL).graph
    graph.nodes["y"].attrs["odd"] = np.arange(40, dtype=np.float32)  # type: ignore[index]
    graph.nodes["y"].attrs["even"] = np.full((8, 8), 0.5, np.float32)  # type: ignore[index]
    text = print_ir(Ir("core", graph))
    assert "odd: float32[40] @" in text
    assert "even: float32[8, 8] = 0.5" in text
    assert len(text) < 250


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no model in it"),
        ("netlist: {}", "1:1: 'buda' is missing before 'netlist'"),
        ("buda-emu ir 7", "version 7 of IR files"),
        ("buda-emu ir 1\nafter dce\nmiddle \"g\":", "3:8: middle is not a level: front, core, tile, placed"),
        ("buda-emu ir 1\nafter dce\n  y = exp(x) : float32[2]", "no level comes before it"),
        ('buda-emu ir 1\nafter dce\ncore "g":\n  y = exp(x : float32[2]', "4:13: ',' is missing before ':'"),
        ('buda-emu ir 1\nafter dce\ncore "g":\n  y = exp(x) : float32[-2]', "[-2] is not a shape"),
        ('buda-emu ir 1\nafter dce\ncore "g":\n  y = exp(x) {a: float32[9] @0123456789ab} : float32[2]',
         "no array @0123456789ab in its file of arrays"),
        ('buda-emu ir 1\nafter dce\ncore "g":\n  y = exp(x) {a: Evil(b: 1)} : float32[2]', "Evil is neither a"),
        ('buda-emu ir 1\nafter dce\ncore "g":\n  y = exp(x) : float32[2]\n  y = exp(x) : float32[2]',
         "there is a node y already"),
    ],
)  # fmt: skip
def test_what_is_no_ir_is_refused_with_its_place(text, complaint):
    with pytest.raises(IrError) as refused:
        parse_file(text, {}, "m.ir")
    assert complaint in str(refused.value)


def test_odd_texts_survive():
    text = SMALL.replace('label: "x"', 'label: "a \\"b\\" \\\\ \\u{a} {c}: #"')
    form = parse_ir(text)
    assert form.graph["x"].attrs["label"] == 'a "b" \\ \n {c}: #'
    assert parse_ir(print_ir(form)) == form


def test_arrays_of_another_text_are_refused(tmp_path):
    """Under the name of those that were saved."""
    path, saved = tmp_path / "a.npz", np.arange(12, dtype=np.float32)
    save_arrays(path, {digest(saved): saved + 1})
    with pytest.raises(HostError, match=f"array {digest(saved)} is another one than was saved"):
        load_arrays(path)
    save_arrays(path, {digest(saved): saved})
    assert np.array_equal(load_arrays(path)[digest(saved)], saved)


def test_damaged_arrays_are_refused_by_name(tmp_path):
    path, chosen, refused = tmp_path / "a.npz", np.random.default_rng(1), 0
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_arrays(path, {digest(array): array})
    whole = path.read_bytes()
    for _ in range(300):
        data = bytearray(whole)
        data[chosen.integers(len(data))] = chosen.integers(256)
        path.write_bytes(data)
        try:
            load_arrays(path)
        except HostError as error:
            assert str(path) in str(error)  # noqa: PT017
            refused += 1
    assert refused > 150
