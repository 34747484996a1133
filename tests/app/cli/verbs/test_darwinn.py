"""`buda-emu darwinn`: every verb, its exit codes, and what it prints."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from buda_emu.foreign.darwinn import Twin, build, load, relayout
from buda_emu.foreign.darwinn.example import EXAMPLES, example_files, tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example files."""
    place = tmp_path_factory.mktemp("packages")
    for name, data in example_files().items():
        (place / name).write_bytes(data)
    broken = tree(EXAMPLES[0])
    broken["executables"][0]["batch_size"] = 0
    (place / "broken.dwn").write_bytes(build(broken))
    return place


@pytest.fixture
def edges(folder):
    return str(folder / "edges_edgetpu.tflite")


def test_inspect_answers_on_one_screen(edges, capsys):
    assert main(["darwinn", "inspect", edges]) == 0
    text = capsys.readouterr().out
    for words in (
        "left on the CPU",
        "5,440 bytes cached",
        "0 streamed",
        "moves 5,952 bytes",
        "minimum runtime  13",
        "8x8x8",
        "not given",
        "6,000",
        "ok (no findings)",
        "over usb2",
    ):
        assert words in text
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) < 120


def test_inspect_as_json(edges, capsys):
    assert main(["darwinn", "inspect", edges, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert content["tree"] == load(edges).to_dict()
    assert content["summary"]["switch_bytes"] == 5952
    assert (content["verdict"], content["findings"]) == ("ok", [])


def test_strict_json_of_what_is_no_number(tmp_path, capsys):
    odd = tree(EXAMPLES[0])
    odd["executables"][0]["output_layers"][0]["numerics"]["dequantization_factor"] = float("nan")
    (tmp_path / "odd.dwn").write_bytes(build(odd))
    assert main(["darwinn", "inspect", str(tmp_path / "odd.dwn"), "--json"]) == 0
    assert "NaN" not in capsys.readouterr().out


def test_check_takes_files_and_folders(folder, edges, capsys):
    assert main(["darwinn", "check", edges]) == 0
    assert capsys.readouterr().out == f"{edges}: ok\n"
    assert main(["darwinn", "check", str(folder)]) == 2
    text = capsys.readouterr().out
    assert "error[D019]" in text
    assert "broken.dwn: rejected" in text
    assert "spots_edgetpu.tflite: ok" in text
    assert "edges.tflite:" not in text  # an uncompiled model is not a package
    assert "explain D019" in text
    assert main(["darwinn", "check", str(folder / "edges.tflite")]) == 2
    assert "D001" in capsys.readouterr().out


def test_check_as_json_and_with_a_drivers_version(edges, capsys):
    assert main(["darwinn", "check", edges, "--runtime", "12", "--json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert content["runtime"] == 12
    assert content["files"] == [{"path": edges, "kind": "package", "accepted": False, "verdict": "rejected"}]
    assert content["diagnostics"][0]["rule"] == "D013"
    assert content["diagnostics"][0]["offset"] > 0


def test_an_empty_folder_is_said_to_be_empty(tmp_path, capsys):
    assert main(["darwinn", "check", str(tmp_path)]) == 2
    assert "no Edge TPU package in this folder" in capsys.readouterr().err


def test_the_common_check_and_explain_know_packages(folder, edges, capsys):
    assert main(["check", edges]) == 0
    assert main(["check", str(folder / "broken.dwn")]) == 2
    assert "error[D019]" in capsys.readouterr().out
    assert main(["explain", "D053"]) == 0
    text = capsys.readouterr().out
    assert "D053" in text
    assert "verdict faulty" in text


def test_verify(folder, edges, capsys):
    assert main(["darwinn", "verify", edges, "--source", str(folder / "edges.tflite")]) == 0
    assert "holds" in capsys.readouterr().out
    assert main(["darwinn", "verify", edges, "--source", str(folder / "spots.tflite"), "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["schema_version"], content["matches"], content["biases_found"]) == (1, False, 0)
    assert main(["darwinn", "verify", edges, "--source", str(folder / "spots.tflite")]) == 1
    assert "does not hold" in capsys.readouterr().out


def test_link(edges, tmp_path, capsys):
    given = ["--address", "parameter=0x100000000", "--address", "input:image=4096", "--address", "output:grid=8192"]
    assert main(["darwinn", "link", edges, "--executable", "PARAMETER_CACHING", *given[:2], "-o", str(tmp_path)]) == 0
    assert "1 chunk of PARAMETER_CACHING" in capsys.readouterr().out
    first = int.from_bytes((tmp_path / "chunk_0.bin").read_bytes(), "little")
    assert (first >> 70 & 0xFFFF_FFFF, first >> 198 & 0xFFFF_FFFF) == (0, 1)
    assert main(["darwinn", "link", edges, *given, "-o", str(tmp_path / "main")]) == 0
    second = int.from_bytes((tmp_path / "main" / "chunk_0.bin").read_bytes(), "little")
    assert second >> (70 + 2 * 128) & 0xFFFF_FFFF == 4096


@pytest.mark.parametrize("address", ["parameter", "parameter=x", "image=5", "input:=5", "scratch:a=1"])
def test_addresses_that_are_none_are_refused(edges, tmp_path, address, capsys):
    assert main(["darwinn", "link", edges, "--address", address, "-o", str(tmp_path)]) == 2
    assert "--address" in capsys.readouterr().err


def test_an_unknown_executable_is_refused(edges, tmp_path, capsys):
    assert main(["darwinn", "link", edges, "--executable", "ALL", "-o", str(tmp_path)]) == 2
    assert "EXECUTION_ONLY, PARAMETER_CACHING" in capsys.readouterr().err


def test_relayout(edges, tmp_path, capsys):
    raw = np.random.default_rng(1).integers(0, 256, 512).astype(np.uint8).tobytes()
    (tmp_path / "raw").write_bytes(raw)
    out = tmp_path / "grid.npy"
    command = ["darwinn", "relayout", edges, "--layer", "grid", "--in", str(tmp_path / "raw"), "-o", str(out)]
    assert main(command) == 0
    layer = load(edges).main.outputs[0]
    assert np.array_equal(np.load(out), relayout(layer, raw))
    assert main([*command, "--real"]) == 0
    assert np.load(out).dtype == np.float32
    capsys.readouterr()
    assert main(["darwinn", "relayout", edges, "--layer", "gird", "--in", str(tmp_path / "raw"), "-o", str(out)]) == 2
    assert "did you mean 'grid'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["darwinn", "relayout", edges, "--layer", "grid", "-o", str(out)])
    assert "--in" in capsys.readouterr().err


def test_extract(edges, tmp_path):
    assert main(["darwinn", "extract", edges, "-o", str(tmp_path / "parts")]) == 0
    package = load(edges)
    assert (tmp_path / "parts" / "package.dwn").read_bytes() == package.raw
    assert (tmp_path / "parts" / "1_parameter_caching_parameters.bin").read_bytes() == bytes(package.caching.parameters)
    content = json.loads((tmp_path / "parts" / "tree.json").read_text())
    assert content == {"schema_version": 1, "tree": package.to_dict()}


def test_run_replays(folder, edges, capsys):
    command = ["darwinn", "run", edges, str(folder / "spots_edgetpu.tflite"), "--requests", "0,1,0"]
    assert main([*command, "--link", "usb3", "--clock", "max"]) == 0
    text = capsys.readouterr().out
    for words in ("3 requests of 2 packages, assumed:", "usb3", "500,000,000 Hz", "8,388,608", "46,976", "unknown"):
        assert words in text
    assert main([*command, "--link", "usb3", "--clock", "max", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert content["assumptions"]["link"]["name"] == "usb3"
    kinds = [event["kind"] for event in content["events"]]
    assert kinds == ["caching", "inference", "caching", "inference", "inference"]
    assert main([*command, "--sram", "1000", "--transport", "pcie", "--no-overlap"]) == 0
    assert "more than the assumed 1,000" in capsys.readouterr().out


def test_every_verb_prints_json(folder, edges, tmp_path, capsys):
    np.save(tmp_path / "image.npy", np.zeros((1, 16, 16, 3), np.uint8))
    (tmp_path / "raw").write_bytes(bytes(512))
    reference = str(folder / "edges.tflite")
    for words in (
        ["inspect", edges],
        ["check", edges],
        ["verify", edges, "--source", reference],
        ["run", edges],
        ["run", edges, "--reference", reference, "--input", f"image={tmp_path / 'image.npy'}"],
        ["link", edges, "-o", str(tmp_path / "linked")],
        ["extract", edges, "-o", str(tmp_path / "parts")],
        ["relayout", edges, "--layer", "grid", "--in", str(tmp_path / "raw"), "-o", str(tmp_path / "grid.npy")],
    ):
        assert main(["darwinn", *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["schema_version"] == 1


def test_run_draws(folder, edges, tmp_path, capsys):
    command = ["darwinn", "run", edges, str(folder / "spots_edgetpu.tflite"), "--link", "usb3"]
    assert main([*command, "--report", str(tmp_path / "report"), "--trace", str(tmp_path / "lanes.json.gz")]) == 0
    assert "report: " in capsys.readouterr().out
    page = (tmp_path / "report" / "replay.html").read_text()
    for words in ("never measured", "usb3", "spots_edgetpu.tflite", "host to device"):
        assert words in page
    events = json.loads((tmp_path / "report" / "trace.json").read_text())["traceEvents"]
    assert any(event.get("name", "").startswith("request 1 inference: output grid") for event in events)
    assert json.loads(gzip.decompress((tmp_path / "lanes.json.gz").read_bytes()))["traceEvents"] == events
    assert json.loads((tmp_path / "report" / "replay.json").read_text())["hazards"] == []


def test_run_with_a_reference_computes(folder, edges, tmp_path, capsys):
    image = np.random.default_rng(2).integers(0, 256, (1, 16, 16, 3)).astype(np.uint8)
    np.save(tmp_path / "image.npy", image)
    given = ["--input", f"image={tmp_path / 'image.npy'}", "-o", str(tmp_path / "out")]
    reference = str(folder / "edges.tflite")
    assert main(["darwinn", "run", edges, "--reference", reference, *given]) == 0
    file = tmp_path / "out" / "scores.npy"
    assert f"computed by the reference, not by a device: {file}\n" in capsys.readouterr().out
    assert np.array_equal(np.load(tmp_path / "out" / "scores.npy"), Twin(reference).run({"image": image})["scores"])
    assert main(["darwinn", "run", edges, *given]) == 2
    assert "--reference" in capsys.readouterr().err
    assert main(["darwinn", "run", edges, "--reference", reference, "--input", "image"]) == 2
    assert main(["darwinn", "run", edges, "--reference", reference, "--input", f"image={edges}"]) == 2


@pytest.mark.parametrize("requests", ["5", "a", "-1"])
def test_requests_that_are_none_are_refused(edges, requests, capsys):
    assert main(["darwinn", "run", edges, f"--requests={requests}"]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("verb", ["inspect", "link", "extract", "relayout", "verify", "run"])
def test_what_is_no_package_ends_with_a_message(verb, tmp_path, capsys):
    path = tmp_path / "noise.tflite"
    path.write_bytes(b"noise" * 30)
    more = {
        "link": ["-o", "x"],
        "extract": ["-o", "x"],
        "relayout": ["--layer", "a", "--in", "b", "-o", "c"],
        "verify": ["--source", str(path)],
    }
    assert main(["darwinn", verb, str(path), *more.get(verb, [])]) == 2
    assert "error[D011]" in capsys.readouterr().err


def test_help_begins_with_an_example(capsys):
    for words in (["darwinn"], ["darwinn", "inspect"], ["darwinn", "run"], ["darwinn", "check"]):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        assert capsys.readouterr().out.startswith("example: buda-emu darwinn")


def test_example_writes_two_packages_and_their_models(tmp_path, capsys):
    assert main(["darwinn", "example", "-o", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(example_files())
    assert "edges_edgetpu.tflite" in capsys.readouterr().out


def test_inspect_and_check_load_no_numpy(edges, child_environment):
    script = (
        "import sys; from buda_emu.app.cli.main import main; "
        f"codes = [main([*words, {edges!r}]) for words in (['darwinn', 'check'], ['darwinn', 'inspect'], ['check'])]; "
        "assert codes == [0, 0, 0]; print(sorted({'numpy', 'numba', 'flatbuffers', 'yaml'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_names_from_strangers_do_not_reach_the_terminal_as_they_are(tmp_path, capsys):
    odd = tree(EXAMPLES[0])
    main_executable = odd["executables"][0]
    main_executable["output_layers"][0] |= {"name": "gr\x1b[2Jid", "numerics": None}
    main_executable["chip"] = "\x1b]0;owned\x07"
    odd |= {"compiler_version": "\x1b[31m", "model_identifier": "\x07"}
    path = tmp_path / "odd.dwn"
    path.write_bytes(build(odd))
    main(["darwinn", "inspect", str(path)])
    main(["darwinn", "check", str(path)])
    main(["check", str(path)])
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "gr\\x1b[2Jid" in text
    assert not any(ord(character) < 32 and character != "\n" for character in text)


def test_a_package_for_several_chips_is_shown(tmp_path, capsys):
    parts = [{"serialized_package": build(tree(item))} for item in EXAMPLES]
    path = tmp_path / "chips.dwn"
    path.write_bytes(build({"virtual_chip_id": -1, "min_runtime_version": 13, "multi_chip_package": parts}))
    assert main(["darwinn", "inspect", str(path)]) == 0
    text = capsys.readouterr().out
    assert "2 packages for single chips" in text
    assert "rejected" in text
    assert main(["darwinn", "run", str(path)]) == 2
    assert "several chips" in capsys.readouterr().err
