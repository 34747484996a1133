"""Descriptions of devices, and sizes that depend on them (NETLIST 1.9, 2.1, 7.2, 7.3)."""

import pytest
import yaml

from app.api.backend.small import machine
from buda_emu.app import backend_api as api
from buda_emu.app.api.backend.devices import arch_parameters
from buda_emu.support.errors import HostError

ARCHS = ("grayskull", "wormhole_b0", "blackhole")
CLUSTER = {
    "arch": {0: "Wormhole", 1: "Wormhole"},
    "chips": {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]},
    "ethernet_connections": [[{"chip": 0, "chan": 8}, {"chip": 1, "chan": 0}]],
    "chips_with_mmio": [{0: 0}],
    "harvesting": {0: {"noc_translation": True, "harvest_mask": 32}},
}


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(CLUSTER))
    return str(path)


# ------------------------------------------------------------------------------------------------------- detection
def test_there_is_no_hardware(tmp_path):
    assert api.detect_available_silicon_devices() == []
    assert api.detect_available_silicon_devices(only_detect_mmio=False) == []
    assert api.get_device_descs_for_available_devices(str(tmp_path)) == []
    assert api.get_device_cluster_yaml(str(tmp_path)) == ""
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ device descriptors
@pytest.mark.parametrize(
    ("device", "mask", "grid", "name", "size"),
    [
        ("Grayskull", 0, (0, 0), "grayskull_0_0x0", (10, 12)),
        ("Wormhole_B0", 0x20, (0, 0), "wormhole_b0_32_0x0", (9, 8)),
        ("Wormhole_B0", 0, (6, 4), "wormhole_b0_0_6x4", (4, 6)),
        ("Blackhole", 0, (1, 1), "blackhole_0_1x1", (1, 1)),
    ],
)
def test_custom_device(tmp_path, device, mask, grid, name, size):
    """`grid` is (x, y) = (columns, rows); the file's name has the arguments (NETLIST 7.3, 12)."""
    arch = getattr(api.BackendDevice, device)
    desc = api.get_custom_device_desc(arch, mmio=True, harvesting_mask=mask, grid_dim=grid, out_dir=str(tmp_path))
    assert (desc.arch, desc.mmio, desc.harvesting_mask) == (arch, True, mask)
    assert desc.soc_desc_yaml == str(tmp_path / "device_descs" / f"{name}.yaml")
    soc = yaml.safe_load((tmp_path / "device_descs" / f"{name}.yaml").read_text())
    assert len(soc["functional_workers"]) == size[0] * size[1]
    assert api.DeviceConfig(arch.to_string(), desc.soc_desc_yaml).grid_size == api.DeviceGrid(size)


def test_a_file_that_is_there_is_used(tmp_path):
    path = tmp_path / "device_descs" / "grayskull_0_0x0.yaml"
    path.parent.mkdir()
    path.write_text("functional_workers: [1-1, 2-1]\n")
    desc = api.get_custom_device_desc(api.BackendDevice.Grayskull, out_dir=str(tmp_path))
    assert path.read_text() == "functional_workers: [1-1, 2-1]\n"
    assert api.DeviceConfig("grayskull", desc.soc_desc_yaml).grid_size == api.DeviceGrid((1, 2))


def test_custom_device_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="no device table for 'invalid'"):
        api.get_custom_device_desc()
    assert api.get_custom_device_desc(api.BackendDevice.Grayskull).soc_desc_yaml == (
        "tt_build/device_descs/grayskull_0_0x0.yaml"
    )
    assert (tmp_path / "tt_build" / "device_descs" / "grayskull_0_0x0.yaml").exists()


@pytest.mark.parametrize(
    ("device", "mask", "grid", "said"),
    [("Invalid", 0, (0, 0), "no device table"), ("Wormhole_B0", 1, (0, 0), "bit 0 is illegal"),
     ("Grayskull", 0, (12, 11), "a grid of 11x12 is not within 10x12")],
)  # fmt: skip
def test_custom_devices_that_are_refused(tmp_path, device, mask, grid, said):
    with pytest.raises(RuntimeError, match=said):
        api.get_custom_device_desc(getattr(api.BackendDevice, device), False, mask, grid, str(tmp_path))


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "device_descs").write_text("a file")
    with pytest.raises(RuntimeError, match="get_custom_device_desc"):
        api.get_custom_device_desc(api.BackendDevice.Grayskull, out_dir=str(tmp_path))


# ------------------------------------------------------------------------------------------------- configuration
@pytest.mark.parametrize(
    ("arch", "grid", "channels", "capacity", "host"),
    [("grayskull", (10, 12), 8, 1 << 30, 1), ("wormhole_b0", (10, 8), 6, 2 << 30, 4),
     ("blackhole", (10, 14), 8, 4 << 30, 4)],
)  # fmt: skip
def test_config_of_an_architecture(arch, grid, channels, capacity, host):
    config = api.DeviceConfig(arch.upper(), backend_type="silicon")
    assert (config.arch_name, config.arch) == (arch, api.BackendDevice.from_string(arch))
    assert (config.grid_size.r, config.grid_size.c) == grid
    assert (config.device_yaml, config.cluster_config_yaml, config.chip_ids) == ("", "", [0])
    assert config.backend_type == "silicon"
    assert config.get_dram_num_channels() == channels
    assert config.get_dram_channel_capacity() == capacity
    assert config.get_dram_backend_reserved_max() == 256 << 20
    assert config.get_host_memory_num_channels() == host
    assert config.get_host_memory_channel_start_address() == 0
    assert config.get_host_memory_channel_size(0) == (1 << 30) - (128 << 20)
    assert config.get_harvested_cfg() == {0: 0}
    assert config.get_ethernet_connections() == {}
    with pytest.raises(RuntimeError, match=f"host_region_range_size_chan{host}"):
        config.get_host_memory_channel_size(host)


def test_config_of_a_cluster(cluster):
    config = api.DeviceConfig("wormhole_b0", "", cluster)
    assert config.chip_ids == [0, 1]
    assert config.get_harvested_cfg() == {0: 32, 1: 0}
    assert config.get_ethernet_connections() == {0: {8: (1, 0)}, 1: {0: (0, 8)}}
    by_place = api.DeviceConfig("wormhole_b0", "", cluster, "", "golden", False, [(1, 0, 0, 0)])
    assert by_place.chip_ids == [1]
    assert by_place.get_harvested_cfg() == {1: 0}
    assert api.DeviceConfig("wormhole_b0", "", cluster, chip_ids=[1, 0]).get_harvested_cfg() == {1: 0, 0: 32}


# ----------------------------------------------------------------------------------------- files of runtime parameters
def test_parameters_are_stored_and_read(tmp_path, cluster):
    """The sixth argument is a flag; the file is the fourth (NETLIST 12)."""
    path = tmp_path / "out" / "db.yaml"
    api.DeviceConfig("wormhole_b0", "", cluster, str(path), "silicon", True, [0])
    content = yaml.safe_load(path.read_text())
    assert set(content) == {"arch_level_params", "system_level_params", "params_to_ignore"}
    assert content["arch_level_params"] == dict(arch_parameters("wormhole_b0"))
    system = api.load_cached_sys_param(str(path))
    assert system == content["system_level_params"]
    assert system["system-device-chip_locations"] == "0,0,0,0,0,-1,1,0,0,0,-"
    assert system["system-device-ethernet_connections"] == "0,8,1,0,-1,0,0,8,-"
    assert system["system-device-chips_with_mmio"] == "0-"
    assert (system["system-device0-harvesting_mask"], system["system-device0-num_harvested_rows"]) == ("32", "1")
    read = api.DeviceConfig("wormhole_b0", "", "", str(path), "silicon", False, [(1, 0, 0, 0), (0, 0, 0, 0)])
    assert read.get_harvested_cfg() == {1: 0, 0: 32}
    assert read.get_ethernet_connections() == {0: {8: (1, 0)}, 1: {0: (0, 8)}}


def test_without_a_system_none_is_stored(tmp_path):
    path = tmp_path / "db.yaml"
    api.DeviceConfig("grayskull", "", "", str(path), "golden", True)
    assert set(yaml.safe_load(path.read_text())) == {"arch_level_params", "params_to_ignore"}
    assert api.load_cached_sys_param(str(path)) == {}
    assert api.DeviceConfig("grayskull", "", "", str(path)).get_harvested_cfg() == {0: 0}


def test_parameters_of_a_file_outrank_the_table(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "arch_level_params: {wormhole_b0-t6-grid_size: 8-9, wormhole_b0-dram-num_channels: 5,"
        " wormhole_b0-dram-channel_capacity: 1}\n"
        "params_to_ignore: [wormhole_b0-dram-channel_capacity]\n"
        "system_level_params: {system-device2-harvesting_mask: 0x20}\n"
    )
    config = api.DeviceConfig("wormhole_b0", runtime_params_yaml=str(tmp_path / "own.yaml"), chip_ids=[2])
    assert config.grid_size == api.DeviceGrid((9, 8))
    assert config.get_dram_num_channels() == 5
    assert config.get_dram_channel_capacity() == 2 << 30
    assert config.get_harvested_cfg() == {2: 32}


def test_configurations_that_are_refused(tmp_path, cluster):
    (tmp_path / "odd.yaml").write_text("system_level_params: {system-device-chip_locations: 'x,y,-'}\n")
    (tmp_path / "three.yaml").write_text("chips: {0: [0, 0, 0, 0]}\nethernet_connections: [[1, 2, 3]]\n")
    for arguments, said in (
        (("tpu",), "no architecture 'tpu'; there are"),
        (("jawbridge",), "no device table for 'jawbridge'"),
        (("wormhole_b0", str(tmp_path / "none.yaml")), "No such file"),
        (("wormhole_b0", "", "", str(tmp_path / "none.yaml")), "No such file"),
        (("wormhole_b0", "", "", str(tmp_path / "odd.yaml")), "system parameter 'x,y,-'"),
        (("wormhole_b0", "", str(tmp_path / "none.yaml")), "No such file"),
        (("wormhole_b0", "", str(tmp_path / "odd.yaml")), "it has no map `chips`"),
        (("wormhole_b0", "", str(tmp_path / "three.yaml")), "3 ends, not two"),
        (("wormhole_b0", "", cluster, "", "golden", False, [7]), "chip 7 is not in"),
        (("wormhole_b0", "", "", "", "golden", False, [(0, 0, 0, 0)]), "not in any cluster"),
        (("wormhole_b0", "", "", str(tmp_path), "golden", True), "Is a directory"),
    ):
        with pytest.raises(RuntimeError, match=said):
            api.DeviceConfig(*arguments)
    for text, said in (("- a list\n", "not a map"), ("{", "flow node"), ("system_level_params: 3", "is not a map")):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(RuntimeError, match=said):
            api.load_cached_sys_param(str(tmp_path / "bad.yaml"))
    with pytest.raises(RuntimeError, match="No such file"):
        api.load_cached_sys_param(str(tmp_path / "none.yaml"))


# ------------------------------------------------------------------------------------------------- emulated devices
@pytest.fixture
def present():
    yield api.present_devices
    api.present_devices(None)


def test_emulated_devices_of_the_environment(monkeypatch, present, tmp_path):
    monkeypatch.setenv("BUDA_EMU_DEVICES", "grayskull, grayskull:0x6")
    assert api.detect_available_silicon_devices() == [api.BackendDevice.Grayskull] * 2
    descs = api.get_device_descs_for_available_devices(str(tmp_path))
    assert [(desc.mmio, desc.harvesting_mask) for desc in descs] == [(True, 0), (True, 6)]
    assert [api.DeviceConfig("grayskull", desc.soc_desc_yaml).grid_size.r for desc in descs] == [10, 8]
    assert api.DeviceConfig("grayskull").get_harvested_cfg() == {0: 0, 1: 6}
    assert api.get_device_cluster_yaml(str(tmp_path)) == ""
    present("")
    assert api.detect_available_silicon_devices() == []
    present(None)
    monkeypatch.setenv("BUDA_EMU_DEVICES", "abacus")
    with pytest.raises(RuntimeError, match="BUDA_EMU_DEVICES: 'abacus': BackendDevice: no architecture"):
        api.detect_available_silicon_devices()


def test_emulated_wormholes_are_a_cluster(present, tmp_path):
    """The host reaches the first one, Ethernet the others, as on a board with two chips."""
    present("wormhole_b0:0x20,wormhole_b0")
    worm = api.BackendDevice.Wormhole_B0
    assert api.detect_available_silicon_devices() == [worm]
    assert api.detect_available_silicon_devices(only_detect_mmio=False) == [worm, worm]
    assert [desc.mmio for desc in api.get_device_descs_for_available_devices(str(tmp_path))] == [True, False]
    path = api.get_device_cluster_yaml(str(tmp_path))
    assert path == str(tmp_path / "cluster_desc.yaml")
    for cluster in (path, ""):
        config = api.DeviceConfig("wormhole_b0", "", cluster, "", "silicon", False, [(0, 0, 0, 0), (1, 0, 0, 0)])
        assert config.get_harvested_cfg() == {0: 32, 1: 0}
        links = {0: {8: (1, 0), 9: (1, 1)}, 1: {0: (0, 8), 1: (0, 9)}}
        assert config.get_ethernet_connections() == links


@pytest.mark.parametrize(
    ("devices", "said"),
    [("abacus", "no architecture"), ("jawbridge", "no device table"), ("grayskull:x", "invalid literal"),
     ("grayskull:1", "bit 0 is illegal"), ("grayskull,blackhole", "are not in one system"),
     ("blackhole:2", "row 1 has no worker cores")],
)  # fmt: skip
def test_devices_that_cannot_be_shown(present, devices, said):
    with pytest.raises(RuntimeError, match=rf"present_devices: .*{said}"):
        present(devices)
    assert api.detect_available_silicon_devices() == []


@pytest.mark.parametrize("arch", ARCHS)
def test_parameters_that_the_facts_state(arch):
    found = arch_parameters(arch)
    expected = {
        "t6-dst_size": "32768",
        "noc-num_rings": "2",
        "noc-num_vcs": "16",
        "param-max_bytes_per_phase": "38",
        "aiclk-freq_ghz": "1.2" if arch == "grayskull" else "1",
        "param-max_dram_in_queues": "39",
        "param-max_dram_out_queues": "8",
        "param-max_fan_out_streams": "16",
        "param-backend_reserved_in_queues": "1",
        "dram-host_mmio_range_start": str(0x30000000),
        "dram-host_mmio_range_size": str(0x10000000),
    }
    assert {name: found[f"{arch}-{name}"] for name in expected} == expected
    assert all(isinstance(value, str) for value in found.values())


def test_parameters_of_no_architecture():
    with pytest.raises(HostError):
        arch_parameters("tpu")


def test_device_grid():
    assert repr(api.DeviceGrid((2, 3))) == "DeviceGrid((2, 3))"
    assert api.DeviceGrid((2, 3)) != api.DeviceGrid((3, 2))


# ----------------------------------------------------------------------------------------------------------- sizes
@pytest.mark.parametrize(
    ("df", "untilized", "tile", "size"),
    [("Float32", False, (32, 32), 4128), ("Float16_b", False, (32, 32), 2080), ("Bfp8_b", False, (32, 32), 1120),
     ("Bfp4_b", False, (32, 32), 608), ("Bfp2", False, (32, 32), 352), ("Int8", False, (32, 32), 1056),
     ("Float32", True, (32, 32), 4096), ("Bfp8", True, (32, 32), 1088), ("Float16", False, (8, 32), 544)],
)  # fmt: skip
def test_io_size(df, untilized, tile, size):
    found = api.get_io_size_in_bytes(
        data_formati=api.get_format_from_string(df),
        is_untilizesd=untilized,
        ublock_ct=2,
        ublock_rt=3,
        mblock_m=1,
        mblock_n=2,
        t=2,
        entries=5,
        tile_height=tile[0],
        tile_width=tile[1],
    )
    assert found == 2 * 3 * 1 * 2 * 2 * 5 * size + 32


def test_alignment_follows_the_architecture(tmp_path, monkeypatch):
    one_tile = (api.DataFormat.Float32, False, 1, 1, 1, 1, 1, 1)
    assert (api.get_next_aligned_address(33), api.get_next_aligned_address(64)) == (64, 64)
    assert api.get_io_size_in_bytes(*one_tile) == 4128 + 32
    monkeypatch.setenv("ARCH_NAME", "blackhole")
    assert api.get_next_aligned_address(65) == 128
    assert api.get_io_size_in_bytes(*one_tile) == 4160 + 64
    monkeypatch.delenv("ARCH_NAME")
    backend, _ = machine(tmp_path, device="blackhole", arch="blackhole")
    assert api.get_next_aligned_address(65) == 128
    backend.finish()
    assert api.get_next_aligned_address(65) == 96


def test_a_size_of_no_format():
    with pytest.raises(RuntimeError, match="is not a format"):
        api.get_io_size_in_bytes(api.DataFormat.Invalid, False, 1, 1, 1, 1, 1, 1)
