"""A model that was saved is called again in another process, and gives what the compiled model gave."""

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.load_model import LoadedModel, LoadedParts, LoadedPrograms
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.model_programs import WindowProgram
from image_documents import members_of
from small_images import TOP, members, parts, tar_bytes, write

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
WINDOW = 2
VOCABULARY = 20

IN_ANOTHER_PROCESS = """
import json
import sys
from pathlib import Path
import numpy as np
import buda_emu as be

folder, precision = Path(sys.argv[1]), sys.argv[2]
for image in sorted(folder.glob("*.tti"), key=lambda path: path.stem == "parted"):
    if image.stem == "parted":  # the last one: what the host computes is the compiler's
        assert not {"torch", "onnx", "buda_emu.compiler.compiled"} & set(sys.modules), "more was imported than needed"
    model = be.load_model(image)
    with np.load(folder / f"{image.stem}.in.npz") as file:
        inputs = [file[f"in{number}"] for number in range(len(file.files))]
    results = [array for _ in range(2) for array in model(*inputs, precision=precision)]
    np.savez(folder / f"{image.stem}.out.npz", *results)
    if image.stem == "decoder":
        model.reset()
        (folder / "tokens.json").write_text(json.dumps(model.generate([3, 1, 4], 5, precision=precision)))
        np.savez(folder / "caches.npz", **model.caches())
"""


class Several(torch.nn.Module):
    """Several inputs of several types, and nested outputs, one of them a number."""

    def forward(self, x, index, scale):
        return {"rows": (x[index], x.argmax(-1)), "more": [x.sum() * scale, x > 0]}


class Mean(torch.nn.Module):
    """What it has seen so far, forgotten by halves."""

    def forward(self, x, seen):
        seen = 0.5 * seen + x
        return 2 * seen, seen


class Decoder(torch.nn.Module):
    """Scores of tokens from the windows of tokens that were seen before."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(VOCABULARY, 32)
        self.places = torch.nn.Embedding(WINDOW * 4, 32)
        self.head = torch.nn.Linear(32, VOCABULARY)

    def forward(self, tokens, positions, seen):
        x = self.table(tokens) + self.places(positions)
        before = torch.softmax(x @ seen.transpose(1, 2), -1) @ seen
        return self.head(torch.sin(3 * (x + before))), x


def small():
    torch.manual_seed(0)
    return be.compile(torch.nn.Sequential(torch.nn.Linear(40, 8), torch.nn.GELU()), torch.zeros(1, 40), effort="low")


def several():
    example = (torch.zeros(6, 5), torch.tensor([1, 3]), torch.tensor(2.0))
    return be.compile(Several(), example, effort="low")


def mean():
    example = (torch.zeros(3, 40), torch.full((3, 40), 8.0))
    return be.compile_programs(be.Program(Mean(), example, keeps={1: "seen"}), effort="low")


def parted():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    return be.compile_in_parts(layers, torch.zeros(2, 8), on_host=["gelu"], effort="low")


class Harmful:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def decoder():
    example = (torch.zeros(1, WINDOW, dtype=torch.long), torch.arange(WINDOW)[None], torch.zeros(1, WINDOW * 4, 32))
    return be.compile_programs(be.Program(Decoder().eval(), example, keeps={1: "seen"}), effort="low")


MODELS = {
    "small": (small, [random(5, 40)]),  # five sets of inputs
    "several": (several, [random(6, 5), np.array([5, 2]), np.float32(0.5)]),
    "mean": (mean, [random(3, 40)]),
    "parted": (parted, [random(2, 8)]),
    "decoder": (decoder, [np.array([[3, 1]]), np.array([[0, 1]])]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def models(folder):
    """The compiled models by name; their images and inputs are in the folder."""
    compiled = {name: compile_model() for name, (compile_model, _) in MODELS.items()}
    for name, (_, inputs) in MODELS.items():
        compiled[name].save(folder, name)
        np.savez(folder / f"{name}.in.npz", **{f"in{number}": array for number, array in enumerate(inputs)})
    return compiled


@pytest.mark.parametrize(
    "precision", ["ideal", *(pytest.param(word, marks=pytest.mark.slow) for word in ("format", "device"))]
)
def test_another_process_gives_what_the_compiled_models_gave(models, folder, precision, child_environment):
    script = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(folder), precision]
    done = subprocess.run(script, env=child_environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for name, model in models.items():
        model.close()  # caches are those of the beginning
        expected = [array for _ in range(2) for array in model(*MODELS[name][1], precision=precision)]
        with np.load(folder / f"{name}.out.npz") as outputs:
            arrays = [outputs[key] for key in outputs.files]
        assert [(array.dtype, array.shape) for array in arrays] == [(want.dtype, want.shape) for want in expected]
        for array, want in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(array, want)
    decoder = models["decoder"]
    decoder.reset()
    assert json.loads((folder / "tokens.json").read_text()) == decoder.generate([3, 1, 4], 5, precision=precision)
    with np.load(folder / "caches.npz") as caches:
        assert set(caches.files) == set(decoder.caches())
        for name, content in decoder.caches().items():
            assert np.abs(content).sum() > 0
            np.testing.assert_array_equal(caches[name], content)


def test_dtypes_shapes_and_kinds(models, folder):
    loaded = {name: be.load_model(folder / f"{name}.tti") for name in models}
    assert [type(loaded[name]) for name in ("small", "parted", "mean")] == [LoadedModel, LoadedParts, LoadedPrograms]
    outputs = loaded["several"](*MODELS["several"][1])
    assert [output.dtype.name for output in outputs] == ["float32", "int64", "float32", "bool"]
    assert [output.shape for output in outputs] == [(2, 5), (6,), (), (6, 5)]
    for name, model in loaded.items():
        assert len(repr(model)) < 120 + len(str(folder))
        assert f"{name}.tti" in repr(model)
        assert model._repr_html_().startswith("<p>Loaded")
        assert [array.shape for array in model.example_inputs()] == [
            np.shape(array) for array in (MODELS[name][1] if name != "small" else [random(1, 40)])
        ]


@pytest.mark.slow
def test_copies_on_several_chips_and_programs_that_share_a_cache(tmp_path):
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    copies = be.compile(layers, torch.zeros(1, 64), chips=2)
    assert copies.placement.copies == 2
    loaded = be.load_model(copies.save(tmp_path, "copies")[1])
    for inputs in (random(1, 64), random(5, 64)):
        np.testing.assert_array_equal(loaded(inputs)[0], copies(inputs)[0])

    class Twice(torch.nn.Module):
        """Twice what a cache holds."""

        def forward(self, seen):
            return 2 * seen

    first = torch.full((3, 40), 8.0)
    programs = {
        "write": be.Program(Mean(), (torch.zeros(3, 40), first), keeps={1: "seen"}),
        "read": be.Program(Twice(), first),
    }
    both = be.compile_programs(programs, effort="low")
    loaded = be.load_model(both.save(tmp_path, "both")[1])
    assert list(loaded.programs) == ["write", "read"]
    for name, inputs in (("read", ()), ("write", (random(3, 40),)), ("read", ())):
        np.testing.assert_array_equal(loaded(*inputs, program=name)[0], both(*inputs, program=name)[0])
    with pytest.raises(be.HostError, match="is not one of: write, read"):
        loaded.run({})


def test_inputs_by_name_and_as_torch_tensors(models, folder):
    model = be.load_model(folder / "several.tti")
    inputs = MODELS["several"][1]
    by_name = model.run(dict(zip(model.io.labels, inputs, strict=True)))
    tensors = model(*map(torch.as_tensor, inputs))
    for one, other in zip(by_name, tensors, strict=True):
        np.testing.assert_array_equal(one, other)
    del models


@pytest.mark.parametrize(
    ("name", "call", "says"),
    [
        ("small", lambda model: model(), "0 inputs, the model takes 1: input"),
        ("small", lambda model: model(random(1, 41)), r"shape \[1, 41\], the model takes \[1, 40\]"),
        ("small", lambda model: model.run({"inputs": random(1, 40)}), "unknown inputs"),
        ("parted", lambda model: model(random(3, 8)), r"shape \[3, 8\], the model takes \[2, 8\]"),
        ("decoder", lambda model: model.generate([1], 20), "caches have room for 8, 4 windows of 2 tokens$"),
        ("decoder", lambda model: model(*MODELS["decoder"][1], write_index=4), "write_index 4 for 1 round"),
        ("decoder", lambda model: model(*MODELS["decoder"][1], program="other"), "'other' is not one of: model"),
        ("decoder", lambda model: model.run({"tokens": random(1, 2)}), "no positions"),
    ],
)
def test_wrong_calls_are_refused_by_name(models, folder, name, call, says):
    assert name in models
    with pytest.raises(be.HostError, match=says):
        call(be.load_model(folder / f"{name}.tti"))


@pytest.mark.parametrize("name", ["advise", "numerics", "perf"])
@pytest.mark.usefixtures("models")
def test_a_method_of_compiled_models_names_the_function_for_loaded_ones(folder, name):
    model = be.load_model(folder / "several.tti")
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': call be\.{name}\(model\)"):
        getattr(model, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'prf'$"):
        model.prf  # noqa: B018


def test_caches_that_are_written_as_a_whole_are_one_window():
    program = WindowProgram("m", shapes=((1, 1), (1, 1)), slots=1, room=1, run=lambda *_: np.zeros(0))
    with pytest.raises(be.HostError, match="room for 1, 1 window of 1 token: caches that are written as a whole are"):
        program.generate([3, 1], 4)


def test_a_file_is_known_by_its_content(models, folder):
    path = folder / "small.tti"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert be.load_model(path, digest=digest.upper()).digest == digest
    with pytest.raises(be.HostError, match=f"its SHA-256 is {digest}, not 00"):
        be.load_model(path, digest="00")
    with pytest.raises(be.HostError, match="it is for wormhole_b0, not for grayskull"):
        be.load_model(path, arch="grayskull")
    del models


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is a folder, not an image: it holds decoder.tti, mean.tti, parted.tti"),
        ("small.yaml", "is a netlist, which has no parameters: load_model takes the image"),
        ("model.onnx", "is a model that is not compiled: buda_emu.compile takes it"),
    ],
)
def test_what_is_no_image_is_refused_by_name(models, folder, name, says):
    assert models
    with pytest.raises(be.HostError, match=says):
        be.load_model(folder / name)


def test_images_that_cannot_be_called_are_refused_by_name(tmp_path):
    packed = write(tmp_path / "packed.tti", tar_bytes(members(*parts())))
    with pytest.raises(be.HostError, match=r"does not state a model.s inputs and outputs.*load_image opens it"):
        be.load_model(packed)
    training = be.compile_training(torch.nn.Linear(8, 3), torch.zeros(4, 8), loss="mse", effort="low")
    training.save(tmp_path, "training")
    with pytest.raises(be.UnsupportedError, match="is the image of a training, which cannot be loaded"):
        be.load_model(tmp_path / "training.tti")


def test_a_pickle_is_never_loaded(tmp_path):
    mark = tmp_path / "mark"
    file = "tensors/torch.Tensor.w.pkl"
    content, files = parts(w=(file, {f"{TOP}/{file}": pickle.dumps(Harmful(str(mark)))}))
    path = write(tmp_path / "pickled.tti", tar_bytes(members(content, files)))
    with pytest.raises(be.DocumentError, match="image-pickle"):
        be.load_model(path)
    assert not mark.exists()


def test_load_names_the_functions_for_images(models, folder):
    assert models
    with pytest.raises(be.NetlistError, match=r"buda_emu.load_model .to call the model. and buda_emu.load_image"):
        be.load(folder / "small.tti")


# ------------------------------------------------------------------------------------- what an image states of programs
@pytest.mark.parametrize(
    ("part", "changes", "place", "says"),
    [
        ("programs", {"program": "run_fwd_9"}, "programs/0/program", "run_fwd_9 is not a program of the netlist"),
        (
            "programs",
            {"inputs": ["tokens", "place"]},
            "programs/0/inputs/1",
            "place is not one of buda_emu_model.inputs",
        ),
        ("programs", {"outputs": ["scores"]}, "programs/0/outputs/0", "scores is not one of buda_emu_model.outputs"),
        ("programs", {"more": 1}, "programs/0/more", "the fields are name, program, inputs, outputs"),
        ("states", {"queue": "nowhere"}, "states/0/queue", "nowhere is not a ram of the netlist"),
        ("states", {"slots": 9}, "states/0/slots", "9, but ram"),
        ("states", {"shape": [1, 9, 32]}, "states/0/pieces", "they have not the 288 elements of shape [1, 9, 32]"),
        ("states", {"pieces": [[256, 64]]}, "states/0/pieces", "they reach beyond the"),
        ("states", {"pieces": [[2147483647, 0]], "shape": [2147483647]}, "states/0/pieces", "they reach beyond the"),
    ],
)
def test_statements_about_programs_are_held_against_the_netlist(models, folder, tmp_path, part, changes, place, says):
    assert models
    files = members_of((folder / "decoder.tti").read_bytes())
    device = json.loads(files["unzipped_tti/device.json"])
    device["buda_emu_model"][part][0].update(changes)
    files["unzipped_tti/device.json"] = json.dumps(device).encode()
    path = write(tmp_path / "changed.tti", tar_bytes(files))
    texts = [f"{finding.message} {finding.where}" for finding in check_image(path).diagnostics]
    assert any(says in text for text in texts), texts
    assert any(place in text for text in texts), texts
    with pytest.raises(be.DocumentError, match="buda_emu_model"):
        be.load_model(path)
