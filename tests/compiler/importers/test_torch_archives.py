"""Files of torch.export.save that strangers wrote: they run no code, and damaged ones are refused by name."""

import contextlib
import io
import json
import pickle
import random
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import buda_emu as be
from buda_emu.support.errors import HostError

torch = pytest.importorskip("torch")

from buda_emu.compiler.importers.from_torch.archive import (  # noqa: E402
    OF_FILES,
    find_fault,
    read_checked_archive,
)

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
    with pytest.raises(HostError, match=r"size 'batch': open are input\.0 \(x\.0 is the first dimension of an input x"):
        be.compile(path, effort="low", sizes={"batch": 2})


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
        "s0", "2*s0 + 1", "s0**2", "Pow(Symbol('s0', integer=True), Integer(2))", "Pow(Symbol('s0'), Integer(-1))",
        "Pow(Symbol('s0'), Rational(1, 2))", "9223372036854775807", "PowByNatural(s0, 3)", "1.0*s0", "1 << 4", "0",
    ],
)  # fmt: skip
def test_expressions_of_sizes_are_taken(text):
    assert find_fault({"expr_str": text}) == ""


@pytest.mark.parametrize(
    "text",
    [
        "exit()", "open(chr(47))", "s0.__class__", "'x()'", "(lambda: 1)()", "s0[0]", "Max(s0, eval(1))", "s0 +",
        "s0\0", "Symbol('__import__(1)')", "(" * 500, "9**9**9**9", "2**1000000000", "(9**63)**63", "1 << 10**9",
        "Pow(Integer(9), Integer(1000000))", "Pow(Pow(s0, Integer(63)), Integer(63))", "LShift(1, 999999)",
        "PowByNatural(2, s0)", "Integer('1e999999999')", "CeilToInt(Float('1e999999'))", "1e999", "2**(8*8*8)",
        "2**PowByNatural(9, 9)", "9" * 5000, "0x" + "f" * 20000, "Pow(exp=Integer(9), base=9)",
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
    hint = "where you trust it, compile what torch.export.load"
    with pytest.raises(HostError, match=rf"has the expression (.|\n)*: {hint}"):
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


# ------------------------------------------------------------------------------------ what torch would run as code
def evil_pickle(mark):
    stream = io.BytesIO()
    torch.save(((Touch(mark),), {}), stream)
    return stream.getvalue()


def put(document, key, change):
    """Change all values of a key, however deep."""
    for name, value in document.items() if isinstance(document, dict) else enumerate(document):
        if name == key:
            document[name] = change(value)
        elif isinstance(value, (dict, list)):
            put(value, key, change)


def with_members(pairs, path):
    """An archive of (name, bytes), in which names may stand several times."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of zipfile, about names that stand twice
        for name, data in pairs:
            archive.writestr(name, data)
    return path


def refused_and_not_run(path, mark, said):
    with pytest.raises(HostError, match=f"{said}.*may run any code: where you trust it, compile what"):
        be.compile(path, effort="low", sizes={"input.0": 2})
    assert not mark.exists()


@pytest.mark.parametrize(
    "name",
    [
        "data/aotinductor/model/m.so", "data/aotinductor/model/m.wrapper_metadata.json", "data/executorch/model.pte",
        "xl_model_weights/model_param_config", "models/other.json", "models/model.json.bak", "models/sub/model.json",
        "data/weights/weight_01", "data/weights/weight_\u0661", "data/weights/weight_1\n", "../models/model.json",
        "models/../models/model.json", "models//model.json", "models\\model.json", "data/constants/", "version",
        "/models/model.json",
    ],
)  # fmt: skip
def test_members_that_torch_does_not_write_are_refused(name, members, tmp_path):
    root = next(iter(members)).partition("/")[0]
    path = with_members([*members.items(), (f"{root}/{name}", b"{}")], tmp_path / "m.pt2")
    refused_and_not_run(path, tmp_path / "run", "is no member that torch.export.save writes")


def test_members_of_another_folder_are_refused(members, tmp_path):
    path = with_members([*members.items(), ("other/models/model.json", b"{}")], tmp_path / "m.pt2")
    refused_and_not_run(path, tmp_path / "run", "is no member")


def test_a_name_in_capitals_is_another_name_here_and_the_same_for_torch(members, tmp_path):
    mark, name = tmp_path / "run", found(members, "sample_inputs/model.pt")
    others = [pair for pair in members.items() if pair[0] != name]
    alone = with_members([*others, (name[:-3] + ".PT", evil_pickle(mark))], tmp_path / "alone.pt2")
    refused_and_not_run(alone, mark, "is no member")
    both = with_members([*members.items(), (name[:-3] + ".PT", evil_pickle(mark))], tmp_path / "both.pt2")
    refused_and_not_run(both, mark, "stands in it twice")


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("first", [False, True])
def test_a_member_that_is_there_several_times_is_refused(count, first, members, tmp_path):
    mark, name = tmp_path / "run", found(members, "sample_inputs/model.pt")
    evil = [(name, evil_pickle(mark))] * count
    pairs = [*evil, *members.items()] if first else [*members.items(), *evil]
    refused_and_not_run(with_members(pairs, tmp_path / "m.pt2"), mark, "stands in it twice")


def test_a_program_under_another_ending_is_refused(members, tmp_path):
    mark, name = tmp_path / "run", found(members, "models/model.json")
    document = json.loads(members[name])
    put(document, "expr_str", lambda text: f"open({str(mark)!r}, 'w') or {text}")
    others = [pair for pair in members.items() if pair[0] != name]
    path = with_members([*others, (name[:-5] + ".jsan", json.dumps(document).encode())], tmp_path / "m.pt2")
    refused_and_not_run(path, mark, "is no member")


RUNS = "x=open('MARK', 'w')"
LEAF = '{"type": null, "context": null, "children_spec": []}'


def tree_of(kind, context):
    return f'[1, {{"type": "{kind}", "context": {json.dumps(context)}, "children_spec": [{LEAF}]}}]'


def tree_of_keyword(name):
    positional = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{LEAF}]}}'
    context = json.dumps(json.dumps([name]))
    keywords = f'{{"type": "builtins.dict", "context": {context}, "children_spec": [{LEAF}]}}'
    return f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{positional}, {keywords}]}}]'


FACTORY = {"default_factory_module": "antigravity", "default_factory_name": "x", "dict_context": []}
TEXTS = {
    "any function of torch": ("target", "torch.os.system"),
    "a loader of libraries": ("target", "torch.ops.load_library"),
    "a function of Python": ("target", "_operator.methodcaller"),
    "a function inside of math": ("target", "math.__loader__.load_module"),
    "a reader of files": ("target", "torch.ops.aten.from_file.default"),
    "a writer of files": ("target", "torch.ops.aten.save.default"),
    "a delegate": ("target", "torch.ops.higher_order.executorch_call_delegate"),
    "an extension": ("target", "#system:os"),
    "an operator that is no path": ("target", "cond"),
    "a source line as a name": ("name", f"x):\n  pass\n{RUNS}\ndef g(y"),
    "a default as a name": ("name", RUNS),
    "a name of an argument": ("forward_arg_names", [RUNS]),
    "a parameter's name": ("parameter_name", 'weight", open("MARK", "w")) or ("'),
    "a class of an enumeration": (
        "in_spec",
        tree_of("builtins.dict", '[{"__enum__": true, "fqn": "antigravity:x", "name": "y"}]'),
    ),
    "a factory of dictionaries": ("out_spec", tree_of("collections.defaultdict", FACTORY)),
    "a keyword": ("in_spec", tree_of_keyword(RUNS)),
    "no tree": ("in_spec", "[1]"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_that_torch_interprets_is_checked(kind, members, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Python imports modules from here
    mark = tmp_path / "run"
    key, text = TEXTS[kind]
    text = json.loads(json.dumps(text).replace("MARK", str(mark)))

    def put_text(document):
        before = json.dumps(document)
        put(document, key, lambda _: text)
        assert json.dumps(document) != before

    path = written(changed(members, "models/model.json", put_text), tmp_path / "m.pt2")
    refused_and_not_run(path, mark, "has the (operator|name|tree)")


def test_names_in_the_list_of_weights_are_checked(members, tmp_path):
    def rename(document):
        document["config"]['w", open("x") or "'] = document["config"].pop("weight")

    path = written(changed(members, "model_weights_config.json", rename), tmp_path / "m.pt2")
    refused_and_not_run(path, tmp_path / "run", "has the name")


def test_guards_are_not_handed_to_torch(members, tmp_path):
    """torch makes Python functions of them; a file may have some."""
    mark = tmp_path / "run"
    case = changed(members, "models/model.json", lambda it: it.update(guards_code=[f"open({str(mark)!r}, 'w')"]))
    assert torch.export.load(read_checked_archive(written(case, tmp_path / "m.pt2")))._guards_code == []


def test_no_operator_of_files_is_let_through():
    """Each schema of torch whose arguments name a file."""
    schemas = [item for item in torch._C._jit_get_all_schemas() if item.name.partition("::")[0] in ("aten", "prims")]
    named = {item.name.partition("::")[2] for item in schemas if any("file" in part.name for part in item.arguments)}
    assert named
    assert named == OF_FILES


def test_archives_that_are_no_plain_archives(members, tmp_path):
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(HostError, match=r"m\.pt2: .* is compressed or encrypted.*write the file with it"):
        be.compile(path)
    whole = bytearray(written(members, path).read_bytes())
    name = found(members, "model_weights_config.json").encode()
    local = bytes(whole).replace(name, name.upper(), 1)  # the name before the bytes, not that in the directory
    path.write_bytes(local)
    with pytest.raises(HostError, match=r"is not a file of torch\.export\.save: File name in directory"):
        be.compile(path)
    place = bytes(whole).rindex(b"PK\x01\x02") + 8
    whole[place] |= 1
    path.write_bytes(whole)
    with pytest.raises(HostError, match="is compressed or encrypted"):
        be.compile(path)
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(HostError, match="it has no members"):
        be.compile(path)
    for document in (b"[]", b"[" * 100_000, b"\xff", b'{"a": ' * 50_000):
        case = {**members, found(members, "models/model.json"): document}
        with pytest.raises(HostError, match=r"is not a file of torch\.export\.save"):
            be.compile(written(case, path))


def test_members_before_and_after_the_archive_change_nothing(members, tmp_path):
    path = written(members, tmp_path / "m.pt2")
    path.write_bytes(b"#!/bin/sh\n" * 9 + path.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK\x05\x06" * 9
    with contextlib.suppress(HostError):
        assert be.compile(path, effort="low", sizes={"input.0": 2}).io.inputs[0].shape == (2, 3)


class Ordinary(torch.nn.Module):
    """Parameters that are tied or have odd names, buffers saved and not saved, a constant, a graph inside, keywords."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.again = self.first
        self.odd = torch.nn.ModuleDict({"a-b c": torch.nn.Linear(4, 4).to(torch.bfloat16)})
        self.register_buffer("saved", torch.arange(4))
        self.register_buffer("not_saved", torch.ones(4, dtype=torch.float64), persistent=False)

    def forward(self, x, *, mask=None):
        with torch.no_grad():
            y = self.first(x) + self.again(x) * self.saved
        y = torch.vmap(lambda row: row - row.mean())(y) + torch.tensor([1.0, 2, 3, 4])
        z = self.odd["a-b c"](y.to(torch.bfloat16)).float() + self.not_saved.float()
        return {"y": y, "z": (z, torch.nn.functional.pad(y, (0, 1)) if mask is None else y.masked_fill(mask, 0))}


@pytest.mark.parametrize("mask", [None, torch.tensor([[True, False, True, False]])])
@pytest.mark.parametrize("size", [None, torch.export.Dim("rows", min=2, max=64)])
def test_ordinary_archives_are_read(mask, size, tmp_path):
    torch.manual_seed(3)
    module, x = Ordinary().eval(), torch.randn(4, 3)
    keywords = {} if mask is None else {"mask": mask}
    shapes = {"x": {0: size}, **dict.fromkeys(keywords)} if size else None
    path = tmp_path / "some model.v2.pt2"
    program = torch.export.export(module, (x,), keywords, dynamic_shapes=shapes)
    torch.export.save(program, path, extra_files={"notes/read me.txt": "text"})
    compiled = be.compile(path, effort="low", sizes={"x.0": 4} if size else {})
    expected = module(x, **keywords)
    for got, want in zip(compiled(x, *keywords.values()), (expected["y"], *expected["z"]), strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=2e-2, atol=2e-2)


def test_archives_of_older_versions_are_read(members, tmp_path):
    """Before torch 2.8 there was no folder, and parameters were pickles of tensors."""
    program = torch.export.export(torch.nn.Linear(3, 4).eval(), (torch.ones(2, 3),))
    from torch._export.serde.serialize import serialize

    parts = serialize(program)
    older = {
        "version": b"8.1",
        "serialized_exported_program.json": parts.exported_program,
        "serialized_state_dict.pt": parts.state_dict,
        "serialized_constants.pt": parts.constants,
        "serialized_example_inputs.pt": parts.example_inputs,
        "extra_files/x": b"y",
    }
    (got,) = be.compile(written(older, tmp_path / "m.pt2"), effort="low")(torch.ones(2, 3))
    np.testing.assert_allclose(got, program.module()(torch.ones(2, 3)).detach().numpy(), atol=1e-6)
    mark = tmp_path / "run"
    for name in older:
        if name.endswith(".pt"):
            path = written({**older, name: evil_pickle(mark)}, tmp_path / "m.pt2")
            refused_and_not_run(path, mark, "holds Python objects as pickles")
    path = written({**older, "serialized_state_dict.json": evil_pickle(mark)}, tmp_path / "m.pt2")
    refused_and_not_run(path, mark, "is no member")
    refused_and_not_run(written({**members, **older}, tmp_path / "m.pt2"), mark, "is no member")


def drawn_pairs(rng, members, evil):
    """Members of a good archive with one to three of them renamed, repeated, replaced or added."""
    pairs = list(members.items())
    for _ in range(rng.randint(1, 3)):
        number = rng.randrange(len(pairs))
        name, data = pairs[number]
        others = [name.swapcase(), name + rng.choice("x.\0/ "), name.replace("/", "\\"), name.replace("/", "//", 1),
                  rng.choice(list(members)), "".join(rng.choice((c, c.upper())) for c in name),
                  name.rpartition("/")[0] + "/" + rng.choice(("model.json", "model.pt", "weight_0", "custom_obj_0")),
                  name.replace("data", rng.choice(("models", "extra", "data/aotinductor")))]  # fmt: skip
        pair = rng.choice(others), rng.choice((data, evil))
        kind = rng.randrange(4)
        if kind == 0:
            pairs[number] = pair
        elif kind == 1:
            pairs.insert(rng.randrange(len(pairs) + 1), pair)
        elif kind == 2:
            pairs[number] = name, evil
        else:
            pairs.insert(rng.randrange(len(pairs) + 1), (name, rng.choice((data, evil))))
    return pairs


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1500), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_drawn_archives_run_nothing(seeds, members, tmp_path):
    """Either refused, or what torch reads of it is the program of the good one."""
    mark, path = tmp_path / "run", tmp_path / "m.pt2"
    evil, read = evil_pickle(mark), 0
    for seed in seeds:
        with_members(drawn_pairs(random.Random(seed), members, evil), path)
        try:
            archive = read_checked_archive(path)
        except HostError:
            continue
        with contextlib.suppress(Exception):  # a member is missing, or its bytes are not a tensor's
            read += len(torch.export.load(archive).graph.nodes) > 0
        assert not mark.exists(), seed
    assert read
