"""Archives made to do harm: each is refused with the rule it breaks, and nothing is written anywhere."""

import io
import json
import os
import struct
import tarfile
import zipfile

import pytest

import buda_emu as be
from buda_emu.emulator.image.archive import _MOST_EXTENSIONS, Limits, checked_name, open_archive, tar_members
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.rules import RULES, ImageError, Place
from small_images import TOP, bin_entry, good, members, parts, tar_bytes, values, write, zip_bytes


def refused(tmp_path, data, rule, says="", **options):
    """The message of an image that is refused by load and by check, alike."""
    place = tmp_path / "evil"
    place.mkdir()
    path = write(place / "evil.tti", data)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ImageError) as caught:
        be.load_image(path, **options)
    error = caught.value
    assert error.rule == rule, str(error)
    assert says in str(error)
    assert str(error).startswith(str(path))
    assert RULES[rule].summary in str(error)
    assert RULES[rule].fix in str(error)
    assert str(error).isprintable()
    found = check_image(path, **{key: value for key, value in options.items() if key == "limits"})
    assert not found.ok
    assert rule in {item.rule for item in found.diagnostics if item.severity == "error"}
    assert sorted(tmp_path.rglob("*")) == before
    return error


def with_member(name, data=b"x"):
    return {**good(), name: data}


NAMES = [
    "/etc/passwd", "../evil", f"{TOP}/../evil", f"{TOP}/a/../../../evil", "C:/evil", "c:evil", "C:\\evil",
    f"{TOP}\\evil", f"{TOP}/..\\evil", f"{TOP}//evil", f"{TOP}/./evil", "evil", "other/evil", TOP, f"{TOP}/evil.",
    f"{TOP}/.. /evil", f"{TOP}/evil\n", f"{TOP}/{'a' * 256}", f"{TOP}/{'a/' * 600}x", "//evil/share",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes], ids=["tar", "zip"])
def test_names_that_lead_elsewhere(pack, name, tmp_path):
    error = refused(tmp_path, pack(with_member(name)), "image-path")
    assert error.member == name


def test_a_name_with_nul_in_an_extension_header(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"path": f"{TOP}/evil\0.txt"}
        archive.addfile(info)
    refused(tmp_path, stream.getvalue(), "image-path", "control characters")


def test_a_name_with_nul_in_a_zip(tmp_path):
    data = zip_bytes(with_member(f"{TOP}/evilX.txt")).replace(b"evilX.txt", b"evil\0.txt")
    refused(tmp_path, data, "image-path", "control characters")


def test_a_name_that_is_not_utf8(tmp_path):
    data = tar_bytes(with_member(f"{TOP}/evil\udcff"), lambda info: info)
    refused(tmp_path, data, "image-path", "not UTF-8")


@pytest.mark.parametrize(
    ("kind", "says"),
    [(tarfile.SYMTYPE, "a symbolic link"), (tarfile.LNKTYPE, "a hard link"), (tarfile.CHRTYPE, "a character device"),
     (tarfile.BLKTYPE, "a block device"), (tarfile.FIFOTYPE, "a pipe"), (tarfile.GNUTYPE_SPARSE, "a sparse file"),
     (tarfile.CONTTYPE, "of type 7"), (b"M", "of type M"), (b"Z", "of type Z"), (b"\xff", "of type")],
)  # fmt: skip
def test_members_that_are_no_files(kind, says, tmp_path):
    def spoil(info):
        if info.name == f"{TOP}/module_files/m.py":
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0
        return info

    contents = {**good(), f"{TOP}/module_files/m.py": b""}
    refused(tmp_path, tar_bytes(contents, spoil), "image-kind", f"it is {says}")


def test_a_link_with_a_long_name(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo(f"{TOP}/link")
        info.type, info.linkname = tarfile.SYMTYPE, "../" * 60
        archive.addfile(info)
    refused(tmp_path, stream.getvalue(), "image-kind")


def test_a_sparse_file_of_pax(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(f"{TOP}/sparse")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 50)}
        archive.addfile(info)
    refused(tmp_path, stream.getvalue(), "image-kind", "a sparse file")


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o060666, 0o010666, 0o140666, 0o040755])
def test_members_of_a_zip_that_are_no_files(mode, tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo(f"{TOP}/device.json")
        info.create_system, info.external_attr = 3, mode << 16
        archive.writestr(info, "/etc/passwd")
    refused(tmp_path, stream.getvalue(), "image-kind")


def test_an_encrypted_member(tmp_path):
    data = bytearray(zip_bytes({f"{TOP}/device.json": b"{}"}))
    directory = data.rindex(b"PK\1\2")
    data[6] |= 1
    data[directory + 8] |= 1
    refused(tmp_path, bytes(data), "image-kind", "encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing(method, tmp_path):
    refused(tmp_path, zip_bytes(good(), method), "image-kind", "packed in another way")


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of zipfile, which writes it all the same
@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes], ids=["tar", "zip"])
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a", "a"),
        ("a", "A"),
        ("straße", "STRASSE"),
        ("é", "e\u0301"),
        ("ﬁ", "fi"),
        ("a", "a/b"),
        ("a/b", "A/c"),
        ("a", "./a"),
    ],
)
def test_members_that_would_be_one_file(name, other, pack, tmp_path):
    prefix = "./" if other.startswith("./") else ""
    again = f"{prefix}{TOP}/{other.removeprefix('./')}", b"y"
    refused(tmp_path, pack([*with_member(f"{TOP}/{name}").items(), again]), "image-twice")


@pytest.mark.parametrize("name", ["inner.tti", "a/b.tar", "x.tar.gz", "X.ZIP", "y.7z", "w.npz.xz"])
def test_archives_inside_of_an_image(name, tmp_path):
    refused(tmp_path, tar_bytes(with_member(f"{TOP}/{name}")), "image-nested")


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08\0", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf"])
def test_packed_archives(magic, tmp_path):
    refused(tmp_path, magic + bytes(600), "image-archive", "it is packed with")


# ------------------------------------------------------------------------------------------------- bombs and sizes
@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes], ids=["tar", "zip"])
def test_too_many_members(pack, tmp_path):
    contents = {**good(), **{f"{TOP}/{number}": b"" for number in range(40)}}
    refused(tmp_path, pack(contents), "image-size", "over 30 members", limits=Limits(members=30))


def test_more_bytes_than_allowed(tmp_path):
    refused(tmp_path, tar_bytes(good()), "image-size", "over 9000 bytes", limits=Limits(total_bytes=9000))


def test_a_zip_that_unpacks_to_too_much(tmp_path):
    data = zip_bytes(with_member(f"{TOP}/zeros", bytes(8 << 20)), zipfile.ZIP_DEFLATED)
    refused(tmp_path, data, "image-size", "more than 100 times", limits=Limits(ratio_from=1 << 20))


@pytest.mark.parametrize(("length", "good"), [(1024, True), (1025, False)])
def test_the_longest_name(length, good):
    folders = f"{TOP}/" + "/".join(["x" * 200] * 4)
    name = f"{folders}/{'y' * (length - len(folders) - 1)}"
    if good:
        assert checked_name(name, False, Place("a.tti")) == name
        return
    with pytest.raises(ImageError, match="over 1024 characters"):
        checked_name(name, False, Place("a.tti"))


def test_neither_large_nor_well_packed_archives_are_bombs(tmp_path):
    zeros, noise = bytes(1 << 16), os.urandom(1 << 16)
    for number, (content, limits) in enumerate(
        [
            (noise, Limits(ratio_from=1 << 10, ratio=2)),  # large, and hardly packed
            (zeros, Limits(ratio_from=1 << 20, ratio=2)),  # well packed, and small
        ]
    ):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{TOP}/data", content)
        assert open_archive(path, limits).has(f"{TOP}/data")
    with pytest.raises(ImageError, match="more than 2 times"):
        open_archive(path, Limits(ratio_from=1 << 10, ratio=2))


def test_the_defaults_refuse_a_bomb_of_a_gigabyte(tmp_path):
    """Declared, not real: no gigabyte is ever made."""
    data = bytearray(zip_bytes(with_member(f"{TOP}/zeros", b"x" * 1000), zipfile.ZIP_DEFLATED))
    directory = data.index(b"PK\1\2", data.rindex(b"PK\3\4"))
    for at in [i for i in range(len(data)) if data[i : i + 4] == b"PK\1\2"]:
        if data[at + 46 :].startswith(f"{TOP}/zeros".encode()):
            directory = at
    data[directory + 24 : directory + 28] = struct.pack("<L", 1 << 30)
    refused(tmp_path, bytes(data), "image-size", "more than 100 times")


def test_a_member_that_unpacks_to_more_than_it_states(tmp_path):
    data = bytearray(zip_bytes(good(), zipfile.ZIP_DEFLATED))
    at = data.index(b"PK\1\2")
    (size,) = struct.unpack_from("<L", data, at + 24)
    assert data[at + 46 :].startswith(f"{TOP}/device.json".encode())
    struct.pack_into("<L", data, at + 24, size - 10)
    refused(tmp_path, bytes(data), "image-size", "unpacks to more than")


def test_a_member_that_unpacks_to_less_than_it_states(tmp_path):
    data = bytearray(zip_bytes(good(), zipfile.ZIP_DEFLATED))
    at = data.index(b"PK\1\2")
    struct.pack_into("<L", data, at + 24, struct.unpack_from("<L", data, at + 24)[0] + 10)
    refused(tmp_path, bytes(data), "image-archive", "the archive states")


def test_members_of_a_zip_that_overlap(tmp_path):
    """Many directory entries that share the data of one."""
    data = zip_bytes({f"{TOP}/a": b"x" * 100, f"{TOP}/b": b"x" * 100})
    data = bytearray(data)
    first, second = (i for i in range(len(data)) if data[i : i + 4] == b"PK\1\2")
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    refused(tmp_path, bytes(data), "image-archive")


def test_a_directory_that_says_something_else_than_the_headers(tmp_path):
    data = bytearray(zip_bytes(good()))
    at = data.index(f"{TOP}/module_files/m.py".encode())
    data[at + len(TOP) + 1] ^= 1
    refused(tmp_path, bytes(data), "image-archive")


def test_a_central_directory_of_huge_size(tmp_path):
    refused(tmp_path, zip_bytes(good()), "image-size", "central directory", limits=Limits(directory_bytes=100))


def test_a_json_member_that_is_too_large(tmp_path):
    refused(tmp_path, tar_bytes(good()), "image-size", "the limit is 1000", limits=Limits(json_bytes=1000))


def test_an_extension_header_that_is_too_large(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(f"{TOP}/x")
        info.pax_headers = {"comment": "x" * (2 << 20)}
        archive.addfile(info)
    refused(tmp_path, stream.getvalue(), "image-size", "an extension header has")


@pytest.mark.parametrize("size", [1 << 40, (1 << 62) + 5, -1, -512, -(1 << 60)])
def test_a_tar_header_that_states_another_size(size, tmp_path):
    data = bytearray(tar_bytes(good()))
    field = (size % (1 << 88)).to_bytes(12, "big")
    data[124:136] = (b"\xff" if size < 0 else b"\x80") + field[1:]
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data[:512]):06o}\0 ".encode()
    refused(tmp_path, bytes(data), "image-archive", f"its header states {size} bytes")


@pytest.mark.parametrize(
    "record", [b"8 path=x\n", b"99 path=x\n", b"x path=x\n", b"0 path=\n", b"\xff", b"30 size=-5\n" + bytes(19)]
)
def test_broken_extension_headers(record, tmp_path):
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    data = info.tobuf() + record.ljust(512, b"\0") + tar_bytes(good())
    refused(tmp_path, data, "image-archive")


def extension(data):
    info = tarfile.TarInfo("extension")
    info.type, info.size = tarfile.XHDTYPE, len(data)
    return info.tobuf() + data + bytes(-len(data) % 512)


@pytest.mark.parametrize("over", [0, 1])
def test_as_many_extension_headers_in_front_of_every_member(over):
    headers = extension(b"7 k=v1\n") * (_MOST_EXTENSIONS + over)
    empty = tarfile.TarInfo(f"{TOP}/a").tobuf()
    data = headers[: len(headers) - over * len(extension(b"7 k=v1\n"))] + empty + headers + empty + bytes(1024)
    found = tar_members(io.BytesIO(data), len(data), Place("a.tti"), Limits())
    assert next(found).size == 0
    if over:
        with pytest.raises(ImageError, match="extension headers come before a member"):
            next(found)
    else:
        assert len([*found]) == 1


def test_many_records_in_an_extension_header(tmp_path):
    """Each copied all that follows it: quadratic time."""
    refused(tmp_path, extension(b"7 k=v1\n" * 149_000) + tar_bytes(good()), "image-size", "has over 256 records")


def test_many_extension_headers_in_front_of_a_member(tmp_path):
    data = extension(b"12 comment=\n") * 9
    refused(tmp_path, data + tar_bytes(good()), "image-size", "over 8 extension headers come before a member")


@pytest.mark.parametrize("stated", ["-1", "1e3", "9" * 30, "", "٣"])
def test_a_size_in_an_extension_header_that_is_none(stated, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(f"{TOP}/x")
        info.pax_headers = {"size": stated}
        archive.addfile(info)
    refused(tmp_path, stream.getvalue(), "image-archive", "its extension header states")


def test_a_global_header_that_renames_members(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", pax_headers={"path": f"{TOP}/device.json"}) as archive:
        archive.addfile(tarfile.TarInfo("x"))
    refused(tmp_path, stream.getvalue(), "image-archive", "a global extension header")


# ---------------------------------------------------------------------------------------------- damage and disguise
@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes], ids=["tar", "zip"])
def test_archives_cut_anywhere(pack, tmp_path):
    data = pack(good())
    end = len(data.rstrip(b"\0")) if pack is tar_bytes else len(data)
    end = -(-end // 512) * 512 if pack is tar_bytes else end  # of the last member; then comes the end mark
    for number, cut in enumerate(sorted({0, 1, 3, 4, 100, 511, 512, 513, *range(600, end, 1500), end - 1})):
        place = tmp_path / str(number)
        place.mkdir()
        rule = "image-archive"
        refused(place, data[:cut], rule)
    if pack is tar_bytes:
        (tmp_path / "end").mkdir()
        refused(tmp_path / "end", data[:end], "image-archive", "without an end mark")


def test_data_behind_the_end(tmp_path):
    refused(tmp_path, tar_bytes(good()) + tar_bytes({f"{TOP}/hidden": b"x"}), "image-archive", "after the end mark")


def test_a_zip_behind_something_else(tmp_path):
    refused(tmp_path, b"PK\3\4" + bytes(60) + zip_bytes(good()), "image-archive")


def test_an_empty_archive(tmp_path):
    refused(tmp_path, bytes(1024), "image-member", "the archive is empty")


@pytest.mark.parametrize(
    "data", [b"", b"devices: {arch: grayskull}\n", b"\x7fELF" + bytes(2000), os.urandom(4096) + b"\1"]
)
def test_files_that_are_no_archives(data, tmp_path):
    refused(tmp_path, data, "image-archive")


def test_things_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.tti")
    for path in (tmp_path, tmp_path / "pipe.tti", "nul\0.tti"):
        with pytest.raises(ImageError, match="it is not a file"):
            be.load_image(path)
        assert not check_image(path).ok
    with pytest.raises(FileNotFoundError):
        be.load_image(tmp_path / "none.tti")
    assert [item.message for item in check_image(tmp_path / "none.tti").diagnostics] == ["No such file or directory"]


def test_a_flipped_bit_in_a_zip(tmp_path):
    data = bytearray(zip_bytes(good()))
    at = data.index(b'"version"')
    data[at + 1] ^= 0x20
    refused(tmp_path, bytes(data), "image-archive", "its checksum is wrong")


# ------------------------------------------------------------------------------------------------------------- JSON
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not strict JSON"), (b"{", "not strict JSON"), (b"[]", "not an object"), (b"null", "not an object"),
        (b'{"a": NaN}', "NaN is not a number"), (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "too large"), (b'{"a": 18446744073709551616}', "more than 64 bits"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "more than 64 bits"), (b'{"a": 1, "a": 2}', "key 'a' occurs twice"),
        (b"[" * 100_000, "nested deeper"), (b'{"a":' * 100_000, "nested deeper"),
        (b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}", "nested deeper"), (b'{"a": "\xff"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not strict JSON"), (b"\xff\xfe{\0}\0", "not UTF-8"), (b"{}\0", "not strict JSON"),
    ],
    ids=lambda value: str(value[:20]),
)  # fmt: skip
@pytest.mark.parametrize("member", ["device.json", "compile_and_runtime_config.json"])
def test_bad_json(member, text, says, tmp_path):
    error = refused(tmp_path, tar_bytes(with_member(f"{TOP}/{member}", text)), "image-json", says)
    assert error.member == f"{TOP}/{member}"


def spoilt(path, value):
    """A good image with one value of device.json replaced; `path` leads to it."""
    content, files = parts()
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return tar_bytes(members(content, files))


STATE = "compiled_graph_state"
CONSTANT = (STATE, "post_const_eval_constants", "c")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("arch",), "Tenstorrent"), (("arch",), 3), (("arch",), {"__enum__": 3}), (("arch",), None),
        (("arch",), {"__enum__": "A.Wormhole_B0", "x": 1}), (("chip_ids",), ["a"]), (("chip_ids",), [-1]),
        (("fp32_fallback",), "Float17"), (("training",), 1), (("microbatch_size",), 0), (("microbatch_count",), True),
        (("microbatch_count",), 1 << 40), (("microbatch_count",), 1.0), (("grid_size",), [8]), (("grid_size",), [0, 8]),
        (("optimizer",), ["x"]), ((STATE,), []), ((STATE, "netlist_filename"), ""), ((STATE, "netlist_filename"), ".."),
        ((STATE, "netlist_filename"), 5), ((STATE, "ordered_input_names"), "x"),
        ((STATE, "ordered_input_names"), [["x"]]),
        ((STATE, "ordered_intermediate_activation_names"), [["x"]]), ((STATE, "ordered_input_shapes"), [[0]]),
        ((STATE, "ordered_input_runtime_tensor_transforms"), [{"type": "Explode"}]),
        ((STATE, "ordered_input_runtime_tensor_transforms"), [{}]),
        ((STATE, "ordered_input_runtime_tensor_transforms"), [{"type": "Unpad", "unpadded_shape": {"dims_": [-1]}}]),
        ((STATE, "ordered_input_runtime_tensor_transforms"), [{"type": "NoTransform"}] * 2),
        ((STATE, "output_host_tms"), {"out": {"hstack_factor": 0}}), ((STATE, "post_const_eval_constants"), []),
        ((STATE, "ordered_output_data_formats"), ["Float99"]), (("module_name_to_metadata",), {"m": 1}),
        (CONSTANT, 5), (CONSTANT, {}), (CONSTANT, None), (CONSTANT, "weights.npy"), ((*CONSTANT, "bin"), "x.exe"),
        ((*CONSTANT, "itemsize"), 0), ((*CONSTANT, "dim"), 5), ((*CONSTANT, "dim"), 0), ((*CONSTANT, "format"), "F32"),
        ((*CONSTANT, "shape"), [1, 32, 32]), ((*CONSTANT, "shape"), [2, 1, -32, -32]),
        ((*CONSTANT, "shape"), "2x1x32x32"),
        ((*CONSTANT, "strides"), [4096, 4096, 128, -4]), ((*CONSTANT, "strides"), [1 << 63, 1, 1, 1]),
        ((*CONSTANT, "bin"), "tensors/torch.Tensor.c.tbin"),
    ],
    ids=str,
)  # fmt: skip
def test_fields_of_the_wrong_type(path, value, tmp_path):
    error = refused(tmp_path, spoilt(path, value), "image-field")
    assert error.member == f"{TOP}/device.json"
    assert path[-1] in str(error)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*CONSTANT, "shape"), [2, 1, 32, 33]), ((*CONSTANT, "shape"), [1, 1, 32, 32]), ((*CONSTANT, "dim"), 3),
        ((*CONSTANT, "shape"), [(1 << 31) - 1] * 4), ((*CONSTANT, "itemsize"), 2), ((*CONSTANT, "format"), "Float16"),
        ((*CONSTANT, "format"), "Bfp8_b"), ((*CONSTANT, "strides"), [0, 0, 0, 0]),
        ((*CONSTANT, "strides"), [1 << 61, 4096, 128, 4]),
    ],
    ids=str,
)  # fmt: skip
def test_tensors_that_are_not_what_they_say(path, value, tmp_path):
    refused(tmp_path, spoilt(path, value), "image-tensor", "tensor c")


@pytest.mark.parametrize("extra", [-4096, -1, 1, 4096])
def test_tensor_files_of_another_size(extra, tmp_path):
    content, files = parts()
    name = f"{TOP}/tensors/torch.Tensor.c.bin"
    files[name] = files[name][:extra] if extra < 0 else files[name] + bytes(extra)
    error = refused(tmp_path, tar_bytes(members(content, files)), "image-tensor", "tensor c takes 8192 bytes")
    assert error.member == name


@pytest.mark.parametrize(
    "file",
    ["/etc/passwd.bin", "../../etc/passwd.bin", "tensors/../../x.bin", "tensors\\x.bin", "tensors//x.bin", "x\0.bin"],
)
def test_tensor_files_outside_of_the_image(file, tmp_path):
    refused(tmp_path, spoilt((*CONSTANT, "bin"), file), "image-path")


def test_configuration_that_is_not_flat(tmp_path):
    data = tar_bytes(with_member(f"{TOP}/compile_and_runtime_config.json", json.dumps({"A": {"B": 1}}).encode()))
    refused(tmp_path, data, "image-field")


def test_a_pickle_in_the_place_of_a_tensor(tmp_path):
    path = write(tmp_path / "evil.tti", spoilt(CONSTANT, "tensors/torch.Tensor.c.pkl"))
    with pytest.raises(ImageError) as caught:
        be.load_image(path)
    assert caught.value.rule == "image-pickle"
    for text in ("can run any code", "do you know who made this file?", "--allow-pickle"):
        assert text in str(caught.value)


def test_many_tensors_that_share_one_file_are_no_harm(tmp_path):
    """Nothing is read at load, and each read is bounded by the file."""
    entry, files = bin_entry("c", values((2, 1, 32, 32)))
    content, rest = parts(
        c=(entry, files), w=({**bin_entry("w", values())[0], "bin": entry["bin"], "shape": [2, 1, 32, 32]}, {})
    )
    image = be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, rest))))
    assert image.tensor("w").shape == (2, 1, 32, 32)
