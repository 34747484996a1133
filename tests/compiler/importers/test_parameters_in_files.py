"""Parameters that lie in files: by reference to the end, and the same netlist, image and results as of arrays."""

import sys
import tarfile
import tracemalloc
import warnings

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.tensor.referenced import Referenced

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what lies in a file"),
]
IDS = torch.arange(32)[None] * 7 % 1100


class Small(torch.nn.Module):
    """A table, a norm, products of which a factor and columns are taken, and a wide one."""

    def __init__(self, width=512):
        super().__init__()
        self.table, self.norm = torch.nn.Embedding(1100, width), torch.nn.LayerNorm(width)
        self.gate = torch.nn.Linear(width, 3 * width, bias=False)
        self.down, self.head = torch.nn.Linear(width, width), torch.nn.Linear(width, 9000, bias=False)
        self.scale = torch.nn.Parameter(torch.rand(width))

    def forward(self, ids):
        x = self.table(ids)
        a, b, c = self.gate(self.norm(x)).chunk(3, -1)
        return self.head(x + self.down(torch.nn.functional.silu(a) * b + c) * self.scale)


def pair(tmp_path, dtype=torch.float32):
    """The same module twice: in memory, and its parameters in a file."""
    torch.manual_seed(0)
    module, mapped = Small().to(dtype).eval(), Small().to(dtype).eval()
    torch.save(module.state_dict(), tmp_path / "m.pt")
    mapped.load_state_dict(torch.load(tmp_path / "m.pt", mmap=True), assign=True)
    return module, mapped


def both(tmp_path, dtype=torch.float32, df="Float16_b"):
    return [be.compile(module, (IDS,), df=df, effort="low") for module in pair(tmp_path, dtype)]


@pytest.mark.parametrize("df", ["Float16_b", "Bfp8_b"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_netlist_and_the_same_image(tmp_path, dtype, df):
    whole, by_reference = both(tmp_path, dtype, df)
    assert whole.text == by_reference.text
    held = dict(by_reference.tensors())
    assert sum(isinstance(array, Referenced) for array in held.values()) >= 5, held
    for tilized in (False, True):
        files = [model.save(tmp_path / name, tilized=tilized)[1] for model, name in ((whole, "a"), (by_reference, "b"))]
        members, members_by_reference = map(members_without_source, files)
        assert members == members_by_reference


def members_without_source(path):
    """The members of an image but for the model's source, which an image of parameters in files does not hold."""
    with tarfile.open(path) as archive:
        files = [member for member in archive.getmembers() if member.isfile() and "/source/" not in member.name]
        return [(member.name, archive.extractfile(member).read()) for member in files]


def test_tiles_are_written_where_nobody_says(tmp_path):
    whole, by_reference = both(tmp_path, df="Bfp8_b")
    sizes = [model.save(tmp_path / name)[1].stat().st_size for model, name in ((whole, "a"), (by_reference, "b"))]
    forms = [be.load_image(tmp_path / name / "model.tti").tensors["head.weights"].dump_format for name in "ab"]
    assert forms == ["BACKEND", "BACKEND_TILIZED"]
    assert sizes[1] < sizes[0] / 3


def test_it_runs_as_the_other_one(tmp_path):
    whole, by_reference = both(tmp_path)
    for precision in ("ideal", "format", "device"):
        assert np.array_equal(whole(IDS, precision=precision)[0], by_reference(IDS, precision=precision)[0])


def test_nothing_large_is_made_of_what_is_in_a_file(tmp_path):
    _, mapped = pair(tmp_path)
    with warnings.catch_warnings(action="ignore"):
        be.compile(Small(64).eval(), (IDS,), effort="low")  # what is imported and compiled once
    tracemalloc.start()
    try:
        model = be.compile(mapped, (IDS,), df="Bfp8_b", effort="low")
        taken = tracemalloc.get_traced_memory()[0]
        model.save(tmp_path / "out")
    finally:
        tracemalloc.stop()
    assert taken < 6 << 20, "the parameters have 27 MiB"


def test_a_number_that_is_none_is_refused_with_its_file(tmp_path):
    module, _ = pair(tmp_path)
    with torch.no_grad():
        module.head.weight[5, 7] = torch.nan
    torch.save(module.state_dict(), tmp_path / "n.pt")
    module.load_state_dict(torch.load(tmp_path / "n.pt", mmap=True), assign=True)
    with pytest.raises(be.UnsupportedError, match=r"head.weights \(head.weight in .*n.pt\): a constant with NaN"):
        be.compile(module, (IDS,), effort="low")
