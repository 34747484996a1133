"""Packages are read from files, bytes and containers, and written again."""

import json

import pytest

import buda_emu
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn import build, load, wrap
from buda_emu.support.errors import DocumentError, HostError, PackageError
from foreign.darwinn import example_trees as ex

PACKAGE = build(ex.edges())


def test_a_package_from_everything_that_holds_bytes(tmp_path):
    path = tmp_path / "edges.tflite"
    path.write_bytes(wrap(PACKAGE))
    for source in (path, str(path), wrap(PACKAGE), bytearray(wrap(PACKAGE)), memoryview(PACKAGE)):
        package = load(source)
        assert package.raw == PACKAGE
        assert [item.kind for item in package.executables] == ["EXECUTION_ONLY", "PARAMETER_CACHING"]
        assert (package.main.kind, package.caching.kind) == ("EXECUTION_ONLY", "PARAMETER_CACHING")
    assert load(path).name == "edges.tflite"
    assert load(PACKAGE).name == "edges"
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.tflite")


def test_a_tree_is_a_package_again():
    for tree in (ex.edges(), ex.tree(ex.SPOTS)):
        package = load(build(tree))
        again = load(build(package.to_dict(data=True)))
        assert again.to_dict() == package.to_dict()
        assert again.raw == package.raw
        json.dumps(package.to_dict())


def test_the_custom_operator():
    package = load(wrap(PACKAGE, version=1, execution_preference=1, chips=(18,)))
    op = package.custom_op
    assert (op.version, op.execution_preference, op.chips) == (1, 1, (18,))
    assert (op.inputs, op.outputs) == (("image",), ("grid", "scores"))
    assert load(wrap(PACKAGE)).custom_op.chips is None
    assert load(PACKAGE).custom_op is None


def test_pages():
    package = load(PACKAGE)
    assert len(PACKAGE) % 4096 == 0
    for start, length, parameters in package.places:
        assert start % 4096 == length % 4096 == 0
        assert parameters == -1 or parameters % 4096 == 0
    assert package.places[1][2] > 0


def test_places_are_those_of_the_file():
    for source in (PACKAGE, wrap(PACKAGE)):
        package = load(source)
        name = package.main.outputs[0]
        assert 0 < name.at < len(source)
        assert source[package.offset + 4 : package.offset + 8] == b"DWN1"


def test_main_of_one_and_of_three():
    alone = ex.edges()
    alone["executables"].pop()
    assert load(build(alone)).main.kind == "EXECUTION_ONLY"
    assert load(build(alone)).caching is None
    three = ex.edges()
    three["executables"].append({**ex.main(three), "type": "STAND_ALONE"})
    assert load(build(three)).main.kind == "STAND_ALONE"
    assert load(build(three)).caching is None


@pytest.mark.parametrize("source", [b"", b"1234567", PACKAGE[:100], bytes(9000), wrap(PACKAGE)[:400]])
def test_what_cannot_be_read_is_an_error_with_its_findings(source):
    with pytest.raises(PackageError) as error:
        load(source)
    assert error.value.diagnostics[0].rule in str(error.value)
    assert isinstance(error.value, DocumentError)
    assert isinstance(error.value, buda_emu.BudaError)


def test_a_package_for_several_chips_shows_its_parts():
    package = load(build({"virtual_chip_id": -1, "multi_chip_package": [{"serialized_package": PACKAGE}] * 2}))
    assert [part.main.kind for part in package.parts] == ["EXECUTION_ONLY"] * 2
    assert package.check().verdict == "rejected"
    with pytest.raises(PackageError, match="several chips"):
        _ = package.main


def test_parts_need_not_verify():
    tree = {
        "virtual_chip_id": -1,
        "multi_chip_package": [{"serialized_package": b"noise"}, {"serialized_package": PACKAGE}],
    }
    assert len(load(build(tree)).parts) == 1


@pytest.mark.parametrize(
    "tree",
    [{"executables": [{"type": "SOMETHING"}]}, {"executable": []}, {"executables": 5}, {"min_runtime_version": "x"}],
)
def test_what_is_no_tree_is_refused(tree):
    with pytest.raises(HostError, match="not a tree of a package"):
        build(tree)


def test_every_public_name_can_be_had():
    for name in darwinn.__all__:
        assert getattr(darwinn, name) is not None
    assert set(darwinn.__all__) <= set(dir(darwinn))
    with pytest.raises(AttributeError):
        _ = darwinn.nothing
