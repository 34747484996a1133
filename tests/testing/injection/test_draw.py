"""What is drawn: strata, given sites, budgets; the same for any number of workers and after an interruption."""

import json
from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.app.api.faults import Budget, Settings, Subject, read_sites
from buda_emu.testing.injection.fault import KINDS, Fault, bits_of_tile
from buda_emu.testing.injection.result import Share, share_of, wilson
from example_netlists import DIRECTORY
from faults_bench import bench

MATMUL = str(DIRECTORY / "matmul.yaml")
ATTENTION = str(DIRECTORY / "attention.yaml")


def plain(effects):
    return [item.as_json() for item in effects]


@pytest.mark.parametrize("by", ["kind", "place", "op", "tensor", "bit"])
def test_strata_get_equally_many(by):
    kinds = KINDS if by == "kind" else ("flip",)
    found = bench("attention", strata=by, kinds=kinds)
    shares = found.strata
    assert sum(shares.values()) == pytest.approx(1)
    faults = [found.fault(number) for number in range(3 * len(shares))]
    counts = {name: sum(fault.stratum == name for fault in faults) for name in shares}
    assert set(counts.values()) == {3}
    for fault in faults:
        own = {"kind": fault.kind, "place": fault.place, "op": fault.where, "tensor": fault.tensor}
        if by == "bit":
            assert fault.stratum.split()[-1].lstrip("0") in (str(fault.bits[0]), "")
            assert fault.stratum.startswith(fault.df)
        else:
            assert own[by] == fault.stratum


def test_weights_of_bits_are_those_of_the_format():
    shares = bench("attention", strata="bit").strata
    one = {name: share for name, share in shares.items() if name.startswith("Bfp8_b")}
    assert one["Bfp8_b 07"] / one["Bfp8_b exponent 7"] == pytest.approx(1024 / 64)
    assert sum(one.values()) == pytest.approx(one["Bfp8_b 00"] * bits_of_tile("Bfp8_b") / 1024)


def test_the_weighted_share_is_that_of_all():
    """Both intervals hold the share that the other finds; the counts of the strata alone would be far off."""
    found = [be.faults(MATMUL, 640, settings=Settings(strata=by)).total() for by in ("", "bit")]
    one, other = found
    assert max(one.interval[0], other.interval[0]) <= min(one.interval[1], other.interval[1])
    assert other.failures / other.faults > other.share


def test_strata_of_one_group_are_its_wilson_interval():
    found = bench("matmul")
    effects = [found.effect(number) for number in range(200)]
    failures = sum(item.failed for item in effects)
    assert 0 < failures < 200
    low, high = share_of("all", effects, {"": 1.0}).interval
    assert (low, high) == pytest.approx(wilson(failures, 200), abs=0.01)


@pytest.mark.parametrize("failures", [0, 20, 100, 180, 200])
def test_the_interval_of_one_stratum_is_wilsons(failures):
    found = Share("one", 200, failures, {}, ((3.0, 200, failures),))
    assert found.share == pytest.approx(failures / 200)
    assert found.interval == pytest.approx(wilson(failures, 200), abs=0.006)


def test_bits_have_strata_and_cores_have_none():
    with pytest.raises(be.HostError, match="by bit bits are divided"):
        be.faults(MATMUL, 1, settings=Settings(strata="bit", kinds=("core",)))
    with pytest.raises(be.HostError, match="strata 'bits' is not one of kind, place, op, tensor, bit"):
        be.faults(MATMUL, 1, settings=Settings(strata="bits"))


@pytest.mark.parametrize("precision", ["format", "device"])
def test_given_faults_are_those_that_were_drawn(tmp_path, precision):
    kinds = KINDS
    subject = Subject(ATTENTION, precision=precision)
    drawn = be.faults(subject, 60, settings=Settings(kinds=kinds))
    path = tmp_path / "sites.jsonl"
    path.write_text("".join(f"{json.dumps(item.fault.as_json())}\n" for item in drawn.effects))
    again = be.faults(subject, 1, settings=Settings(given=read_sites(path)))
    assert plain(again.effects) == plain(drawn.effects)
    assert again.finished
    whole = tmp_path / "faults.json"
    whole.write_text(json.dumps(drawn.as_json()))
    assert read_sites(whole) == read_sites(path)


def test_a_fault_written_by_hand(tmp_path):
    path = tmp_path / "sites.jsonl"
    site = {"kind": "flip", "place": "dram", "where": "x", "entry": 2, "tile": 1, "datum": 5, "bits": [14]}
    path.write_text(json.dumps(site) + "\n")
    (effect,) = be.faults(ATTENTION, settings=Settings(given=read_sites(path))).effects
    assert (effect.fault.df, effect.fault.op_type, effect.fault.bit_name) == ("Float16_b", "queue", "exponent")


BAD = {
    '{"kind": "flip"': "not JSON",
    "[1]": "item 1 is not a fault",
    '{"kind": "flip", "place": "dram", "where": "xx"}': "no values of 'xx'",
    '{"kind": "flop", "where": "x"}': "kind 'flop' is not one of",
    '{"kind": "flip", "place": "dram", "where": "x", "entry": 9}': "the run has 4 values of x",
    '{"kind": "flip", "place": "l1", "where": "x", "entry": 0}': "place l1 is not one of x",
    '{"kind": "flip", "place": "dram", "where": "x", "entry": 0, "tile": 99}': "tile 99",
    '{"kind": "flip", "place": "dram", "where": "x", "entry": 0, "tile": 0, "datum": 1024}': "datum 1024",
    '{"kind": "flip", "place": "dram", "where": "x", "entry": 0, "tile": 0, "datum": 0, "bits": [16]}': "there are 16",
    '{"kind": "flip", "place": "dst", "where": "q", "entry": 0, "tile": 0, "datum": 0, "bits": [1]}': "n device",
    '{"kind": "flip", "place": "operand", "where": "q", "entry": 0, "operand": 3}': "q has no operand 3",
    '{"kind": "core", "where": "x", "entry": 0}': "x is not an op",
    '{"kind": "entry", "where": "x", "entry": 0, "how": "twice"}': "entry 0 has none before it",
    '{"kind": "entry", "where": "bq", "entry": 0, "how": "lost", "tile": 0}': "bq is a ram",
    '{"kind": "pointer", "where": "q", "entry": 0}': "q is not a queue",
    '{"kind": "pointer", "where": "bq", "entry": 0, "how": "local", "bits": [0]}': "not one of rd, wr",
    '{"kind": "flip", "place": "attic", "where": "x", "entry": 0, "bits": [1]}': "place 'attic' is not one of",
    '{"kind": "link", "where": "usb", "how": "50 %"}': "link 'usb'",
    '{"kind": "clock", "how": "150 %"}': "how '150 %'",
    '{"kind": "clock", "how": "50 %", "entry": 99}': "execute 99",
}


@pytest.mark.parametrize("text", BAD)
def test_given_faults_that_the_run_does_not_have(tmp_path, text):
    path = tmp_path / "sites.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(be.HostError, match=BAD[text].replace("(", r"\(")):
        be.faults(ATTENTION, settings=Settings(given=read_sites(path)))


def test_a_campaign_ends_where_its_interval_is_narrow():
    settings = Settings(kinds=("flip", "core"))
    budget = Budget(2000, width=0.12)
    alone = be.faults(ATTENTION, budget, settings=settings)
    assert alone.finished
    assert len(alone.effects) % 64 == 0
    assert len(alone.effects) < 2000
    low, high = alone.total().interval
    assert high - low <= 0.12
    low, high = replace(alone, effects=alone.effects[:-64]).total().interval
    assert high - low > 0.12
    shared = be.faults(ATTENTION, budget, settings=settings, workers=2)
    resumed = be.faults(ATTENTION, budget, settings=settings, known=alone.effects[:100])
    whole = be.faults(ATTENTION, budget, settings=settings, known=alone.effects)
    assert plain(shared.effects) == plain(resumed.effects) == plain(whole.effects) == plain(alone.effects)


def test_names_of_two_numbers_are_refused(tmp_path):
    path = tmp_path / "sites.jsonl"
    path.write_text('{"kind": "link", "where": "dram_gbps", "how": "50 %", "number": 1}\n' * 2)
    with pytest.raises(be.HostError, match="two faults have the same number"):
        read_sites(path)
    assert Fault.from_json({"kind": "link"}).place == ""


def test_a_kind_with_nothing_to_hit_is_left_out_and_said(tmp_path):
    """Float32 has no other format of its width."""
    path = tmp_path / "net.yaml"
    path.write_text(
        (DIRECTORY / "matmul.yaml").read_text().replace("Float16_b", "Float32").replace("Bfp8_b", "Float32")
    )
    found = be.faults(str(path), 60, settings=Settings(kinds=("format", "flip")))
    assert found.left_out == ("format",)
    assert {effect.fault.kind for effect in found.effects} == {"flip"}
    assert found.as_json()["left_out"] == ["format"]
    strata = be.faults(str(path), 12, settings=Settings(kinds=("format", "flip", "burst"), strata="kind"))
    assert {effect.fault.stratum for effect in strata.effects} == {"flip", "burst"}
    assert strata.finished
    with pytest.raises(be.HostError, match="kind format: there is nothing that such a fault can hit"):
        be.faults(str(path), 10, settings=Settings(kinds=("format",)))


def test_bits_of_a_flip_are_neighbours_or_anywhere():
    beside = [bench("attention", burst=3).fault(number).bits for number in range(60)]
    apart = [bench("attention", burst=3, scatter=True).fault(number).bits for number in range(60)]
    assert all(bits == tuple(range(bits[0], bits[0] + len(bits))) for bits in beside)
    assert all(len(set(bits)) == 3 and bits == tuple(sorted(bits)) for bits in apart)
    assert sum(bits[2] - bits[0] > 2 for bits in apart) > 30


def test_bursts_by_place_stay_out_of_units():
    found = bench("matmul", "device", kinds=("burst",), strata="place")
    faults = [found.fault(number) for number in range(30)]
    assert {fault.kind for fault in faults if fault.place in ("dram", "l1", "operand")} == {"burst"}
    assert {fault.kind for fault in faults if fault.place in ("dst", "packer")} <= {"flip"}
