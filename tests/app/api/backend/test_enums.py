"""Enums of the host API (NETLIST 7.1)."""

import copy
import pickle

import pytest

from buda_emu.app import backend_api as api
from buda_emu.app.api.backend.enums import format_value, format_word
from buda_emu.spec.formats import FORMATS

VALUES = {
    api.BackendType: {"Model": 0, "Versim": 1, "Silicon": 2, "Golden": 3, "Emulation": 5, "NoBackend": 255},
    api.DeviceMode: {"CompileAndRun": 0, "CompileOnly": 1, "RunOnly": 2},
    api.BackendStatusCode: {"Success": 0, "RuntimeError": 1, "TimeoutError": 2},
    api.BackendCompileFailure: {
        "BriscCompile": 0, "EriscCompile": 1, "NriscCompile": 2, "Net2Pipe": 3, "PipeGen": 4, "BlobGen": 5,
        "L1Size": 6, "OverlaySize": 7, "Invalid": 0xFFFF,
    },
    api.BackendDevice: {  # NETLIST 12
        "Jawbridge": 0, "Grayskull": 1, "Wormhole": 2, "Wormhole_B0": 3, "Blackhole": 4, "Invalid": 255,
    },
    api.DataFormat: {
        "Float32": 0, "Float16": 1, "Bfp8": 2, "Bfp4": 3, "Float16_b": 5, "Bfp8_b": 6, "Bfp4_b": 7, "Int32": 8,
        "UInt16": 9, "Lf8": 10, "Bfp2": 11, "Int8": 14, "Bfp2_b": 15, "RawUInt8": 240, "RawUInt16": 241,
        "RawUInt32": 242, "Invalid": 255,
    },
}  # fmt: skip
NAMES = {
    api.IOType: ("Queue", "RandomAccess", "Invalid"),
    api.IOLayout: ("Tilized", "Flat", "Invalid"),
}
MEMBERS = [getattr(kind, name) for kind, names in (VALUES | NAMES).items() for name in names]


@pytest.mark.parametrize("kind", [*VALUES, *NAMES], ids=lambda kind: kind.__name__)
def test_members(kind):
    assert tuple(kind.__members__) == tuple(VALUES.get(kind, NAMES.get(kind)))
    for name, member in kind.__members__.items():
        assert member is getattr(kind, name)
        assert member.name == name
        assert int(member) == member.value == VALUES.get(kind, {}).get(name, member.value)
        assert kind(member.value) == member
        assert str(member) == f"{kind.__name__}.{name}"
        assert repr(member) == f"<{kind.__name__}.{name}: {member.value}>"


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_a_member_is_a_value(member):
    assert pickle.loads(pickle.dumps(member)) == member
    assert copy.deepcopy(member) == member
    assert hash(member) == hash(pickle.loads(pickle.dumps(member)))
    assert member != member.value
    assert range(1 << 16)[member] == member.value  # it indexes
    assert {member: 1}[type(member)(int(member))] == 1


def test_members_of_different_enums_differ():
    assert api.BackendType.Model != api.DeviceMode.CompileAndRun


def test_a_number_without_a_name_keeps_its_value():
    unnamed = api.DataFormat(30)
    assert (int(unnamed), unnamed.name) == (30, "???")
    assert pickle.loads(pickle.dumps(unnamed)) == unnamed == api.DataFormat(30)
    assert unnamed != api.DataFormat(9)


@pytest.mark.parametrize(
    ("word", "name"),
    [("Golden", "Golden"), ("Silicon", "Silicon"), ("Versim", "Versim"), ("Model", "Model"), ("golden", "NoBackend"),
     ("Emulation", "NoBackend"), ("", "NoBackend"), ("StaticAnalyzer", "???")],
)  # fmt: skip
def test_backend_type_from_string_minds_case(word, name):
    assert api.BackendType.from_string(word).name == name


def test_backend_type_to_json():
    assert [kind.to_json() for kind in (api.BackendType.Golden, api.BackendType.NoBackend)] == ["Golden", "Invalid"]
    for kind in api.BackendType.__members__.values():
        assert api.BackendType.from_json(kind.to_json()) == kind


def test_backend_device_words():
    assert api.BackendDevice.Wormhole_B0.to_string() == "wormhole_b0"
    assert api.BackendDevice.from_string("WORMHOLE_b0") == api.BackendDevice.Wormhole_B0
    with pytest.raises(RuntimeError, match="no architecture 'tpu'; there are Jawbridge, Grayskull"):
        api.BackendDevice.from_string("tpu")
    for device in api.BackendDevice.__members__.values():
        assert device.to_json() == device.name
        assert api.BackendDevice.from_json(device.to_json()) == device
        assert api.BackendDevice.from_string(device.to_string()) == device


def test_names_of_backend_types_in_json():
    assert api.BackendType.from_json("NoBackend") == api.BackendType.NoBackend


@pytest.mark.parametrize("kind", [api.DeviceMode, api.DataFormat, api.BackendDevice, api.BackendType])
def test_json_round_trip(kind):
    for member in kind.__members__.values():
        assert kind.from_json(member.to_json()) == member
    with pytest.raises(IndexError, match="no member 'Nonsense'"):
        kind.from_json("Nonsense")


def test_get_format_from_string():
    for name, spec in FORMATS.items():
        expected = 255 if name == "Fp8_e4m3" else spec.id
        assert int(api.get_format_from_string(name)) == expected
    assert api.get_format_from_string("float32") == api.DataFormat.Invalid
    assert api.get_format_from_string("Tf32").value == 4


def test_formats_of_other_modules_are_understood():
    class Foreign:
        name = "Float16_b"

    assert format_word(Foreign()) == "Float16_b"
    assert format_word(6) == format_word("Bfp8_b") == format_word(api.DataFormat.Bfp8_b) == "Bfp8_b"
    assert format_word(api.DataFormat(30)) == "UInt8"
    assert format_word(None) == format_word(200) == "Invalid"
    assert format_value("nothing") == api.DataFormat.Invalid
