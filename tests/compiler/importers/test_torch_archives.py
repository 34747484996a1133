"""Files of torch.export.save that strangers wrote: they run no code, and damaged ones are refused by name."""

import contextlib
import io
import json
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import buda_emu as be
from buda_emu.errors import HostError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


class Touch:
    """Unpickled it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """Of a good file, by name."""
    module = torch.nn.Linear(3, 4).eval()
    path = tmp_path_factory.mktemp("pt2") / "good.pt2"
    size = torch.export.Dim("rows", min=2, max=64)
    torch.export.save(torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: size},)), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(members, path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def found(members, end):
    (name,) = (name for name in members if name.endswith(end))
    return name


def changed(members, end, change):
    """With a JSON member changed."""
    document = json.loads(members[found(members, end)])
    change(document)
    return {**members, found(members, end): json.dumps(document).encode()}


def as_pickle(document):
    for item in document["config"].values():
        item["use_pickle"] = True


def test_a_good_file_is_read(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval()
    x = torch.ones(2, 3)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "m.pt2")
    (ours,) = be.compile(tmp_path / "m.pt2", effort="low")(x)
    np.testing.assert_allclose(ours, module(x).detach().numpy(), atol=1e-6)


def test_a_file_with_open_sizes_is_read(members, tmp_path):
    assert b"expr_str" in members[found(members, "models/model.json")]
    path = written(members, tmp_path / "m.pt2")
    assert be.compile(path, effort="low", sizes={"input.0": 2}).io.inputs[0].shape == (2, 3)
    with pytest.raises(be.UnsupportedError, match=r"the open size input\.0 \(give it: --size input\.0=1"):
        be.compile(path, effort="low")


def test_pickles_run_nothing(members, tmp_path):
    mark = tmp_path / "run"
    stream = io.BytesIO()
    torch.save(({}, {"x": Touch(mark)}), stream)
    weights = {name: pickle.dumps(Touch(mark)) for name in members if "/weights/weight_" in name}
    constant = {"config": {"c": {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": False}}}
    cases = {
        "sample_inputs/model.pt holds Python objects": {
            **members,
            found(members, "sample_inputs/model.pt"): stream.getvalue(),
        },
        "model_weights_config.json has tensors as pickles": {
            **changed(members, "model_weights_config.json", as_pickle),
            **weights,
        },
        "model_constants_config.json has constants that are Python objects": {
            **members,
            found(members, "model_constants_config.json"): json.dumps(constant).encode(),
            found(members, "model_constants_config.json").replace(
                "model_constants_config.json", "opaque_obj_0"
            ): pickle.dumps(Touch(mark)),
        },
    }
    for said, case in cases.items():
        path = written(case, tmp_path / "m.pt2")
        with pytest.raises(HostError, match=f"m.pt2: .*{said}.* may run any code: where you trust it, compile what"):
            be.compile(path)
        assert not mark.exists(), said


@pytest.mark.parametrize(
    "text",
    [
        "exit()", "open(chr(47))", "s0.__class__", "'x()'", "(lambda: 1)()", "s0[0]", "Max(s0, eval(1))", "s0 +",
        "s0\0", "Symbol('__import__(1)')", "(" * 500,
    ],
)  # fmt: skip
def test_expressions_call_only_what_sizes_are_made_with(text, members, tmp_path):
    def put(item):
        for key, value in item.items() if isinstance(item, dict) else enumerate(item):
            if key == "expr_str":
                item[key] = text
            elif isinstance(value, (dict, list)):
                put(value)

    case = changed(members, "models/model.json", put)
    assert case != members
    with pytest.raises(HostError, match="has the expression"):
        be.compile(written(case, tmp_path / "m.pt2"))


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "no such file"), (b"", "not a zip file"), (b"junk" * 99, "not a zip file")],
    ids=["missing", "empty", "junk"],
)
def test_what_is_no_such_file(data, said, tmp_path, capfd):
    path = tmp_path / "m.pt2"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(HostError, match=rf"compile: .*m\.pt2.*{said}"):
        be.compile(path)
    assert capfd.readouterr().err == ""


def test_damaged_files(members, tmp_path):
    whole = written(members, tmp_path / "m.pt2").read_bytes()
    for cut in range(0, len(whole), len(whole) // 12):
        for data in (whole[:cut], whole[:cut] + b"\xff" * 20 + whole[cut + 20 :]):
            (tmp_path / "m.pt2").write_bytes(data)
            with contextlib.suppress(HostError):
                be.compile(tmp_path / "m.pt2", effort="low")


def test_what_torch_deprecates_in_itself_is_not_said(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    torch.export.save(torch.export.export(model, (torch.ones(1, 4),)), tmp_path / "m.pt2")
    command = [sys.executable, "-m", "buda_emu", "compile", "--effort", "low", str(tmp_path / "m.pt2")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Warning" not in done.stderr
