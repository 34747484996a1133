"""Tensors of an image stay in its file where memory is short: the same results in every precision."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.emulator.image.rules import ImageError
from buda_emu.netlist.load import check_text
from buda_emu.support.files import FileState
from small_images import TOP, netlist_text, values, write
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

WIDE = 40  # tiles: w has 6.25 MiB as float32


def source(df="Float16_b", more=""):
    """out = a w, with a w of several MiB on a grid of 2 x 2."""
    held = queue("w", kind="ram", entries=1, df=df, mblock=(5, 2), ublock=(4, WIDE // 4), more=more)
    buffers = ", ".join(f"[{channel}, 0x20000000]" for channel in range(4))
    held = re.sub(r"dram: \[\[.*?\]\]", f"dram: [{buffers}]", held.replace("[1, 1], t", "[2, 2], t"))
    row = {"df": df, "mblock": (1, WIDE // 8), "ublock": (1, 8)}
    product = op("p", "matmul", ["a", "w"], more=f", attributes: {{m_k: {WIDE}, u_kt: 1}}", **row)
    return text(
        [queue("a", entries=2, **row), held, queue("out", "p", entries=2, **row)],
        [graph("g", product)],
        [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), ram_settings("w")))],
    )


def packed(source, tensors, form="BACKEND", container="tar"):
    stream = io.BytesIO()
    netlist = check_text(source, "net.yaml").netlist
    write_image(stream, Contents(netlist, source.encode(), tensors, "small", "9.9", form), container)
    return stream.getvalue()


W = values((1, 1, 32 * WIDE, 32 * WIDE), 3) / 64
A = values((1, 1, 32, 32 * WIDE), 5) / 64
LITTLE = 12 << 20  # a quarter of it has no room for w


def ran(image, precision, limit=None):
    with image.emulator(precision, 1, memory_limit=limit) as emulator:
        taken = emulator.memory.queues
        emulator.push("a", A)
        emulator.run("run")
        return emulator.pop("out"), taken


@pytest.mark.parametrize("form", ["BACKEND", "BACKEND_TILIZED"])
@pytest.mark.parametrize("df", ["Bfp8_b", "Float16_b", "Float16"])
@pytest.mark.parametrize("precision", ["ideal", "format", "device"])
def test_the_same_results_from_the_file(tmp_path, precision, df, form):
    path = write(tmp_path / "w.tti", packed(source(df), {"w": W}, form))
    image = be.load_image(path)
    assert image.lent_queues == {"w"}
    (held,) = image.initial_tensors()
    assert isinstance(held.array, Referenced)
    assert np.array_equal(held.array, image.tensor("w"))
    limit = LITTLE if precision != "device" else 6_920_000  # w has 1.66 MiB in Bfp8_b
    (found, none), (expected, taken) = ran(image, precision, limit), ran(image, precision)
    assert np.array_equal(found, expected)
    assert none == 0
    assert taken > 1 << 20


def test_every_box_of_a_mapped_tensor(tmp_path):
    path = write(tmp_path / "w.tti", packed(source("Bfp8_b", ", ublock_order: c"), {"w": W}, "BACKEND_TILIZED"))
    image = be.load_image(path)
    (held,), whole = image.initial_tensors(), image.tensor("w")
    for top, bottom, left, right in ((0, 32, 0, 1280), (5, 70, 31, 33), (640, 641, 9, 700)):
        box = (slice(0, 1), slice(0, 1), slice(top, bottom), slice(left, right))
        assert np.array_equal(held.array.read(box), whole[box])


def test_packed_and_little_tensors_are_read(tmp_path):
    for container in ("tar", "zip"):
        small = be.load_image(write(tmp_path / "s.tti", packed(netlist_text(), {"w": values((1, 1, 32, 32))})))
        assert small.lent_queues == frozenset()
        image = be.load_image(write(tmp_path / "w.tti", packed(source(), {"w": W}, "BACKEND", container)))
        assert image.lent_queues == ({"w"} if container == "tar" else frozenset())


def test_a_tile_with_a_wrong_header_is_refused_when_it_is_read(tmp_path):
    data = bytearray(packed(source("Bfp8_b"), {"w": W}, "BACKEND_TILIZED"))
    image = be.load_image(write(tmp_path / "w.tti", bytes(data)))
    start = image._archive.members[f"{TOP}/tensors/torch.Tensor.w.tbin"].offset
    data[start + 1120 * 7] ^= 1
    image = be.load_image(write(tmp_path / "w.tti", bytes(data)))
    with pytest.raises(be.DocumentError, match="image-tensor"):
        ran(image, "ideal", LITTLE)


def test_the_command_says_what_it_needs_and_then_needs_no_more(tmp_path):
    path = write(tmp_path / "w.tti", packed(source("Bfp8_b"), {"w": W}, "BACKEND_TILIZED"))
    done = [
        subprocess.run(
            [sys.executable, "-m", "buda_emu", "run", path, "--memory-limit", limit, "--precision", "ideal"],
            capture_output=True,
            text=True,
            check=False,
        )
        for limit in ("4M", "8M")
    ]
    assert done[0].returncode == 3
    assert "parameters in the image's file" in done[0].stderr
    assert done[1].returncode == 0, done[1].stderr


@pytest.mark.parametrize("form", ["BACKEND", "BACKEND_TILIZED"])
@pytest.mark.parametrize("set_back", [False, True])
def test_an_image_that_is_overwritten_between_two_runs(tmp_path, form, set_back):
    path = write(tmp_path / "w.tti", packed(source(), {"w": W}, form))
    before = path.stat()
    with be.load_image(path).emulator("format", 1, memory_limit=LITTLE) as emulator:
        emulator.push("a", A)
        emulator.run("run")
        with path.open("r+b") as stream:
            stream.seek(before.st_size // 2)
            stream.write(bytes(64))
        if set_back:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        emulator.push("a", A)
        with pytest.raises(ImageError, match=r"it was written to.*\[image-changed: .*load it again"):
            emulator.run("run")


@pytest.mark.parametrize("form", ["BACKEND", "BACKEND_TILIZED"])
def test_an_image_that_is_overwritten_while_a_box_is_decoded(tmp_path, monkeypatch, form):
    path = write(tmp_path / "w.tti", packed(source(), {"w": W}, form))
    (held,) = be.load_image(path).initial_tensors()
    states = [FileState.of(path)]
    monkeypatch.setattr(FileState, "of", lambda _: states.pop() if states else FileState(0, 0, 0, 0, 0))
    with pytest.raises(ImageError, match=r"another file has its name.*\[image-changed"):
        held.array.read((slice(0, 1), slice(0, 1), slice(0, 32), slice(0, 32)))
