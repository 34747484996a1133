"""`perf`, `numerics` and `advise` take every form of a netlist, and say the same of all of them."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.compiler.graph.examples import example_sequence

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
FORMS = ("compiled", "loaded", "image", "netlist of the model", "netlist of the image", "path of the image", "path")


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(40, 8), torch.nn.GELU())


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """One model in every form."""
    folder = tmp_path_factory.mktemp("forms")
    compiled = be.compile(layers(), torch.ones(1, 40), effort="low")
    path, image = compiled.save(folder)
    loaded = be.load_model(image)
    forms = (compiled, loaded, loaded.image, compiled.netlist, loaded.netlist, image, path)
    return dict(zip(FORMS, forms, strict=True))


def test_perf_is_that_of_the_model(sources):
    cycles = {form: be.perf(source).cycles for form, source in sources.items()}
    assert set(cycles.values()) == {sources["compiled"].perf().cycles}


def test_a_compiled_model_is_modelled_on_its_chip():
    compiled = be.compile(layers(), torch.ones(1, 40), effort="low", board="n150")
    found = be.perf(compiled)
    assert found.run.chip == compiled.chip
    assert found.run.chip.board == "n150"
    assert found.cycles == compiled.perf().cycles
    assert be.advise(compiled, tries=5).chip == compiled.chip
    assert be.perf(compiled, board="n300").run.chip.board == "n300"
    assert be.perf(compiled, grid=(8, 8)).run.chip.grid == (8, 8)
    with pytest.raises(be.HostError, match="grayskull"):
        be.perf(compiled, board="e150")


@pytest.mark.parametrize("form", FORMS)
def test_advise_changes_the_text_of_every_form(sources, form):
    advice = be.advise(sources[form], tries=20)
    expected = be.advise(sources["path"], tries=20)
    assert [(entry.proposal.sentence, entry.total) for entry in advice.ranked] == [
        (entry.proposal.sentence, entry.total) for entry in expected.ranked
    ]
    assert (advice.before.cycles, advice.after.cycles) == (expected.before.cycles, expected.after.cycles)


def test_advise_of_a_netlist_whose_file_is_another_by_now(sources, root, tmp_path):
    path = tmp_path / "net.yaml"
    text = (root / "netlists/attention.yaml").read_text()
    path.write_text(text)
    netlist = be.load(path)
    assert b"# Multi-head" in be.advise(netlist, moves=["cores"], tries=30).text  # comments are kept
    path.write_text(text.replace("HiFi3", "LoFi"))
    advice = be.advise(netlist, moves=["cores"], tries=30)
    assert advice.found.taken
    assert b"HiFi3" in advice.text
    assert be.perf(netlist).cycles == advice.before.cycles


@pytest.mark.parametrize("form", FORMS)
def test_numerics_explains_every_form(sources, form):
    explained = be.numerics(sources[form], seed=1)
    assert [op.name for op in explained.ops] == list(sources["compiled"].netlist.ops)
    assert all(row["own_error"] is not None for row in explained.rows)
    assert len(repr(explained)) < 400


def test_numerics_of_a_model_are_its_own_on_inputs_in_its_order(sources):
    compiled, loaded = sources["compiled"], sources["loaded"]
    x = np.linspace(-1, 1, 40, dtype=np.float32)[None]
    by_layer = compiled.numerics([x])
    explained = be.numerics(compiled, inputs=[x])
    assert {op.name: op for layer in by_layer.layers for op in layer.ops} == {op.name: op for op in explained.ops}
    of_image = be.numerics(loaded, inputs=[torch.from_numpy(x)])
    assert [op.name for op in of_image.ops] == [op.name for op in explained.ops]
    only = be.numerics(compiled, op=explained.ops[0].name, inputs=[x])
    assert [op.name for op in only.ops] == [explained.ops[0].name]
    assert be.numerics(compiled).ops == be.numerics(compiled, inputs=compiled.example_inputs()).ops


def test_numerics_reads_a_models_inputs_from_a_file(sources, tmp_path):
    x = np.linspace(-1, 1, 40, dtype=np.float32)[None]
    (label,) = sources["compiled"].io.labels
    np.savez(tmp_path / "x.npz", **{label: x})
    found = be.numerics(sources["compiled"], inputs=tmp_path / "x.npz")
    assert found.ops == be.numerics(sources["compiled"], inputs=[x]).ops
    np.savez(tmp_path / "y.npz", y=x)
    with pytest.raises(be.HostError, match="holds y; the model takes input"):
        be.numerics(sources["compiled"], inputs=tmp_path / "y.npz")


@pytest.mark.parametrize(
    ("form", "words", "says"),
    [
        ("compiled", {"workers": 2}, "workers: options of netlists and images"),
        ("compiled", {"parameters": {"$p_loop_count": "1"}}, "parameters: options of netlists and images"),
        ("loaded", {"inputs": []}, "0 inputs, the model takes 1: input"),
        ("path", {"inputs": [1]}, "arrays are inputs of a model; for a netlist"),
    ],
)
def test_what_numerics_cannot_do_is_refused_by_name(sources, form, words, says):
    with pytest.raises(be.HostError, match=says):
        be.numerics(sources[form], **words)


def test_a_model_with_work_of_the_host():
    parted = be.compile_in_parts(layers(), torch.ones(2, 40), on_host=["gelu"], effort="low")
    assert be.perf(parted).cycles == parted.compiled.perf().cycles
    assert be.advise(parted, tries=5).before.cycles == parted.compiled.perf().cycles
    with pytest.raises(be.UnsupportedError, match="the host computes a part of the model"):
        be.numerics(parted)
    alone = be.compile_in_parts(torch.nn.GELU(), torch.ones(2, 8), on_host=["gelu"], effort="low")
    with pytest.raises(be.HostError, match="the host does all of it"):
        be.perf(alone)


@pytest.mark.parametrize("function", [be.perf, be.numerics, be.advise])
@pytest.mark.parametrize("source", [None, 3, [], layers()])
def test_anything_else_is_refused_by_its_type(function, source):
    with pytest.raises(be.HostError, match=f"{type(source).__name__} is none of: path of a netlist"):
        function(source)


def test_the_commands_take_images(sources, tmp_path, capsys):
    image = str(sources["path of the image"])
    for verb in ("advise", "numerics", "perf"):
        assert main([verb, image, "--json", str(tmp_path / f"{verb}.json"), "-q"]) == 0
        assert (tmp_path / f"{verb}.json").stat().st_size > 100
    written = tmp_path / "faster.yaml"
    assert main(["advise", image, "--write", str(written), "-q"]) == 0
    assert be.check(written).ok
    capsys.readouterr()


# ----------------------------------------------------------------------------------------------- a single example input
def test_a_single_tensor_is_an_example_input(sources):
    (example,) = sources["compiled"].example_inputs()
    np.testing.assert_array_equal(example, np.ones((1, 40), np.float32))
    assert sources["compiled"](np.zeros((4, 40), np.float32))[0].shape == (4, 8)


@pytest.mark.parametrize("single", [np.zeros((2, 3)), torch.zeros(2, 3), np.float32(1), 1.5, 2, np.zeros(())])
def test_what_is_one_example(single):
    (example,) = example_sequence(single)
    assert example is single


@pytest.mark.parametrize("several", [[1, 2], (np.zeros(2),), []])
def test_what_is_a_sequence_of_examples_stays_one(several):
    assert example_sequence(several) is several
    assert example_sequence(None) is None
    assert example_sequence(iter([1, 2])) == (1, 2)


def test_examples_of_other_kinds_are_refused():
    with pytest.raises(be.HostError, match="example inputs: a object: give one array, or a tuple"):
        be.compile(layers(), object())
    with pytest.raises(be.HostError, match="example inputs: a dict: give one array, or a tuple"):
        example_sequence({"x": np.zeros(2)})


def test_other_compilations_take_a_single_tensor():
    class Halves(torch.nn.Module):
        """A state that is halved each time."""

        def forward(self, seen):
            return seen + 1, 0.5 * seen

    programs = be.compile_programs(be.Program(Halves(), torch.full((2, 3), 4.0), keeps={1: "seen"}), effort="low")
    assert [float(programs()[0][0, 0]) for _ in range(3)] == [5, 3, 2]
    training = be.compile_training(torch.nn.Linear(8, 3), torch.zeros(4, 8), loss="mse", effort="low")
    assert training.train_step(np.ones((4, 8), np.float32), np.zeros((4, 3), np.float32)) > 0
