"""Device tables hold to their schema, to each other and to PERF 1."""

import json
from dataclasses import fields
from itertools import pairwise

import jsonschema
import pytest

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.devices import DEVICES, Device, device, rows_of_mask
from buda_emu.support.errors import HostError, UnsupportedError
from shared_files import ROOT


@pytest.mark.parametrize("name", DEVICES)
def test_file_holds_to_its_schema(name):
    schema = json.loads((ROOT / "schemas" / "device.schema.json").read_text())
    content = json.loads((ROOT / "buda_emu" / "spec" / "devices" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(content, schema)


@pytest.mark.parametrize("name", DEVICES)
def test_every_field_says_where_it_comes_from(name):
    chip = device(name)
    for field in fields(Device):
        if field.name not in ("name", "board"):  # the file is named after the one; the other is chosen
            assert chip.source(field.name), field.name


@pytest.mark.parametrize("name", DEVICES)
def test_agrees_with_the_table_of_archs(name):
    chip, arch = device(name), ARCHS[name]
    assert chip.grid == arch.grid
    assert chip.l1_bytes == arch.l1_bytes
    assert (chip.dram_channels, chip.dram_channel_bytes) == (arch.dram_channels, arch.dram_channel_bytes)
    assert len(chip.eth_cores) == arch.eth_cores
    assert chip.alignment == arch.alignment


@pytest.mark.parametrize("name", DEVICES)
def test_file_states_the_grid_that_follows(name):
    content = json.loads((ROOT / "buda_emu" / "spec" / "devices" / f"{name}.json").read_text())
    assert tuple(content["grid"]["value"]) == device(name).grid


@pytest.mark.parametrize("name", DEVICES)
def test_regions_fill_l1_up_to_the_data(name):
    chip = device(name)
    assert sum(size for _, size in chip.l1_regions) == chip.l1_data_start


@pytest.mark.parametrize(("name", "size"), [("grayskull", 839680), ("wormhole_b0", 1290240), ("blackhole", 1277888)])
def test_room_for_buffers(name, size):
    assert device(name).l1_data_bytes == size


@pytest.mark.parametrize("name", DEVICES)
def test_no_place_is_taken_twice(name):
    chip = device(name)
    workers = [chip.physical(row, column) for row in range(chip.grid[0]) for column in range(chip.grid[1])]
    others = [core for channel in chip.dram_cores for core in channel] + [*chip.eth_cores, chip.arc, chip.pcie]
    places = workers + others
    assert len(places) == len(set(places))
    columns, rows = chip.noc_grid
    assert all(0 <= x < columns and 0 <= y < rows for x, y in places)
    assert all(a < b for line in (chip.worker_rows, chip.worker_columns) for a, b in pairwise(line))


@pytest.mark.parametrize("name", DEVICES)
def test_logical_and_physical_are_inverse(name):
    chip = device(name)
    for row in range(chip.grid[0]):
        for column in range(chip.grid[1]):
            assert chip.logical(*chip.physical(row, column)) == (row, column)


def test_the_worked_example():
    assert device("wormhole_b0").label(7, 6) == "8-9"


def test_wormhole_is_wormhole_b0():
    assert device("wormhole") == device("wormhole_b0")


def test_grayskull_loses_exactly_the_harvested_rows():
    assert device("grayskull").harvested([2, 8]).worker_rows == (1, 3, 4, 5, 7, 9, 10, 11)


def test_wormhole_loses_its_last_rows():
    chip = device("wormhole_b0").harvested([3, 4])
    assert chip.worker_rows == (1, 2, 3, 4, 5, 7, 8, 9)
    assert chip.grid == (8, 8)  # n300: 64 cores


def test_blackhole_cannot_be_harvested():
    with pytest.raises(UnsupportedError, match="give a grid instead"):
        device("blackhole").harvested([3])


def test_a_smaller_grid_keeps_the_first_cores():
    chip = device("wormhole_b0").with_grid(4, 6)
    assert (chip.worker_columns, chip.worker_rows) == ((1, 2, 3, 4, 6, 7), (1, 2, 3, 4))


def test_masks():
    assert rows_of_mask(0b100000000100) == (2, 11)
    for mask in (1, 1 << 6, 1 << 12, -2):
        with pytest.raises(HostError, match="illegal"):
            rows_of_mask(mask)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: device("jawbridge"), "no device table"),
        (lambda: device("wormhole_b0").physical(10, 0), "outside of the grid 10x8"),
        (lambda: device("wormhole_b0").logical(5, 1), "5-1 is not a worker"),
        (lambda: device("wormhole_b0").with_grid(11, 8), "not within 10x8"),
        (lambda: device("grayskull").harvested([6]), "row 6 has no worker"),
        (lambda: device("wormhole_b0").harvested(device("wormhole_b0").worker_rows), "no row would be left"),
    ],
)
def test_errors(call, words):
    with pytest.raises(HostError, match=words):
        call()
