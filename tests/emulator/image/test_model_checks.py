"""What `buda-emu compile` says of the model's inputs and outputs is held against the netlist, each with its place."""

import copy

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.model_io import KEY
from buda_emu.emulator.image.rules import ImageError
from small_images import members, netlist_text, parts, tar_bytes, write
from small_netlists import queue

MODEL = {
    "schema_version": 1, "labels": ["a", "b"],
    "inputs": [{"queue": "x", "label": "a", "shape": [4, 8], "dtype": "float32", "view": [1, 4, 8],
                "extent": [1, 32, 32], "indices": False, "gather": [], "below": 2, "windows": None},
               {"queue": "i", "label": "b", "shape": [1, 5], "dtype": "int64", "view": [1, 1, 3], "extent": [1, 32, 32],
                "indices": True, "gather": [4, 0, 1], "below": 7, "windows": None}],
    "outputs": [{"queue": "out", "label": "y", "shape": [2, 3, 4], "dtype": "float32", "view": [2, 3, 4]}],
}  # fmt: skip
WINDOWS = [[0, 1, 2], [3], [2], [-1], [4]]  # 4 places that see 3 of each of 2 channels


def image(tmp_path, change):
    netlist = netlist_text(t=1, more=[queue("i", df="RawUInt32"), queue("o", "plus")])
    content, files = parts(net=f"# buda: ignore-file[V221]: no op reads queue i\n{netlist}")
    model = copy.deepcopy(MODEL)
    model["outputs"][0].update(shape=[3, 4], view=[1, 3, 4])
    change(model)
    content[KEY] = model
    return write(tmp_path / "x.tti", tar_bytes(members(content, files)))


def test_a_sound_model(tmp_path):
    path = image(tmp_path, lambda _: None)
    assert check_image(path, strict=True).diagnostics == ()
    assert [item.queue for item in be.load_image(path).model.inputs] == ["x", "i"]


def test_places_of_elements_that_fit(tmp_path):
    path = image(tmp_path, places(size=4, stride=10))
    assert check_image(path, strict=True).diagnostics == ()
    model = be.load_image(path).model
    assert model.padding_shares == {"sum": 1 - 4 / 1024}
    mask = model.elements_of("sum").reshape(32, 32)
    assert [tuple(place) for place in zip(*mask.nonzero(), strict=True)] == [(0, 0), (10, 0), (20, 0), (30, 0)]
    assert model.elements_of("another") is None


def test_windows_that_fit(tmp_path):
    def change(model):
        model["inputs"][0].update(shape=[1, 2, 8], windows=WINDOWS, view=[1, 4, 6])

    assert check_image(image(tmp_path, change), strict=True).diagnostics == ()


def setting(place, **changes):
    """Put values into an input ("x", "i") or the output."""

    def change(model):
        items = {"x": model["inputs"][0], "i": model["inputs"][1], "out": model["outputs"][0], "": model}
        items[place].update(changes)

    return change


def places(extent=(1, 32, 32), *, op="sum", axis="r", size=5, stride=1):
    """Say where elements of the model lie in the result of an op."""
    repeat = {"axis": axis, "size": size, "stride": stride}
    return setting("", elements={op: {"extent": list(extent), "repeats": [repeat]}})


def dropping(model):
    del model["inputs"][0]["dtype"]


def doubling(model):
    model["outputs"].append(model["outputs"][0])


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        # what ended in tracebacks: another rank, order, size, sign or type
        (setting("x", extent=[32, 32]), "inputs/0/extent", "[32, 32] is not a list of 3"),
        (setting("x", extent=[32, 32, 1]), "inputs/0/extent", "[32, 32, 1], but queue x takes [1, 32, 32]"),
        (setting("x", extent=[1, 64, 32]), "inputs/0/extent", "[1, 64, 32], but queue x takes [1, 32, 32]"),
        (setting("x", extent=[1, -32, 32]), "inputs/0/extent/1", "-32 is not an integer from 1 to 2147483647"),
        (setting("x", extent="x"), "inputs/0/extent", "'x' is not a list"),
        (setting("x", view=[1, 8, 8]), "inputs/0/view", "[1, 8, 8] has not the 32 elements that the host pushes"),
        (setting("x", view=[1, 1, 33], shape=[33]), "inputs/0/view", "[1, 1, 33] does not fit into an entry"),
        (setting("x", view=[2, 4, 4]), "inputs/0/view", "[2, 4, 4] does not fit into an entry [1, 32, 32] of queue x"),
        (setting("x", shape=[4, 9]), "inputs/0/view", "[1, 4, 8] has not the 36 elements that the host pushes"),
        (setting("x", shape=[]), "inputs/0/view", "[1, 4, 8] has not the 1 elements that the host pushes"),
        (setting("x", shape=[4, 0]), "inputs/0/shape/1", "0 is not an integer from 1"),
        (setting("x", dtype="object"), "inputs/0/dtype", "'object' is not one of float16, float32"),
        (setting("x", dtype=None), "inputs/0/dtype", "None is not a text"),
        (dropping, "inputs/0", "is not an object with dtype"),
        (setting("x", colour=1), "inputs/0/colour", "1 is not a value that belongs here"),
        (setting("x", label="z"), "inputs/0/label", "z is not one of the model's labels"),
        (setting("i", label="a"), "inputs/1/shape", "(1, 5), but another queue of input a has (4, 8)"),
        (setting("x", queue="xx"), "inputs/0/queue", "xx is not a queue of the netlist"),
        (setting("x", queue="out"), "inputs/0/queue", "queue out is filled by op sum"),
        (setting("x", queue="c"), "inputs/0/queue", "queue c holds a constant or parameter of the image"),
        (setting("i", queue="x"), "inputs/1/queue", "queue x occurs twice"),
        (setting("i", gather=[4, 0, 5]), "inputs/1/gather", "element 5 of 5"),
        (setting("i", gather=[4, 0, -1]), "inputs/1/gather/2", "-1 is not an integer from 0"),
        (setting("i", ranges=[{"rows": 7, "elements": [4, 5]}]), "inputs/1/ranges", "element 5 of 5"),
        (setting("i", ranges=[{"from_end": True}]), "inputs/1/ranges", "from the end of a dimension of unknown size"),
        (setting("i", below=0), "inputs/1/below", "0 is not an integer from 1"),
        (setting("i", windows=WINDOWS, shape=[1, 2, 8]), "inputs/1/windows", "indices have no windows"),
        (setting("x", windows=WINDOWS), "inputs/0/windows", "an order of 3 dimensions for shape [4, 8]"),
        (setting("x", windows=[*WINDOWS[:4], [10**9]], shape=[1, 2, 8]), "inputs/0/view", "has not the 6000000000"),
        (setting("out", shape=[3, 5]), "outputs/0/view", "[1, 3, 4] has not the 15 elements of shape [3, 5]"),
        (setting("out", queue="x"), "outputs/0/queue", "queue x is filled by the host"),
        (setting("out", slices=2), "outputs/0/slices", "1 along t of queue out are not made of 2 slices each"),
        (doubling, "outputs/1/queue", "queue out occurs twice"),
        (setting("", labels=["a", "b", "a"]), "labels/2", "a occurs twice"),
        (setting("", chip=1), "chip", "no graph of the netlist is on chip 1: they are on 0"),
        (setting("", schema_version=2), "schema_version", "2 is not the schema_version that is known"),
        (setting("", inputs={}), "inputs", "{} is not a list"),
        (places(op="summ"), "elements/summ", "summ is not an op of the netlist (did you mean 'sum'?)"),
        (places([1, 64, 32]), "elements/sum/extent", "op sum has a result of [1, 32, 32] elements"),
        (places([1, 33, 32]), "elements/sum/extent", "[1, 33, 32] is not rows and columns in whole tiles of 32"),
        (places([1, 32]), "elements/sum/extent", "[1, 32] is not a list of 3"),
        (places(axis="x"), "elements/sum/repeats/0/axis", "'x' is not one of z, r, c"),
        (places(size=33), "elements/sum/repeats", "is not places along r below 32"),
        (places(size=4, stride=11), "elements/sum/repeats", "is not places along r below 32"),
        (places(axis="z", size=2), "elements/sum/repeats", "is not places along z below 1"),
        (places(size=0), "elements/sum/repeats/0/size", "0 is not an integer from 1"),
    ],
)  # fmt: skip
def test_what_does_not_belong_there(change, place, says, tmp_path, capsys):
    path = image(tmp_path, change)
    found = check_image(path).diagnostics
    assert {item.severity for item in found} == {"error"}
    assert [item.pointer for item in found].count(f"{KEY}/{place}") == 1, found
    (at,) = (item for item in found if item.pointer == f"{KEY}/{place}")
    assert says in at.message
    with pytest.raises(ImageError) as caught:
        be.load_image(path)
    assert {item.pointer for item in caught.value.diagnostics} == {item.pointer for item in found}
    for verb in ("run", "test", "numerics", "perf", "graph") if change is dropping else ("run",):
        assert main([verb, str(path)]) == 2
        assert "Traceback" not in (said := "".join(capsys.readouterr()))
        assert KEY in said


def test_a_copy_that_needs_another_chip(tmp_path):
    """The graph reads a queue on chip 0, so there is nothing by itself on chip 1."""
    text = netlist_text(more=[queue("i", df="RawUInt32"), queue("o", "plus")]).replace("count: 1", "count: 2")
    moved = text.replace("  fwd:\n    target_device: 0", "  fwd:\n    target_device: 1")
    assert moved != text
    content, files = parts(net=moved)
    content[KEY] = {**copy.deepcopy(MODEL), "chip": 1, "inputs": [], "outputs": []}
    found = check_image(write(tmp_path / "x.tti", tar_bytes(members(content, files)))).diagnostics
    said = [item.message for item in found if item.pointer == f"{KEY}/chip"]
    assert said == [f"chip 1 is not a copy by itself: {name} is on another" for name in ("c", "w", "x")]


def test_more_of_the_hosts_memory_than_is_allowed(tmp_path, capsys):
    """A queue takes 3 elements of an input; nothing says that the input is small."""
    path = image(tmp_path, setting("i", shape=[1, 1 << 30]))
    assert main(["check", str(path)]) == 0
    for verb in ("run", "numerics"):
        assert main([verb, "--memory-limit", "1G", str(path)]) == 3
        assert "24.0 GiB of host copies" in capsys.readouterr().err


RULE = {
    "operator": "Reshape", "result": "t", "shape": [2, 3], "gives": [3, 2],
    "inputs": [{"label": "b", "shape": [1, 5], "dtype": "int64"}], "elements": [[0, 4], [-1, 2]], "example": [3, 2],
    "keeps_zero": True,
}  # fmt: skip


def test_a_rule_about_a_shape_is_read_as_it_was_written(tmp_path):
    (rule,) = be.load_image(image(tmp_path, setting("", rules=[RULE]))).model.rules
    assert (rule.elements[1].value, rule.gives, rule.inputs[0].label) == (2, (3, 2), "b")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("operator", "Pad"),
        ("elements", [[0, 5], [-1, 2]]),
        ("elements", [[0, -1], [-1, 2]]),
        ("elements", [[1, 0], [-1, 2]]),
        ("elements", [[0, 4, 1], [-1, 2]]),
        ("example", [3]),
        ("inputs", [{"label": "c", "shape": [1, 5], "dtype": "int64"}]),
        ("inputs", [{"label": "b", "shape": [1, 5], "dtype": "float32"}]),
        ("gives", [3, -2]),
        ("more", 1),
    ],
)
def test_a_rule_about_a_shape_that_contradicts_itself(tmp_path, field, value):
    with pytest.raises(ImageError, match=rf"rules/0/{field}"):
        be.load_image(image(tmp_path, setting("", rules=[{**RULE, field: value}])))
