"""`buda-emu pack`, and what `run`, `check` and `explain` do with images."""

import io
import json
import pickle
import stat
import subprocess
import sys

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from small_images import TOP, bin_entry, good, members, netlist_text, parts, tar_bytes, values, write

NETLIST = "netlists/attention.yaml"


@pytest.fixture(scope="module")
def inputs(root, tmp_path_factory):
    """Every input of the netlist: x apart, constants and parameters in a folder to be packed."""
    place = tmp_path_factory.mktemp("inputs")
    for name in ("x", "held", "all"):
        (place / name).mkdir()
    stream = np.random.default_rng(1)
    for queue in be.load(root / NETLIST).queues.values():
        if queue.host_fed:
            shape = (queue.entries, *queue.blocking.element_shape)
            plain = {"scale": np.full, "ones": np.full, "mask": np.full}.get(queue.name)
            array = plain(shape, 0.25, np.float32) if plain else stream.standard_normal(shape).astype(np.float32)
            for folder in ("all", "x" if queue.name == "x" else "held"):
                np.save(place / folder / f"{queue.name}.npy", array)
    return place


def outputs(path, capsys, *arguments):
    """Digests of the outputs of a run."""
    report = path.parent / "report.json"
    assert main(["run", str(path), "--threads", "1", "-q", "--json", str(report), *map(str, arguments)]) == 0, (
        capsys.readouterr()
    )
    return [(output["queue"], output["sha256"]) for output in json.loads(report.read_text())["outputs"]]


@pytest.mark.parametrize("precision", ["format", "ideal"])
@pytest.mark.parametrize("options", [[], ["--tilized"], ["--zip"], ["--zip", "--tilized"]], ids=" ".join)
def test_an_image_gives_the_outputs_of_its_netlist(options, precision, root, inputs, tmp_path, capsys):
    image = tmp_path / "a.tti"
    assert main(["pack", str(root / NETLIST), "--tensors", str(inputs / "held"), "-o", str(image), *options]) == 0
    assert main(["check", str(image), "--strict"]) == 0
    capsys.readouterr()
    got = outputs(image, capsys, "--inputs", inputs / "x", "--precision", precision)
    netlist = write(tmp_path / "net.yaml", (root / NETLIST).read_bytes())
    expected = outputs(netlist, capsys, "--inputs", inputs / "all", "--precision", precision)
    if precision == "ideal" and "--tilized" in options:  # tiles are rounded before anything runs
        assert [name for name, _ in got] == [name for name, _ in expected]
    else:
        assert got == expected


def test_pack_prints_a_summary(root, inputs, tmp_path, capsys):
    image = tmp_path / "a.tti"
    assert (
        main(["pack", str(root / NETLIST), "--tensors", str(inputs / "held"), "-o", str(image), "--name", "mha"]) == 0
    )
    size = image.stat().st_size
    assert capsys.readouterr().out == f"{image}: wormhole_b0, 11 tensors, BACKEND, {size} bytes\n"
    assert be.load_image(image).metadata.device_image_name == "mha"
    first = image.read_bytes()
    assert (
        main(["pack", str(root / NETLIST), "--tensors", str(inputs / "held"), "-o", str(image), "--name", "mha", "-q"])
        == 0
    )
    assert image.read_bytes() == first
    assert capsys.readouterr().out == ""
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(image.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_tensors_from_npz_files(tmp_path, capsys):
    net = write(tmp_path / "net.yaml", netlist_text().encode())
    np.savez(tmp_path / "all.npz", c=values((2, 1, 32, 32)), w=values())
    assert main(["pack", str(net), "--tensors", str(tmp_path), "-o", str(tmp_path / "a.tti")]) == 0
    assert list(be.load_image(tmp_path / "a.tti").tensors) == ["c", "w"]
    np.save(tmp_path / "w.npy", values())
    assert main(["pack", str(net), "--tensors", str(tmp_path), "-o", str(tmp_path / "b.tti")]) == 2
    assert "w.npy holds w, which another file" in capsys.readouterr().err
    assert not (tmp_path / "b.tti").exists()


def npy():
    stream = io.BytesIO()
    np.save(stream, values())
    return stream.getvalue()


def npz():
    stream = io.BytesIO()
    np.savez(stream, w=values())
    return stream.getvalue()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda place: (place / "t" / "w.txt").touch(), "no .npy or .npz file"),
        (lambda place: (place / "t" / "w.npy").write_bytes(b"junk"), "w.npy is not a numpy array file"),
        (lambda place: (place / "t" / "w.npz").write_bytes(b"PK\3\4junk"), "w.npz is not a numpy archive"),
        (lambda place: np.save(place / "t" / "v.npy", values()), "v is not a queue of"),
        (lambda place: np.save(place / "t" / "w.npy", values((1, 1, 1, 1))), "w has shape"),
        (lambda place: np.save(place / "t" / "w.npy", np.array([{}]), allow_pickle=True), "is not a numpy array file"),
        (lambda place: (place / "t" / "w.npz").write_bytes(npy()), "w.npz is not a numpy archive"),
        (lambda place: (place / "t" / "w.npy").write_bytes(npz()), "w.npy is not a numpy array file"),
        (lambda place: (place / "t" / "w.npy").write_bytes(npy()[:-5]), "w.npy is not a numpy array file"),
        (lambda place: (place / "t" / "w.NPY").write_bytes(npy()), "capital letters: rename it to .npy"),
        (lambda place: (place / "t").rmdir(), "is not a directory"),
    ],
)
def test_what_pack_refuses(spoil, says, tmp_path, capsys):
    net = write(tmp_path / "net.yaml", netlist_text().encode())
    (tmp_path / "t").mkdir()
    spoil(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["pack", str(net), "--tensors", str(tmp_path / "t"), "-o", str(tmp_path / "a.tti")]) == 2
    assert says in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_another_suffix_is_refused(tmp_path, capsys):
    net = write(tmp_path / "net.yaml", netlist_text().encode())
    assert main(["pack", str(net), "--tensors", str(tmp_path), "-o", str(tmp_path / "a.tar")]) == 2
    assert "does not end in .tti" in capsys.readouterr().err


def small_image(tmp_path, **changes):
    return write(tmp_path / "small.tti", tar_bytes(members(*parts(**changes))))


def test_a_run_says_what_the_image_is(tmp_path, capsys):
    content, files = parts()
    del content["verify_cfg"]
    image = write(tmp_path / "small.tti", tar_bytes(members(content, files)))
    assert main(["run", str(image), "--threads", "1", "-o", str(tmp_path / "out")]) == 0
    title, about, warnings, inputs, *_ = capsys.readouterr().out.split("\n\n")
    assert title.startswith(f"{image}!{TOP}/net.yaml: wormhole_b0, precision format")
    assert about == "image small: 2 tensors, fp32_fallback Float16_b, made by 0.1"
    assert warnings == "warning: verify_cfg: this field is missing"
    assert inputs == "3 inputs from default, image"
    assert np.load(tmp_path / "out" / "out.npy").shape == (1, 1, 32, 32)


def test_inputs_and_outputs_in_the_hosts_shapes(tmp_path, capsys):
    content, files = parts()
    state = content["compiled_graph_state"]
    shapes = {"original_shape": {"dims_": [1, 4, 16, 16]}, "reinterpreted_shape": {"dims_": [1, 1, 32, 32]}}
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "ReinterpretShape", **shapes}]
    state["ordered_output_runtime_tensor_transforms"] = [{"type": "Unpad", "unpadded_shape": {"dims_": [1, 1, 8, 9]}}]
    image = write(tmp_path / "small.tti", tar_bytes(members(content, files)))
    (tmp_path / "in").mkdir()
    x = values((1, 4, 16, 16), 7)
    np.save(tmp_path / "in" / "x.npy", x)
    arguments = ["run", str(image), "--threads", "1", "-q", "--inputs", str(tmp_path / "in")]
    assert main([*arguments, "-o", str(tmp_path / "host")]) == 0
    assert main([*arguments, "-o", str(tmp_path / "raw"), "--readout", "raw"]) == 0
    expected = x.reshape(1, 1, 32, 32) + values((2, 1, 32, 32), 2)[:1] + values(seed=3)
    assert np.array_equal(np.load(tmp_path / "raw" / "out.npy"), expected)
    assert np.array_equal(np.load(tmp_path / "host" / "out.npy"), expected[:, :, :8, :9])
    capsys.readouterr()


def test_a_transform_that_is_none_for_outputs(tmp_path, capsys):
    content, files = parts()
    content["compiled_graph_state"]["ordered_output_runtime_tensor_transforms"] = [{"type": "Prestride"}]
    image = write(tmp_path / "small.tti", tar_bytes(members(content, files)))
    assert main(["run", str(image), "--threads", "1"]) == 3
    assert "out: the runtime transform Prestride is not one for an output" in capsys.readouterr().err
    assert main(["run", str(image), "--threads", "1", "--readout", "raw", "-q"]) == 0


def test_flags_that_do_not_fit_an_image(tmp_path, capsys):
    image = small_image(tmp_path)
    assert main(["run", str(image), "--arch", "grayskull"]) == 2
    assert "it is for wormhole_b0, not for grayskull" in capsys.readouterr().err
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "w.npy", values())
    assert main(["run", str(image), "--inputs", str(tmp_path / "in")]) == 2
    assert "the image holds the tensor of queue w: take" in capsys.readouterr().err
    net = write(tmp_path / "net.yaml", netlist_text().encode())
    assert main(["run", str(net), "--allow-pickle"]) == 2
    assert "--allow-pickle is for device images" in capsys.readouterr().err


def test_microbatches_are_the_images(tmp_path, capsys):
    net = netlist_text().replace("var: {$c_zero: 0}", "param: [$p_loop_count]\n    - var: {$c_zero: 0}")
    image = small_image(tmp_path, net=net, microbatch_count=3)
    assert main(["run", str(image), "--threads", "1"]) == 0
    assert "$p_loop_count=3" in capsys.readouterr().out


def test_pickles_need_the_flag(tmp_path, capsys):
    file = "tensors/torch.Tensor.w.pkl"
    image = small_image(tmp_path, w=(file, {f"{TOP}/{file}": pickle.dumps(values(seed=3))}))
    assert main(["run", str(image), "--threads", "1"]) == 2
    shown = capsys.readouterr().err
    assert "can run any code" in shown
    assert "--allow-pickle" in shown
    assert main(["run", str(image), "--threads", "1", "--allow-pickle", "-q"]) == 0


def test_check_prints_what_is_wrong_and_explain_says_more(tmp_path, capsys):
    image = small_image(tmp_path, w=bin_entry("w", values((1, 1, 64, 32))))
    assert main(["check", str(image)]) == 2
    field = "compiled_graph_state/post_const_eval_parameters/w"
    place = f"{image}!{TOP}/device.json:{field}: error[image-queue]: tensor w: shape [1, 1, 64, 32], "
    shown = capsys.readouterr().out
    assert shown.startswith(place)
    assert shown.splitlines()[-1] == "1 error; `buda-emu explain image-queue` tells more"
    assert main(["explain", "image-queue"]) == 0
    assert "the names that device.json gives are queues of the netlist" in capsys.readouterr().out
    write(image, tar_bytes(good())[:3000])
    assert main(["check", str(image), "--format", "json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert content["diagnostics"][0]["rule"] == "image-archive"
    assert content["files"] == [{"path": str(image), "kind": "image", "accepted": False}]


def test_an_image_that_is_not_there(tmp_path, capsys):
    for verb in ("run", "check"):
        assert main([verb, str(tmp_path / "none.tti")]) == 2
    shown = capsys.readouterr()
    assert "No such file" in shown.err
    assert "No such file" in shown.out


def test_images_of_the_projects_netlists(root, tmp_path, capsys):
    """Each can be packed with what its programs are fed, and runs to the same outputs."""
    for path in sorted((root / "netlists").glob("*.yaml")):
        netlist = be.load(path)
        folder = tmp_path / path.stem
        folder.mkdir()
        for queue in netlist.queues.values():
            if queue.is_ram and queue.host_fed:
                np.save(
                    folder / f"{queue.name}.npy", np.full((queue.entries, *queue.blocking.element_shape), 0.5, "f4")
                )
        if not any(folder.iterdir()):
            continue
        image = tmp_path / f"{path.stem}.tti"
        assert main(["pack", str(path), "--tensors", str(folder), "-o", str(image), "--tilized", "-q"]) == 0
        assert main(["check", str(image)]) == 0
    capsys.readouterr()


def test_checking_an_image_needs_no_numpy(tmp_path, child_environment):
    image = small_image(tmp_path)
    script = (
        "import sys; from buda_emu.app.cli.main import main; code = main(['check', sys.argv[1]]); "
        "sys.exit(code or 10 * ('numpy' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(image)], env=child_environment, check=False)
    assert done.returncode == 0
