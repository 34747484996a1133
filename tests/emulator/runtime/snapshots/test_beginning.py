"""Snapshots of machines that began with a device image refer to it for what has not changed."""

import zipfile

import numpy as np
import pytest

import buda_emu as be
from buda_emu.support.errors import HostError
from small_images import values

torch = pytest.importorskip("torch")
LARGE = 1 << 20


class Model(torch.nn.Module):
    """A product whose parameter is large enough to stay in the image, and a sum."""

    def __init__(self):
        super().__init__()
        self.product = torch.nn.Linear(1024, 1024)

    def forward(self, x):
        return torch.relu(self.product(x))


def saved(folder, seed=0, name="model"):
    torch.manual_seed(seed)
    return be.load_image(be.compile(Model().eval(), (torch.zeros(1, 32, 1024),), effort="low").save(folder, name)[1])


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("image"))


def machine(image, precision, limit=1 << 30):
    emulator = be.Emulator(image.for_inputs, precision, memory_limit=limit)
    emulator.begin_with(image)
    return emulator


def outputs(emulator, image):
    """Of one run."""
    for item in image.model.inputs:
        emulator.push(item.queue, item.to_queue(values((1, 32, 1024))))
    (program,) = emulator.programs
    emulator.run(program, {"$p_loop_count": 1})
    return {name: array.copy() for name, array in emulator.outputs("raw").items()}


@pytest.mark.parametrize(
    ("precision", "limit"),
    [("format", 1 << 30), ("device", 1 << 30), ("ideal", 64 << 20), ("device", 32 << 20)],  # less: it stays in the file
)
def test_a_snapshot_has_none_of_the_images_parameters(tmp_path, image, precision, limit):
    path = tmp_path / "m.snap"
    with machine(image, precision, limit) as emulator:
        emulator.save(path)
        expected = outputs(emulator, image)
        again = tmp_path / "after.snap"
        emulator.save(again)
        emulator.restore(path)
        assert_equal(outputs(emulator, image), expected)
    held = {f"stores/{name}" for name in image.held_queues}
    for file in (path, again):
        with zipfile.ZipFile(file) as archive:
            assert not held & set(archive.namelist())
    assert path.stat().st_size < LARGE
    with be.Emulator.load(path, image.for_inputs, image=image, memory_limit=limit) as emulator:
        assert_equal(outputs(emulator, image), expected)
    with machine(image, precision, limit) as emulator:
        emulator.restore(path)
        assert_equal(outputs(emulator, image), expected)


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert np.array_equal(array.view(np.uint32), found[name].view(np.uint32)), name


def test_what_was_written_since_is_in_the_snapshot(tmp_path, image):
    path = tmp_path / "m.snap"
    with machine(image, "format") as emulator:
        name = max(image.held_queues, key=lambda name: np.prod(image.netlist.queues[name].blocking.element_shape))
        shape = image.netlist.queues[name].blocking.element_shape
        emulator.push(name, np.full((1, *shape), 0.5, np.float32), 0)
        emulator.save(path)
        expected = outputs(emulator, image)
    with zipfile.ZipFile(path) as archive:
        assert f"stores/{name}" in archive.namelist()
    with be.Emulator.load(path, image.for_inputs, image=image, memory_limit=1 << 30) as emulator:
        assert_equal(outputs(emulator, image), expected)


def test_another_image_is_refused_and_none(tmp_path, image):
    path, other = tmp_path / "m.snap", saved(tmp_path, seed=1, name="other")
    with machine(image, "format") as emulator:
        emulator.save(path)
    with pytest.raises(HostError, match=r"m\.snap: its parameters are those of the image .*model\.tti: give it"):
        be.Emulator.load(path, image.for_inputs)
    with pytest.raises(HostError, match=r"which .*other\.tti is not .*give the image that it was saved with"):
        be.Emulator.load(path, image.for_inputs, image=other)
    with machine(other, "format") as emulator:
        before = outputs(emulator, other)
        with pytest.raises(HostError, match="is not"):
            emulator.restore(path)
        for name in emulator.outputs():
            assert np.array_equal(emulator.outputs("raw")[name], before[name])
