"""Thousands of damaged images: each loads and gives its tensors, or is refused with a documented error."""

import copy
import io
import json
import random
import re
import tarfile
import time
import zipfile

import pytest

import buda_emu as be
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import HostError, NetlistError, UnsupportedError
from small_images import TOP, good, netlist_text, tar_bytes, values, zip_bytes

QUICK, MANY = 400, 10_000
SLOWEST = 5.0  # seconds that one image may take, on any machine
ODD = [
    None, True, False, 0, -1, 1, 2, 3, 31, 4096, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 1e308, 0.5, "", "x", "c", "w",
    "out", "../x", "/x", "tensors/a.pkl", "\0", "\ud800", "é", "Float32", "Bfp8_b", "RawUInt32", "Unpad", [], {}, [[]],
    [1, 1, 32, 32], [2, 1, 32, 32], [0, 0, 0, 0], {"dims_": [1]}, {"__enum__": "A.Grayskull"}, {"bin": "x.bin"},
]  # fmt: skip
JSON_PATH = f"{TOP}/device.json"


def tilized():
    """The members of an image with tiles, made by the package."""
    source = netlist_text("Bfp8_b", t=2, mblock=(2, 1))
    netlist = check_text(source, "net.yaml").netlist
    tensors = {"c": values((2, 2, 64, 32), 2), "w": values((1, 2, 64, 32), 3)}
    stream = io.BytesIO()
    write_image(stream, Contents(netlist, source.encode(), tensors, "t", "0", "BACKEND_TILIZED"))
    with tarfile.open(fileobj=io.BytesIO(stream.getvalue())) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}


BASES = [good(), tilized()]


def archive(stream, contents):
    """One of the containers."""
    kind = stream.randrange(3)
    return tar_bytes(contents) if kind == 0 else zip_bytes(contents, zipfile.ZIP_STORED if kind == 1 else 8)


def flipped(stream, contents):
    """Bytes changed, half of them in headers and JSON."""
    data = bytearray(archive(stream, contents))
    for _ in range(stream.choice([1, 1, 2, 8, 64])):
        at = stream.randrange(len(data))
        at = at // 512 * 512 + stream.randrange(160) if stream.random() < 0.5 else at
        data[min(at, len(data) - 1)] ^= 1 << stream.randrange(8)
    return bytes(data)


def cut(stream, contents):
    """Bytes taken out, doubled or put in."""
    data = archive(stream, contents)
    a, b = sorted(stream.randrange(len(data) + 1) for _ in range(2))
    pieces = [data[:a], data[:a] + data[b:], data[:b] + data[a:], data[:a] + stream.randbytes(b % 999) + data[a:]]
    return stream.choice(pieces)


def header(stream, contents):
    """A field of a tar header changed, and its checksum made right; or one of a zip's directory."""
    if stream.random() < 0.5:
        data = bytearray(zip_bytes(contents, stream.choice([zipfile.ZIP_STORED, 8])))
        marks = [found.start() for found in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06)", data[:-43])]
        at = stream.choice(marks) + stream.randrange(4, 46)
        value = stream.choice([0, 1, 0xFF, 0x7F, stream.randrange(256)])
        data[at : at + stream.choice([1, 2, 4])] = bytes([value]) * min(4, len(data) - at)
        return bytes(data)
    data = bytearray(tar_bytes(contents))
    marks = [at for at in range(0, len(data) - 512, 512) if data[at + 257 : at + 262] == b"ustar"]
    at = stream.choice(marks)
    first, last = stream.choice(
        [(0, 100), (100, 108), (124, 136), (136, 148), (156, 157), (157, 257), (257, 265), (345, 500)]
    )
    if stream.random() < 0.5:
        size = last - first
        data[at + first : at + last] = stream.choice(
            [
                b"\xff" * size,
                b"\0" * size,
                (b"\x80" + b"\x7f" * size)[:size],
                b"7" * size,
                stream.randbytes(size),
                stream.choice(b"123456789LKxgSVMD").to_bytes(1, "big") * size,
            ]
        )
    else:
        data[at + stream.randrange(first, last)] = stream.randrange(256)
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = f"{sum(data[at : at + 512]):06o}\0 ".encode()
    return bytes(data)


def shuffled(stream, contents):
    """Members in another order, dropped, renamed, doubled, or with each other's bytes."""
    pairs = list(contents.items())
    for _ in range(stream.choice([1, 1, 2, 3])):
        at, other = stream.randrange(len(pairs)), stream.randrange(len(pairs))
        name, data = pairs[at]
        action = stream.choice(["order", "drop", "name", "double", "bytes", "cut"])
        if action == "order":
            stream.shuffle(pairs)
        elif action == "drop" and len(pairs) > 1:
            del pairs[at]
        elif action == "name":
            odd = [
                "../x",
                "/x",
                TOP,
                name.upper(),
                f"{name}/x",
                f"./{name}",
                name + "\n",
                "x",
                name[:-1],
                f"{TOP}/x.zip",
            ]
            pairs[at] = stream.choice(odd), data
        elif action == "double":
            pairs.append((name, data))
        elif action == "bytes":
            pairs[at] = name, pairs[other][1]
        else:
            pairs[at] = name, data[: stream.randrange(len(data) + 1)]
    return archive(stream, pairs)


def nodes(value, path=()):
    """Paths of all values of a JSON."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from nodes(item, (*path, key))


def rewritten(stream, contents):
    """Values of device.json dropped, replaced, renamed, wrapped or exchanged."""
    value = json.loads(contents[JSON_PATH])
    for _ in range(stream.choice([1, 1, 1, 2, 4])):
        path = stream.choice([path for path in nodes(value) if path])
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        key, action = path[-1], stream.choice(["drop", "odd", "odd", "odd", "rename", "wrap", "number"])
        if action == "drop":
            del parent[key]
        elif action == "odd":
            parent[key] = copy.deepcopy(stream.choice(ODD))
        elif action == "rename" and isinstance(parent, dict):
            parent[stream.choice(["c", "w", "x", "out", "bin", "", "\0", "__enum__"])] = parent.pop(key)
        elif action == "number" and isinstance(parent[key], int):
            parent[key] = parent[key] * stream.choice([-1, 2, 1 << 20]) + stream.choice([-1, 0, 1])
        else:
            parent[key] = stream.choice([[parent[key]], {"dims_": parent[key]}, [[parent[key]] * 3]])
    text = json.dumps(value).encode()
    if stream.random() < 0.1:
        at = stream.randrange(len(text))
        text = text[:at] + stream.choice([b"NaN", b"\xff", b"[" * 3000, b"9" * 500, b"\\ud800", b"}", b'"']) + text[at:]
    return archive(stream, {**contents, JSON_PATH: text})


pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")  # of zipfile, which writes it all the same
KINDS = (flipped, cut, header, shuffled, rewritten, rewritten)


def outcome(path):
    """The documented error that an image ends in, None where its tensors are all read and pushed."""
    try:
        image = be.load_image(path)
        for name in image.tensors:
            image.tensor(name)
        with image.emulator(threads=1) as emulator:
            assert emulator.netlist is image.netlist
        for name in image.metadata.compiled_graph_state.ordered_input_names:
            queue = image.netlist.queues[name]
            image.host_input(name, values((1, *queue.blocking.element_shape)))
        image.check_outputs()
    except (HostError, NetlistError, UnsupportedError) as error:
        return error
    return None


def run(seeds, tmp_path, record_property):
    path = tmp_path / "m.tti"
    counts = {}
    slowest = 0.0
    for seed in seeds:
        stream = random.Random(seed)
        path.unlink(missing_ok=True)  # a file system may wait for the disk where a file's content is replaced
        path.write_bytes(stream.choice(KINDS)(stream, stream.choice(BASES)))
        start = time.process_time()
        try:
            refused = outcome(path)
            checked = check_image(path)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        found = type(refused).__name__ if refused else "loaded"
        assert refused is None or str(refused).strip()
        slowest = max(slowest, time.process_time() - start)
        assert checked.ok or any(item.severity == "error" for item in checked.diagnostics), seed
        assert checked.ok or found != "loaded", f"seed {seed}: check refuses what load takes"
        counts[found] = counts.get(found, 0) + 1
        assert [entry.name for entry in tmp_path.iterdir()] == ["m.tti"], f"seed {seed}"
    record_property("outcomes", json.dumps(counts))
    print(f"{sum(counts.values())} images: {counts}, slowest {slowest:.3f} s")
    assert slowest < SLOWEST
    return counts


def test_damaged_images(tmp_path, record_property):
    counts = run(range(QUICK), tmp_path, record_property)
    assert min(counts["loaded"], counts["ImageError"]) > QUICK // 20  # both sides are tried


@pytest.mark.slow
def test_ten_thousand_damaged_images(tmp_path, record_property):
    counts = run(range(QUICK, QUICK + MANY), tmp_path, record_property)
    assert sum(counts.values()) == MANY


def test_the_mutations_do_something():
    for base in BASES:
        whole = {tar_bytes(base), zip_bytes(base), zip_bytes(base, 8)}
        for kind in KINDS:
            made = {kind(random.Random(seed), base) for seed in range(8)}
            assert len(made - whole) >= 4, kind.__name__
