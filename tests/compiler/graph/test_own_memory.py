"""Large constants: one copy of each in memory, whatever is made of it, and none that the model can change."""

import shutil
import tempfile
import tracemalloc

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import MEMORY_LIMIT, Graph, Output, OwnMemory, memory_share
from buda_emu.compiler.graph.spec import CORE
from buda_emu.compiler.ir.text import Ir
from buda_emu.compiler.pipeline import Context, run

torch = pytest.importorskip("torch")


def padded_products():
    """A convolution whose channels are not whole tiles, and a product by its transposed weights: [graph, bytes]."""
    graph, rng = Graph(), np.random.default_rng(0)
    b = Builder(graph)
    kernels = rng.standard_normal((200, 250, 3, 3)).astype(np.float32)
    weights = rng.standard_normal((600, 1000)).astype(np.float32)
    ones = dict.fromkeys(("strides", "dilations"), (1, 1))
    y = b.conv(b.input("x", (1, 250, 4, 4), "float32"), b.constant(kernels), pads=((1, 1), (1, 1)), **ones)
    z = b.matmul(b.input("v", (1, 1000), "float32"), b.constant(weights.T))
    graph.outputs += [Output("y", y.name, "float32"), Output("z", z.name, "float32")]
    return graph, kernels.nbytes + weights.nbytes


def test_two_forms_of_a_model_hold_one_copy():
    graph, size = padded_products()
    run([Ir(CORE, graph)], Context(), after="dce", stop="lower")  # what is compiled and kept once
    tracemalloc.start()
    try:
        forms = run([Ir(CORE, graph), Ir(CORE, graph)], Context(), after="dce", stop="lower")
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < held < peak < 1.4 * size
    first, second = ({name: item.values for name, item in form.tiles.constants.items()} for form in forms)
    large = [name for name, array in first.items() if array.nbytes > size / 4]
    assert len(large) == 2
    assert all(first[name].key == second[name].key for name in large)


def test_equal_constants_are_one():
    memory, array = OwnMemory(), np.ones((512, 512), np.float32)
    found = memory.of(array, "a")
    assert memory.of(array.copy(), "b").key == found.key
    assert memory.of(2 * array, "c").key != found.key
    array[0, 0] = 7
    assert (np.asarray(found) == 1).all()


def test_what_lies_in_memory_otherwise_has_the_same_copy():
    """Scores of words are often a product by the transposed table of embeddings."""
    array = np.random.default_rng(0).standard_normal((64, 32, 256)).astype(np.float32)
    memory = OwnMemory()
    views = [array, array.transpose(2, 0, 1), array.reshape(-1, 256).T, array[::2], array[None]]
    tracemalloc.start()
    try:
        found = [memory.of(view, "a") for view in views]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1.6 * array.nbytes, "one copy, and one of every other row"
    for view, own in zip(views, found, strict=True):
        np.testing.assert_array_equal(np.asarray(own), view)


@pytest.mark.parametrize("array", [np.ones((8, 8), np.float32), np.ones((512, 512), np.int32)])
def test_small_ones_and_whole_numbers_stay_arrays(array):
    assert OwnMemory().of(array, "a") is array


def test_beyond_a_limit_copies_lie_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arrays = [np.random.default_rng(seed).standard_normal((512, 1024)).astype(np.float32) for seed in range(4)]
    memory = OwnMemory(most_bytes=arrays[0].nbytes)
    tracemalloc.start()
    try:
        found = [memory.of(array.T, "a") for array in arrays]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert arrays[0].nbytes < held < 1.2 * arrays[0].nbytes
    wanted = [array.T.copy() for array in arrays]
    for array in arrays:
        array[:] = 0
    for own, expected in zip(found, wanted, strict=True):
        for _ in range(2):  # its pages are given back, and read once more
            np.testing.assert_array_equal(np.asarray(own), expected)
    assert not list(tmp_path.iterdir()), "it has no name"


def test_without_room_for_a_file_copies_stay_in_memory(monkeypatch):
    usage = shutil.disk_usage(tempfile.gettempdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    array = np.ones((512, 1024), np.float32)
    assert (np.asarray(OwnMemory(most_bytes=0).of(array, "a")) == 1).all()
    assert memory_share(MEMORY_LIMIT + 1) == MEMORY_LIMIT + 1


class Mixed(torch.nn.Module):
    """Parameters above the limit for references, with padding, in groups and in halves."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(200, 200, 3, padding=1)
        self.groups = torch.nn.Conv2d(200, 400, 3, padding=1, groups=2)
        self.head = torch.nn.Linear(400 * 4, 200)

    def forward(self, x):
        a, b = self.head(self.groups(self.first(x)).flatten(1)).chunk(2, -1)
        return a * b


def test_a_model_that_changes_later_was_compiled_as_it_was(tmp_path):
    torch.manual_seed(0)
    module, x = Mixed().eval(), torch.randn(1, 200, 2, 2)
    with torch.no_grad():
        wanted = module(x).numpy()
        compiled = be.compile(module, (x,), effort="low", df="Float32", fidelity="HiFi4")
        for parameter in module.parameters():
            parameter.zero_()
    np.testing.assert_allclose(compiled(x)[0], wanted, atol=1e-4)
    _, image = compiled.save(tmp_path)
    assert {item.dump_format for item in be.load_image(image).tensors.values()} == {"BACKEND"}
