"""Each rule: a schedule that breaks it and nothing else, and one near it that is legal."""

import pytest

from buda_emu.foreign.gemini.rules import BOOK
from gemini_schedules import NAMES, drop, edited, network, put, rules_of, schedule

BOX = ([0, 0, 0, 0], [0, 7, 3, 7])
EXTRA_IN = {
    "core_id": 0,
    "layer_name": "a",
    "lower": [0, 0, 0, 0],
    "upper": [0, 7, 3, 7],
    "transfer_id": 0,
    "workload_id": 4,
}
CORE_0_2 = {"core_id": 0, "type": "core", "workload_id": 2}
UNKNOWN = {"core_id": 0, "layer_name": "c1", "type": "core", "workload_id": 77}
UNREAD = {"core_id": 0, "layer_name": "c2", "type": "core", "workload_id": 2}
ROW = [0, 0, 4, 0]

# rule, schedule, edits that break it, edits that do not, rules that may be broken, too
CASES = [
    ("G001", "two_cores", [put("core0", [])], [put("0/0/remark", [])]),
    ("G001", "two_cores", [put("buffersize", 0)], [put("buffersize", 65536)]),
    ("G001", "b", [drop("ylen")], [drop("top_batch_cut")]),
    ("G002", "two_cores", [put("0/1/time", "600")], [put("0/1/time", 600.5)]),
    ("G002", "two_cores", [put("0/1/weight/transfer_id", 2)], [put("0/1/remark", 2)]),
    ("G002", "two_cores", [put("0/0/workload_id", True)], [put("0/0/wl0_buffer", [])]),
    ("G002", "two_cores", [put("0/1/tile_padding_tblr", [])], []),
    ("G002", "b", [put("1/0/layer_type", "conv3d")], [drop("1/0/layer_type")]),
    ("G003", "two_cores", [put("0/1/buffer/0/upper", [0, 15, 2])], []),
    ("G003", "two_cores", [put("0/0/workload", [[0, 0, 0, 0]])], []),
    ("G002", "b", [put("1/0/buffer/1/type", "weights")], []),
    ("G003", "b", [put("1/0/weight/lower", 9)], []),
    ("G003", "b", [put("1/0/buffer/1/lower", [0])], []),
    ("G004", "two_cores", [put("0/0/ofmap/0/destination/-", {"core_id": 5, "type": "core", "workload_id": 0})],
     [put("0/0/ofmap/0/destination/-", CORE_0_2)]),
    ("G004", "two_cores", [put("xlen", 1)], [put("xlen", 3)]),
    ("G004", "two_cores", [put("0/4/ofmap/0/destination/0/core_id", 0)], []),
    ("G004", "b", [put("2/1/ofmap/0/destination/0/id", -1)], []),
    ("G005", "two_cores", [put("0/3/workload_id", 2)], []),
    ("G005", "b", [put("2/0/workload_id", 0)], []),
    ("G005", "b", [put("1/0/workload_id", 2), put("1/1/workload_id", 0)], [], "G015", "G018"),
    ("G010", "two_cores", [put("-1/in/-", EXTRA_IN)], []),
    ("G010", "two_cores", [put("0/3/ofmap/0/transfer_id", 10)], [], "G016"),
    ("G010", "fp16_dram", [put("0/5/ofmap/0/transfer_id", 9)], [], "G011"),
    ("G011", "two_cores", [put("-1/in/0/workload_id", 3)], []),
    ("G011", "two_cores", [put("-1/in/0/layer_name", "c2")], []),
    ("G011", "b", [put("-1/in/0/core_id", 2)], []),
    ("G012", "two_cores", [drop("-1/in/0")], []),
    ("G012", "two_cores", [put("0/2/ofmap/0/destination/-", {"core_id": -1, "type": "DRAM"})], []),
    ("G013", "fp16_dram", [put("-1/in/0/related_ofmap", [10])], []),
    ("G013", "fp16_dram", [put("-1/out/3/related_ifmap", [0, 99])], []),
    ("G013", "fp16_dram", [put("-1/out/2/related_ifmap", [1])], []),
    ("G013", "b", [put("-1/out/4/related_ifmap", [])], []),
    ("G014", "fp16_dram", [put("-1/out/3/lower", [2, 0, 0, 0]), put("-1/out/3/upper", [2, 9, 4, 6])],
     [put("-1/out/3/lower", [1, 0, 0, 0]), put("-1/out/3/upper", [1, 9, 4, 6])]),
    ("G015", "two_cores", [put("-1/out/0/destination/-", UNKNOWN)], []),
    ("G015", "two_cores", [put("-1/out/0/destination/-", UNREAD)], [drop("-1/out/0/destination/1")]),
    ("G015", "b", [put("2/0/ofmap/0/destination/0/workload_id", 9)], []),
    ("G016", "two_cores", [put("0/3/weight/transfer_id", [99])], []),
    ("G016", "two_cores", [put("1/2/ifmap/0/transfer_id", [98, 99])], []),
    ("G016", "two_cores", [put("0/2/buffer/3/source/0/transfer_id", 97)], [], "G036"),
    ("G016", "b", [put("2/1/ifmap/transfer_id", [99])], []),
    ("G017", "two_cores", [drop("0/1/ofmap/1/destination/0")], [drop("-1/out/1/destination/1")]),
    ("G017", "two_cores", [put("-1/out/3/destination", [])], []),
    ("G017", "b", [put("1/0/ofmap/0/destination", [])], [put("-1/out/0/destination", [])]),
    ("G018", "fp16_dram", [put("-1/out/2/related_ifmap", [1]), put("-1/in/1/related_ofmap", [6])],
     [put("-1/in/1/related_ofmap", [])]),
    ("G018", "b", [put("-1/out/1/related_ifmap", [6]), put("-1/in/0/related_ofmap", [7, 1])], []),
    ("G018", "b", [put("1/0/ifmap/transfer_id", [4]), put("1/0/buffer/2/transfer_id", [4]),
                   put("1/0/buffer/2/source/0/transfer_id", 4)], [], "G015", "G017", "G035"),  # its own result
    ("G019", "two_cores", [put("0/0/ofmap/0/destination/-", CORE_0_2)], []),
    ("G019", "b", [put("1/0/ofmap/0/destination/-", {"id": 2, "type": "core", "workload_id": 3})], []),
    ("G030", "two_cores", [put("0/0/buffer/1/align", 8)], []),
    ("G030", "fp16_dram", [put("0/4/ifmap/0/align", 8), put("0/4/ifmap/0/bitwidth", 8)], [], "G031"),
    ("G031", "two_cores", [put("0/1/ifmap/0/size", 312)], []),
    ("G031", "fp16_dram", [put("-1/out/3/size", 560)], []),
    ("G031", "b", [put("2/0/ofmap/0/size", 8)], [], "G035"),
    ("G032", "two_cores", [put("0/1/weight/size", 1152)], []),
    ("G032", "b", [put("-1/out/0/size", 1729)], []),
    ("G033", "two_cores", [put("0/1/ofmap_size", 512)], []),
    ("G033", "b", [put("1/1/ofmap_size", 8)], []),
    ("G034", "ring_wrap", [put("0/5/buffer/2/address", 2760)], [put("0/5/buffer/2/address", 2816)]),
    ("G034", "b", [put("1/0/buffer/1/block", 1)], []),
    ("G034", "b", [put("2/1/buffer/0/block", 1)], []),
    ("G035", "two_cores", [put("-1/in/0/upper", [0, 7, 4, 7])],
     [put("-1/in/0/lower", ROW), put("-1/in/0/upper", [0, 7, 7, 7])]),
    ("G035", "two_cores", [put("0/0/buffer/2/source/1/core_id", 0)], []),
    ("G035", "two_cores", [put("0/0/buffer/2/source/1/size", 128)], []),
    ("G035", "batch2_avg", [put("0/0/buffer/0/source/0/type", "core")], []),
    ("G035", "two_cores", [put("0/1/weight/lower", [0, 1, 0, 0]), put("0/1/weight/upper", [0, 16, 2, 8])], []),
    ("G035", "b", [put("1/1/buffer/0/source/0/size", 1024)], []),
    ("G036", "two_cores", [drop("1/1/buffer/3/source/0")], [], "G045"),
    ("G036", "batch2_avg", [put("0/3/buffer/0/transfer_id", [6])], []),
    ("G036", "b", [put("1/1/ifmap/transfer_id", [4])], []),
    ("G036", "b", [put("1/0/ifmap/transfer_id", [])], []),
    ("G037", "two_cores", [drop("0/1/tile_info/tile_num_2")], []),
    ("G037", "two_cores", [put("0/1/tile_info", {})], []),
    ("G038", "two_cores", [put("0/2/ofmap", [])], []),
    ("G038", "two_cores", [put("0/4/ofmap", [])], []),
    ("G038", "b", [put("1/1/ofmap", [])], []),
    ("G038", "b", [put("1/1/ofmap/0/upper", [0, 7, 4, 3])], []),
    ("G039", "b", [put("2/0/workload", [[0, 0, 3, 0], [0, 7, 3, 3]])], [], "G033", "G038"),
    ("G039", "b", [put("2/0/workload", [[0, 0, 1, 0], [0, 7, 3, 3]])], [], "G033"),
    ("G040", "ring_wrap", [put("0/5/buffer/2/address", 8192)], [put("0/5/buffer/2/address", 8128)]),
    ("G040", "ring_wrap", [put("0/5/ring_buffer_info", [[0, 7400], [7400, 8192]])], []),
    ("G041", "ring_wrap", [put("0/5/buffer/2/address", 2432)], [put("0/5/buffer/2/address", 2816)]),
    ("G041", "ring_wrap", [put("0/5/buffer/2/address", 2368)], []),
    ("G031", "ring_wrap", [put("0/5/buffer/2/size", 4096)], []),
    ("G042", "ring_wrap", [put("0/5/buffer/1/address", 3584)], []),
    ("G042", "two_cores", [put("0/2/buffer/2/tensor_order", 9)], []),
    ("G042", "two_cores", [put("0/2/buffer/2/bitwidth", 16), put("0/2/buffer/2/align", 4)], []),
    ("G042", "batch2_avg", [put("0/1/buffer/0/type", "ifmap"), put("0/1/buffer/0/source/0/layer_name", "q")], []),
    ("G042", "two_cores", [put("1/4/buffer/2/tensor_id", 7)], []),
    ("G043", "two_cores", [put("0/2/buffer/0/newly_added", True)], []),
    ("G044", "two_cores", [drop("0/2/buffer/1/cur_wl_ifmap")], []),
    ("G044", "two_cores", [put("0/2/buffer/2/cur_wl_ifmap", True)], [put("0/2/buffer/2/cur_wl_ifmap", False)]),
    ("G044", "two_cores", [put("0/1/ifmap/0/upper", [0, 2, 3, 7]), put("0/1/ifmap/0/size", 256)], []),
    ("G044", "batch2_avg", [put("0/0/ifmap", [])], []),
    ("G044", "b", [put("1/1/buffer/0/workload_id", 3)], []),
    ("G045", "fp16_dram", [drop("0/6/buffer/2")], []),
    ("G045", "two_cores", [drop("0/2/buffer/4"), put("0/3/buffer/2/newly_added", True)], []),
    ("G046", "fp16_dram", [put("0/6/buffer/2/start_send", False)], []),
    ("G046", "fp16_dram", [put("0/5/buffer/2/start_send", True), put("0/6/buffer/0/start_send", False)], []),
    ("G047", "two_cores", [put("0/2/ring_buffer_info", [[0, 32832]])],
     [put("0/2/ring_buffer_info", [[0, 16384], [16384, 32768]])]),
    ("G047", "two_cores", [put("0/2/ring_buffer_info", [[0]])], []),
    ("G048", "two_cores", [drop("0/3/buffer/2")], []),
    ("G050", "fp16_dram", [put("0/3/wl1_buffer", None)], []),
    ("G050", "two_cores", [drop("0/3/buffer/1"), put("0/3/wl0_buffer", None)], []),
    ("G051", "two_cores", [put("0/1/wl0_buffer/-", {
        "address": 4100, "size": 8, "source": "CORE", "transfer_id": [3], "layer_name": "c2", "tensor_order": None})],
     [put("0/1/wl0_buffer/-", {
         "address": 4128, "size": 8, "source": "CORE", "transfer_id": [3], "layer_name": "c2", "tensor_order": None})]),
    ("G052", "two_cores", [put("0/1/wl0_buffer/0/transfer_id", [5])], []),
    ("G053", "two_cores", [put("0/4/buffer/2/tensor_order", 9)], []),
    ("G053", "two_cores", [put("1/4/buffer/2/tensor_order", 11)], []),
    ("G054", "ring_wrap", [put("buffersize", 4000)], [], "G047"),
    ("G060", "two_cores", [put("1/4/time", -1)], [put("1/4/time", 0)]),
    ("G060", "b", [put("1/1/time", -0.5)], [put("1/1/time", 0)]),
    ("G070", "b", [put("2/1/ifmap/upper", [0, 8, 3, 3])], []),
    ("G090", "b", [], None),
]  # fmt: skip

WITH_NETWORK = [
    ("G080", "two_cores", [put("0/4/layer_name", "b"), put("1/4/layer_name", "b")], [], "G011", "G045"),
    ("G080", "batch2_avg", [put("0/1/layer_name", "conv")], []),
    ("G080", "ring_wrap", [put("0/3/layer_name", "add")], []),
    ("G081", "two_cores", [put("0/1/tile_info/tile_num_0/tile_padding_tblr", [0, 1, 1, 1])], []),
    ("G081", "two_cores", [put("0/1/tile_info/tile_num_1/ifmap_upper", [0, 2, 3, 7])], []),
    ("G082", "ring_wrap", [put("0/4/buffer/0/source/0/layer_name", "c1")], []),
]


def _id(case):
    return f"{case[0]}-{case[1]}"


def test_every_rule_has_a_case():
    assert {case[0] for case in CASES + WITH_NETWORK} == set(BOOK.rules)


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_schedule_that_breaks_the_rule(case):
    rule, name, edits, _, *may = case
    found = {item for item in rules_of(edited(schedule(name), *edits)) if item[0] != "G090" or rule == "G090"}
    assert (rule, BOOK.rules[rule].severity) in found
    assert {item for item, severity in found if severity == "error"} <= {rule, *may}


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_one_near_it_that_is_legal(case):
    rule, name, _, edits, *_ = case
    if edits is None:  # G090 is said of every schedule without addresses, and of no other
        assert rule not in {item for item, _ in rules_of(schedule("two_cores"))}
    else:
        assert rule not in {item for item, _ in rules_of(edited(schedule(name), *edits))}


@pytest.mark.parametrize("case", WITH_NETWORK, ids=_id)
def test_rules_of_the_network(case):
    rule, name, edits, _, *may = case
    assert rules_of(schedule(name), network(name)) == set()
    found = {item for item, severity in rules_of(edited(schedule(name), *edits), network(name)) if severity == "error"}
    assert rule in found
    assert found <= {rule, *may}


@pytest.mark.parametrize("name", NAMES)
def test_whole_schedules_break_no_rule(name):
    assert rules_of(schedule(name), network(name)) == set()


def test_dialect_b_says_what_is_not_checked():
    from buda_emu.foreign import gemini

    (only,) = gemini.load(schedule("b")).check()
    assert only.rule == "G090"
    assert "not checkable: no addresses" in only.message


def test_a_finding_has_its_place_in_the_file():
    from buda_emu.foreign import gemini

    broken = edited(schedule("two_cores"), put("0/1/ifmap/0/size", 312))
    (only,) = gemini.load(broken).check()
    assert only.where == "0/1/ifmap/0/size"
    assert "320" in only.message
