"""Modules without data whose parameters lie in safetensors files, or in what torch.save wrote."""

import json
import subprocess
import sys

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.importers.from_torch.parameters import read_checkpoint
from buda_emu.support.errors import HostError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
WORDS = {"float32": "F32", "bfloat16": "BF16", "int64": "I64", "uint8": "U8"}


def encode(tensors, order=None):
    """The bytes of a safetensors file."""
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        parts.append(tensor.contiguous().view(torch.uint8).numpy().tobytes())
        kind = WORDS[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    return framed(json.dumps(header), b"".join(parts))


def framed(header, data):
    padded = header.encode() + b" " * (-len(header) % 8)
    return len(padded).to_bytes(8, "little") + padded + data


class Small(torch.nn.Module):
    """A table that is the head, too, a norm and a product; with data in no file a position."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1200, 256)
        self.norm, self.up = torch.nn.LayerNorm(256), torch.nn.Linear(256, 2048)
        self.down, self.head = torch.nn.Linear(2048, 256), torch.nn.Linear(256, 1200, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("steps", torch.arange(4.0).reshape(4, 1))

    def forward(self, ids):
        x = self.table(ids) + self.steps.to(self.norm.weight.dtype)
        return self.head(self.down(torch.relu(self.up(self.norm(x)))))


IDS = torch.tensor([[1, 1100, 7, 30]])


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    return Small().to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def tensors(module):
    return {name: item for name, item in module.state_dict().items() if name != "head.weight"}


def without_data():
    with torch.device("meta"):
        return Small().to(torch.bfloat16).eval()


def sharded(folder, tensors, shards=3):
    """Files and their index; the index's path."""
    names = list(tensors)
    parts = [names[number::shards] for number in range(shards)]
    files = [f"model-{number + 1:05}-of-{shards:05}.safetensors" for number in range(shards)]
    for file, part in zip(files, parts, strict=True):
        (folder / file).write_bytes(encode({name: tensors[name] for name in part}))
    index = folder / "model.safetensors.index.json"
    places = {name: file for file, part in zip(files, parts, strict=True) for name in part}
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index


def test_every_way_to_name_the_files_gives_what_the_module_gives(tmp_path, module, tensors):
    expected = be.compile(module, (IDS,), effort="low")
    single = tmp_path / "one" / "model.safetensors"
    single.parent.mkdir()
    single.write_bytes(encode(tensors))
    torch.save(tensors, tmp_path / "model.pt")
    (tmp_path / "many").mkdir()
    index = sharded(tmp_path / "many", tensors)
    for path in (single, single.parent, index, index.parent, tmp_path / "model.pt", str(index)):
        found = be.compile(without_data(), (IDS,), parameters=path, effort="low")
        assert found.text == expected.text
        for (name, array), (own, mine) in zip(expected.tensors(), found.tensors(), strict=True):
            assert name == own
            assert np.array_equal(array, np.asarray(mine))
    assert any(isinstance(array, Referenced) for _, array in found.tensors())
    assert np.array_equal(expected(IDS)[0], found(IDS)[0])
    assert found.compare((IDS,)).outputs[0].pcc > 0.999


def exported(path):
    """The module without data as torch.export.save writes it."""
    with torch.device("meta"):
        torch.export.save(torch.export.export(without_data(), (IDS.to("meta"),)), path)
    return path


def test_a_program_exported_without_data_takes_its_parameters_from_a_file(tmp_path, module, capsys):
    """Here and on the command line. torch forgets in such a file which parameters are one: both are in the other."""
    expected = be.compile(module, (IDS,), effort="low")
    path, held = exported(tmp_path / "small.pt2"), tmp_path / "m.safetensors"
    held.write_bytes(encode(dict(module.state_dict())))
    assert path.stat().st_size < held.stat().st_size / 50
    found = be.compile(path, parameters=held, effort="low")
    assert np.array_equal(expected(IDS)[0], found(IDS)[0])
    assert any(isinstance(array, Referenced) for _, array in found.tensors())
    words = ["compile", str(path), "--parameters", str(held), "--effort", "low", "-o", str(tmp_path)]
    assert main(words) == 0
    assert np.array_equal(
        be.load_image(tmp_path / "model.tti").tensor("head.weights"), dict(found.tensors())["head.weights"]
    )
    assert main([*words, "--stop-after", "lower"]) == 2
    assert "--parameters goes with none of" in capsys.readouterr().err
    held.write_bytes(encode({"norm.weight": module.norm.weight.detach()}))
    assert main(words) == 2
    assert "has no tensor table.weight" in capsys.readouterr().err


def test_a_program_whose_buffer_has_no_data_is_refused(tmp_path, tensors):
    held = tmp_path / "m.safetensors"
    held.write_bytes(encode({"a": torch.ones(2)}))

    class Positions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("angles", torch.ones(2), persistent=False)

        def forward(self, x):
            return x * self.a + self.angles

    with torch.device("meta"):
        program = torch.export.export(Positions().eval(), (torch.ones(32, 2),))
    torch.export.save(program, tmp_path / "p.pt2")
    with pytest.raises(be.HostError, match="the program: buffer angles has no data"):
        be.compile(tmp_path / "p.pt2", parameters=held)


def test_a_model_without_data_and_without_a_file_names_the_option(tmp_path, capsys):
    reason = "no data for table.weight.* on torch's device meta: name the file that has them, with --parameters"
    with pytest.raises(be.HostError, match=f"Small: {reason}"):
        be.compile(without_data(), (IDS,), effort="low")
    with torch.device("meta"):
        program = torch.export.export(without_data(), (IDS.to("meta"),))
    with pytest.raises(be.HostError, match=reason):
        be.compile(program, effort="low")
    torch.export.save(program, tmp_path / "m.pt2")
    assert main(["compile", str(tmp_path / "m.pt2")]) == 2
    assert "m: no data for table.weight" in capsys.readouterr().err
    with torch.device("meta"):
        line = torch.nn.Linear(4, 4)
    with pytest.raises(be.HostError, match=r"Linear: no data for weight, bias, .*load_state_dict"):
        be.compile_training(line, (torch.ones(2, 4),), loss="mse")


def test_the_module_stays_as_it_is(tmp_path, tensors):
    (tmp_path / "m.safetensors").write_bytes(encode(tensors))
    given = without_data()
    be.compile(given, (IDS,), parameters=tmp_path / "m.safetensors", effort="low")
    assert all(item.is_meta for item in given.parameters())


def refused(path, module=None):
    with pytest.raises(be.HostError) as caught:
        be.compile(without_data() if module is None else module, (IDS,), parameters=path, effort="low")
    return str(caught.value)


def test_names_types_and_shapes_are_the_modules(tmp_path, tensors):
    file = tmp_path / "m.safetensors"
    cases = {
        "it has no tensor up.weight; the module has no up.wait: did you mean 'up.wait'?": lambda held: {
            ("up.wait" if name == "up.weight" else name): item for name, item in held.items()
        },
        "tensor up.weight has shape [256, 2048], the module takes [2048, 256]: is the module made with": lambda held: {
            **held,
            "up.weight": held["up.weight"].T.contiguous(),
        },
        "tensor up.bias is float32, the module takes bfloat16: module.to(torch.float32) costs nothing": lambda held: {
            **held,
            "up.bias": held["up.bias"].float(),
        },
        "tensor up.bias is int64, the module takes bfloat16: is it the checkpoint of this module?": lambda held: {
            **held,
            "up.bias": held["up.bias"].long(),
        },
    }
    for says, change in cases.items():
        file.write_bytes(encode(change(tensors)))
        assert says in refused(file)
        assert str(file) in refused(file)


def test_a_buffer_without_data_is_named(tmp_path, tensors):
    module = without_data()
    module.register_buffer("angles", torch.empty(3, device="meta"), persistent=False)
    (tmp_path / "m.safetensors").write_bytes(encode(tensors))
    assert "buffer angles has no data: it is on the device meta" in refused(tmp_path / "m.safetensors", module)


def test_shards_are_whole_and_agree_with_their_index(tmp_path, tensors):
    index = sharded(tmp_path, tensors)
    there = sorted(tmp_path.iterdir())
    shards = sorted(tmp_path.glob("model-*"))
    whole = [shard.read_bytes() for shard in shards]
    shards[1].unlink()
    assert f"{shards[1]}: No such file or directory: is the download complete?" in refused(index)
    shards[1].write_bytes(whole[1][:-1000])
    assert f"{shards[1]}: tensor" in refused(index)
    assert "it is truncated, copy it once more" in refused(index)
    shards[1].write_bytes(whole[0])
    assert "occurs twice, here and in model-00001-of-00003.safetensors: remove one" in refused(index)
    shards[1].write_bytes(whole[1])
    held = json.loads(index.read_text())
    name = next(iter(tensors))
    held["weight_map"][name] = shards[2].name
    index.write_text(json.dumps(held))
    assert f"{shards[2]}: tensor {name} is not in this file, but {shards[0].name}, though {index.name}" in refused(
        index
    )
    held["weight_map"][name] = "../elsewhere.safetensors"
    index.write_text(json.dumps(held))
    assert "shards lie in the folder of the index" in refused(index)
    assert sorted(tmp_path.iterdir()) == there


def test_a_shard_that_is_cut_off_after_the_compilation_is_refused_and_nothing_is_written(tmp_path, tensors):
    """Reading pages that are gone would end the process."""
    index = sharded(tmp_path, tensors)
    found = be.compile(without_data(), (IDS,), parameters=index, effort="low")
    there = sorted(tmp_path.iterdir())
    for shard in tmp_path.glob("model-*"):
        with shard.open("r+b") as stream:
            stream.truncate(shard.stat().st_size // 2)
    for use in (lambda: found.save(tmp_path), lambda: found(IDS)):
        with pytest.raises(HostError, match=r"safetensors: the file changed while it was in use: it has"):
            use()
    assert sorted(tmp_path.iterdir()) == there


ENTRY = '"{}": {{"dtype": "F32", "shape": [2], "data_offsets": [{}, {}]}}'


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is truncated, or no safetensors"),
        ((10**9).to_bytes(8, "little") + b"{}", "it is truncated, or no safetensors"),
        (framed("[1]", b""), "its header is not a JSON object"),
        (framed("{no", b""), "no JSON where its header should be"),
        (framed("{" + ENTRY.format("a", 0, 8) + "}", bytes(9)), "1 bytes after the last tensor"),
        (framed("{" + ENTRY.format("a", 0, 8) + ", " + ENTRY.format("a", 8, 16) + "}", bytes(16)), "a occurs twice"),
        (framed("{" + ENTRY.format("a", 0, 8) + ", " + ENTRY.format("b", 4, 12) + "}", bytes(12)), "tensor b: bytes 4"),
        (framed("{" + ENTRY.format("a", 0, 12) + "}", bytes(12)), "tensor a: bytes 0 to 12 for F32 [2] after byte 0"),
        (framed("{" + ENTRY.format("a", 0, 8) + "}", bytes(7)), "tensor a ends at byte"),
        (framed('{"a": {"dtype": "F32"}}', b""), "tensor a has no dtype, shape and data_offsets"),
        (framed('{"a": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}', b"1"), "elements of type F8"),
        (framed('{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', bytes(4)), "sizes are integers"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_by_its_rule(tmp_path, data, says):
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)
    with pytest.raises(be.HostError) as caught:
        read_checkpoint(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_a_folder_needs_one_file_or_an_index(tmp_path):
    with pytest.raises(be.HostError, match=r"0 .safetensors files and no index"):
        read_checkpoint(tmp_path)


def test_parameters_are_of_a_torch_module(tmp_path):
    with pytest.raises(be.HostError, match="parameters= is for a torch module"):
        be.compile(tmp_path / "m.onnx", parameters=tmp_path)
    (tmp_path / "m.pt").write_bytes(b"no pickle")
    assert "torch.load does not read it" in refused(tmp_path / "m.pt")


PEAK = """
import sys
import torch
import buda_emu as be
width, depth, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with torch.device("meta"):
    module = torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(depth)]).eval()
model = be.compile(module, (torch.ones(1, width),), parameters=folder + "/w.safetensors", df="Bfp8_b", effort="low")
model.save(folder)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak(folder, width, depth):
    """Bytes that a process has at most which compiles so many products, and writes their image."""
    tensors = {f"{n}.weight": torch.rand(width, width) for n in range(depth)}
    (folder / "w.safetensors").write_bytes(encode(tensors))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK, str(width), str(depth), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout) << 10


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what lies in a file")
def test_a_process_is_as_large_as_one_parameter_not_as_all(tmp_path):
    few, many = peak(tmp_path, 2048, 2), peak(tmp_path, 2048, 14)
    assert many - few < 2048**2 * 4, "twelve parameters more, of 16 MiB each"
