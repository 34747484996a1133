"""Real bytes go through DMAs and layouts; without a reference nothing is invented."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.foreign.darwinn import Twin, build, load, run, tflite, verify, wrap
from buda_emu.foreign.darwinn.example import model as example_model
from buda_emu.foreign.darwinn.flatbuffer import read
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from foreign.darwinn import example_trees as ex

MODEL = example_model(ex.EDGES)


def picture(seed=0, size=16):
    return np.random.default_rng(seed).integers(0, 256, (1, size, size, 3)).astype(np.uint8)


def package(edit=ex.unchanged, wrapped=False):
    raw = ex.changed(edit)
    return load(wrap(raw) if wrapped else raw)


@pytest.mark.parametrize("size", [0, 1], ids=["edges", "spots"])
def test_outputs_are_the_references_bit_for_bit(size):
    item = ex.EXAMPLES[size]
    image = picture(1, item.size)
    twin = Twin(example_model(item))
    want = twin.run({"image": image})
    for whole in (False, True):
        found = run(load(wrap(build(ex.tree(item)))), {"image": image}, reference=twin, whole=whole)
        assert set(found) == {"grid", "scores"}
        for name, array in found.items():
            assert array.dtype == want[name].dtype
            assert array.tobytes() == want[name].tobytes()


def test_a_reference_may_be_a_path(tmp_path):
    (tmp_path / "edges.tflite").write_bytes(MODEL)
    assert run(package(), {"image": picture()}, reference=tmp_path / "edges.tflite").keys() == {"grid", "scores"}


def test_without_a_reference_nothing_is_invented():
    with pytest.raises(HostError, match="reference"):
        run(package(), {"image": picture()})


def test_every_byte_that_no_dma_moves_arrives_wrong():
    want = run(package(), {"image": picture()}, reference=MODEL)
    for number, short in ((3, 511), (4, 9)):
        found = run(
            package(lambda tree, n=number, s=short: ex.hint(tree, n).update(size_in_bytes=s)),
            {"image": picture()},
            reference=MODEL,
        )
        name = {3: "grid", 4: "scores"}[number]
        wrong = found[name].reshape(-1) != want[name].reshape(-1)
        assert wrong.sum() == 1
        other = {3: "scores", 4: "grid"}[number]
        assert np.array_equal(found[other], want[other])


def test_an_input_that_is_not_moved_changes_what_is_computed():
    image = picture()
    found = run(package(lambda tree: ex.hint(tree, 1).update(size_in_bytes=0)), {"image": image}, reference=MODEL)
    seen = image.reshape(-1).copy()
    seen[:384] = ~seen[:384]
    assert np.array_equal(found["grid"], Twin(MODEL).run({"image": seen.reshape(image.shape)})["grid"])


def test_an_incomplete_list_moves_what_it_does_not_name():
    def edit(tree):
        ex.main(tree)["dma_hints"].update(fully_deterministic=False, hints=ex.hints(tree)[:3])

    found = run(package(edit), {"image": picture()}, reference=MODEL)
    assert np.array_equal(found["grid"], Twin(MODEL).run({"image": picture()})["grid"])


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda tree: ex.grid(tree)["numerics"].update(zero_point=7), "zero point"),
        (lambda tree: ex.grid(tree)["numerics"].update(dequantization_factor=2.0), "scale"),
        (lambda tree: ex.grid(tree).update(data_type="SIGNED_FIXED_POINT8"), "SIGNED_FIXED_POINT8"),
        (lambda tree: ex.main(tree)["output_layers"][1].update(z_dim=9), "9 elements"),
    ],
)
def test_a_reference_that_does_not_fit_is_refused_and_does_not_match(edit, says):
    with pytest.raises(HostError, match=says):
        run(package(edit), {"image": picture()}, reference=MODEL)
    found = verify(package(edit), MODEL)
    assert not found.matches
    assert says in found.differences[0]


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(HostError, match=r"no input is given \(--input image=FILE.npy\); the package takes image"):
        run(package(), {}, reference=MODEL)
    with pytest.raises(HostError, match="the model has no tensor 'imgae': did you mean 'image'"):
        run(package(), {"imgae": picture()}, reference=MODEL)
    with pytest.raises(HostError, match="no tensor 'picture': its inputs are image"):
        run(package(), {"picture": picture()}, reference=MODEL)
    with pytest.raises(HostError, match="uint8"):
        run(package(), {"image": picture().astype(np.int16)}, reference=MODEL)


def test_whole_needs_what_is_around_the_package():
    with pytest.raises(HostError, match="bare package"):
        run(package(), {"image": picture()}, reference=MODEL, whole=True)


def test_several_batches_are_said_not_to_run():
    with pytest.raises(UnsupportedError, match="batch size 2"):
        run(package(lambda tree: ex.main(tree).update(batch_size=2)), {"image": picture()}, reference=MODEL)


def test_a_negative_dma_is_refused():
    with pytest.raises(PackageError, match="D053"):
        run(package(lambda tree: ex.hint(tree, 3).update(offset_in_bytes=-4)), {"image": picture()}, reference=MODEL)


def with_cpu_operator():
    """The example with an ARG_MAX over its scores, left on the CPU."""
    made = read(tflite.Model, memoryview(wrap(ex.build(ex.edges()))))
    graph = made.subgraphs[0]
    tensors = (
        *graph.tensors,
        tflite.Tensor((), 2, 1, "axis"),
        tflite.Tensor((1, 1, 1), 2, 0, "best"),
    )
    (custom,) = graph.operators
    best = tflite.Operator(1, (2, 3), (4,), 40, tflite.ArgMaxOptions(2))
    codes = (*made.operator_codes, tflite.OperatorCode(56, None, 1, 56))
    buffers = (tflite.Buffer(), tflite.Buffer(data=(3).to_bytes(4, "little")))
    graph = tflite.SubGraph(tensors, graph.inputs, (1, 4), (custom, best))
    return write(tflite.Model(3, codes, (graph,), None, buffers), tflite.IDENTIFIER)


def test_cpu_operators_behind_the_device_run_too():
    given = load(with_cpu_operator())
    assert given.check().findings == ()
    found = run(given, {"image": picture()}, reference=MODEL, whole=True)
    want = Twin(MODEL).run({"image": picture()})
    assert set(found) == {"grid", "best"}
    assert found["best"].tolist() == [[[int(want["scores"].argmax())]]]


def test_a_package_holds_its_model_and_no_other():
    found = verify(package(), MODEL)
    assert found.matches
    assert (found.weights, found.biases) == (len(ex.EDGES.constants()["conv/weights"]) + 5120, 2)
    other = verify(package(), example_model(ex.SPOTS))
    assert not other.matches
    assert other.biases_found == 0
    assert other.weights_missing > 0


def test_one_changed_weight_is_found():
    def edit(tree):
        blob = bytearray(ex.caching(tree)["parameters"])
        blob[0] ^= 1
        ex.caching(tree)["parameters"] = bytes(blob)

    found = verify(package(edit), MODEL)
    assert (found.layers, found.weights_missing <= 1) == (True, True)
    lost = lambda tree: ex.caching(tree).update(parameters=bytes(5440))  # noqa: E731
    assert verify(package(lost), MODEL).biases_found == 0


@pytest.mark.parametrize("compare", [verify, lambda given, model: run(given, {"image": picture()}, reference=model)])
def test_a_compiled_file_is_no_twin(compare, tmp_path):
    path = tmp_path / "edges_edgetpu.tflite"
    path.write_bytes(wrap(ex.changed(ex.unchanged)))
    for model in (path, path.read_bytes()):
        with pytest.raises(HostError, match=r"is a compiled file, .* give the uncompiled \.tflite"):
            compare(package(), model)


def test_a_model_without_weights_and_biases_shows_nothing():
    found = replace(verify(package(), MODEL), weights=0, biases=0, biases_found=0)
    assert found.layers
    assert found.is_vacuous
    assert not found.matches
