"""Every rule both ways: the example breaks none, one change breaks the rule, and the verdict is its own."""

import pytest

from buda_emu.foreign.darwinn import check, flexbuffer, tflite, wrap
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.idl import IDENTIFIER, PAGE, MultiExecutable, PackageTable
from buda_emu.foreign.darwinn.linking import build
from buda_emu.foreign.darwinn.rules import BOOK
from foreign.darwinn import example_trees as ex

VERDICTS = {"E": "rejected", "F": "faulty", "W": "ok", "N": "ok"}


def put(where, **values):
    """Sets fields of a table of the tree: the table as a function of the tree."""
    return lambda tree: where(tree).update(values)


def drop(where, name):
    return lambda tree: where(tree).pop(name)


def whole(tree):
    return tree


def meta(number):
    return lambda tree: ex.field(tree, number)["meta"]


def hint(number):
    return lambda tree: ex.hint(tree, number)


def hint_meta(number):
    return lambda tree: ex.hint(tree, number)["meta"]


def fences(tree):
    ex.hints(tree)[1:1] = [{"any_hint_type": "FenceHint", "any_hint": {}}] * 2


def three_types(tree):
    tree["executables"].append({**ex.main(tree), "type": "STAND_ALONE"})


def slices(*parts, dimensions=((0, 7), (0, 7), (0, 7))):
    """The grid in slices of rows: (first row, last row, offset, strides)."""

    def edit(tree):
        ranges = [{"start": low, "end": high} for low, high in dimensions]
        layouts = [
            {"shape": {"dimension": [{"start": low, "end": high}, *ranges[1:]]}, "stride": list(stride)}
            for low, high, _, stride in parts
        ]
        info = {"slice_layout": layouts, "slice_offset": [offset for _, _, offset, _ in parts]}
        ex.grid(tree)["any_layer"]["shape_info"] = info
        ex.grid(tree)["shape"] = {"dimension": ranges}

    return edit


ROWS = (64, 8, 1)
EDITS = [
    ("D012", put(whole, min_runtime_version=9)),
    ("D013", put(whole, min_runtime_version=15)),
    ("D014", put(whole, virtual_chip_id=-1)),
    ("D015", put(whole, executables=None)),
    ("D017", put(whole, executables=[])),
    ("D019", put(ex.main, batch_size=0)),
    ("D020", put(ex.caching, type="EXECUTION_ONLY")),
    ("D021", put(ex.caching, type="STAND_ALONE")),
    ("D021", lambda tree: (three_types(tree), tree["executables"].append({**ex.main(tree), "type": 7}))),
    ("D022", lambda tree: tree["executables"].pop(1)),
    ("D023", three_types),
    ("D025", put(ex.main, chip="dragonfly")),
    ("D026", put(whole, signature=b"signed")),
    ("D027", put(whole, virtual_chip_id=3)),
    ("D027", put(whole, multi_chip_package=[{"serialized_package": b"part"}])),
    ("D030", put(ex.caching, parameter_caching_token=0)),
    ("D031", put(ex.main, parameter_caching_token=77)),
    ("D031", put(ex.main, parameter_caching_token=0)),
    ("D032", put(ex.main, instruction_bitstreams=[])),
    ("D033", put(ex.chunk, bitstream=b"")),
    ("D034", lambda tree: ex.chunk(tree).update(bitstream=ex.chunk(tree)["bitstream"][:-1])),
    ("D035", put(lambda tree: ex.field(tree, 0), offset_bit=-1)),
    ("D035", put(lambda tree: ex.field(tree, 0), offset_bit=8 * 4096 - 31)),
    ("D036", put(lambda tree: ex.field(tree, 7), offset_bit=16384 + 70)),
    ("D037", put(lambda tree: ex.field(tree, 7), offset_bit=8 * 4096 - 32)),
    ("D038", put(meta(2), name="imagine")),
    ("D039", put(meta(2), batch=1)),
    ("D039", put(meta(0), desc="BASE_ADDRESS_SCRATCH", batch=1)),
    ("D040", put(meta(2), name=None)),
    ("D040", put(lambda tree: ex.field(tree, 0), meta=None)),
    ("D041", put(meta(1), position="LOWER_32BIT")),
    ("D042", put(meta(1), position=2)),
    ("D043", put(meta(1), desc=4)),
    ("D043", put(hint_meta(1), desc=9)),
    ("D044", put(lambda tree: ex.field(tree, 1), offset_bit=70 + 31)),
    ("D050", put(ex.main, dma_hints=None)),
    ("D050", put(lambda tree: ex.main(tree)["dma_hints"], hints=None)),
    ("D051", put(hint_meta(1), name="imagine")),
    ("D051", put(hint(1), meta=None)),
    ("D052", put(hint_meta(1), batch=1)),
    ("D053", put(hint(1), size_in_bytes=4097)),
    ("D053", put(hint(1), offset_in_bytes=-1)),
    ("D054", put(hint(3), size_in_bytes=513)),
    ("D054", put(hint(3), offset_in_bytes=-16)),
    ("D054", put(hint_meta(1), desc="BASE_ADDRESS_SCRATCH")),
    ("D054", put(hint_meta(1), desc="BASE_ADDRESS_PARAMETER")),
    ("D055", put(hint(0), instruction_chunk_index=1)),
    ("D056", lambda tree: ex.hints(tree)[1].update(any_hint_type="NONE", any_hint=None)),
    ("D057", lambda tree: ex.hints(tree)[1].update(direction="OUTFEED")),
    ("D057", lambda tree: ex.hints(tree)[3].update(direction="INFEED")),
    ("D057", lambda tree: ex.hints(tree)[0].update(direction=2)),
    ("D058", put(hint(5), type=4)),
    ("D059", lambda tree: ex.hints(tree)[1].update(any_hint_type=9, any_hint=None)),
    ("D060", put(hint(3), size_in_bytes=511)),
    ("D060", put(hint_meta(4), name="grid")),
    ("D061", put(hint(1), size_in_bytes=383)),
    ("D062", lambda tree: ex.caching(tree)["dma_hints"]["hints"].pop(1)),
    ("D063", lambda tree: ex.hints(tree).pop(0)),
    ("D064", lambda tree: ex.hints(tree).pop()),
    ("D064", lambda tree: ex.hints(tree).insert(0, ex.hints(tree).pop())),
    ("D065", fences),
    ("D070", put(ex.grid, name="")),
    ("D070", put(ex.grid, name="scores")),
    ("D071", put(ex.grid, any_layer_type="InputLayer", any_layer={})),
    ("D072", put(ex.grid, y_dim=0)),
    ("D072", put(ex.grid, size_bytes=511)),
    ("D073", put(ex.grid, data_type=7)),
    ("D074", put(ex.grid, numerics=None)),
    ("D074", lambda tree: ex.grid(tree)["numerics"].update(dequantization_factor=float("nan"))),
    ("D075", put(ex.grid, execution_count_per_inference=0)),
    ("D076", lambda tree: ex.grid(tree)["any_layer"].update(layout=None)),
    ("D076", lambda tree: ex.layout(tree)["x_coordinate_to_local_byte_offset"].pop()),
    ("D077", lambda tree: ex.layout(tree)["linearized_tile_byte_offset"].pop()),
    ("D077", put(ex.layout, linearized_tile_byte_offset=[0, 257])),
    ("D077", put(ex.layout, linearized_tile_byte_offset=[-1, 256])),
    ("D078", put(ex.layout, linearized_tile_byte_offset=[0, 255])),
    ("D078", lambda tree: ex.layout(tree)["y_coordinate_to_local_y_offset"].__setitem__(3, 4)),
    ("D079", lambda tree: ex.layout(tree)["x_coordinate_to_local_byte_offset"].__setitem__(slice(0, 2), [8, 0])),
    ("D079", lambda tree: ex.main(tree)["output_layers"][1].update(data_type=8, execution_count_per_inference=2)),
    ("D080", slices((0, 3, 0, ROWS), (4, 7, 257, ROWS))),
    ("D080", slices((0, 3, 0, ROWS), (3, 7, 192, ROWS))),
    ("D080", slices((0, 3, 0, ROWS), (5, 7, 320, ROWS))),
    ("D080", slices((0, 3, 0, ROWS), (4, 7, 256, (64, 7, 1)))),
    ("D080", slices((0, 3, 0, ROWS), (4, 8, 192, ROWS))),
    ("D081", put(ex.grid, shape={"dimension": [{"start": 1, "end": 0}]})),
    ("D081", put(ex.grid, shape={"dimension": [{"start": 0, "end": 9}]})),
    ("D082", put(ex.main, use_tpu_dram_for_parameters=True)),
    ("D082", put(ex.grid, cache_on_dram=True)),
    ("D083", put(ex.main, estimated_cycles=5)),
    ("D084", put(ex.main, serialized_model=b"model")),
    ("D085", put(ex.grid, name="grid_variable_output")),
    ("D086", lambda tree: ex.caching(tree).update(parameters=ex.caching(tree)["parameters"][:-1])),
]  # fmt: skip


def container(**values):
    """A `.tflite` whose custom options are this map."""
    return with_options(flexbuffer.write_map({"1": 0, "5": -1, **values}))


def with_options(options, code="edgetpu-custom-op", index=0):
    operator = tflite.Operator(opcode_index=index, inputs=(), outputs=(), custom_options=options)
    graph = tflite.SubGraph(tensors=(), inputs=(), outputs=(), operators=(operator,))
    codes = (tflite.OperatorCode(tflite.CUSTOM, code, 1, tflite.CUSTOM),)
    return write(tflite.Model(3, codes, (graph,), None, (tflite.Buffer(),)), tflite.IDENTIFIER)


def multi(data):
    return write(PackageTable(min_runtime_version=13, serialized_multi_executable=data), IDENTIFIER, PAGE)


PACKAGE = build(ex.edges())
FILES = [
    ("D001", b""),
    ("D001", b"1234567"),
    ("D001", wrap(PACKAGE)[:1000]),
    ("D001", with_options(b"", code="other")),
    ("D001", with_options(flexbuffer.write_map({"4": PACKAGE}), index=1)),
    ("D002", with_options(None)),
    ("D002", with_options(b"\0\0\1")),
    ("D002", container()),
    ("D002", container(**{"4": b""})),
    ("D002", container(**{"4": 5})),
    ("D002", with_options(flexbuffer.write_map({"4": PACKAGE})[:-1])),
    ("D003", container(**{"4": PACKAGE, "6": b"chip", "7": ()})),
    ("D003", container(**{"4": PACKAGE, "6": (), "7": ()})),
    ("D003", container(**{"4": PACKAGE, "6": (18, 18), "7": ()})),
    ("D004", container(**{"2": b"", "4": PACKAGE})),
    ("D005", container(**{"4": PACKAGE, "6": (18, 18), "7": (0,)})),
    ("D010", PACKAGE[:4] + b"DWN2" + PACKAGE[8:]),
    ("D011", PACKAGE[:-4096]),
    ("D011", bytes(4096)),
    ("D016", multi(b"noise" * 100)),
    ("D018", multi(write(MultiExecutable(serialized_executables=(b"noise" * 100,)), page=PAGE))),
    ("D024", PACKAGE + bytes(64)),
]


def rules_of(report):
    return {item.rule for item in report.findings}


@pytest.mark.parametrize("size", [0, 1], ids=["edges", "spots"])
def test_examples_break_no_rule(size):
    package = build(ex.tree(ex.EXAMPLES[size]))
    for source in (package, wrap(package), wrap(package, chips=(18,))):
        report = check(source)
        assert (report.findings, report.verdict) == ((), "ok")


def holds(rule, source):
    report = check(source)
    assert rule in rules_of(report)
    stage = BOOK.rules[rule].stage
    worst = {"rejected": 2, "faulty": 1, "ok": 0}
    assert worst[report.verdict] >= worst[VERDICTS[stage]]
    if VERDICTS[stage] != "ok" and not any(BOOK.rules[r].stage == "E" for r in rules_of(report) - {rule}):
        assert report.verdict == VERDICTS[stage]
    for item in report.diagnostics:
        assert item.offset is not None
        assert 0 <= item.offset <= len(source)
        assert item.message
        assert item.hint
        assert item.element


@pytest.mark.parametrize(("rule", "edit"), EDITS, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(EDITS)])
def test_a_change_breaks_its_rule(rule, edit):
    holds(rule, ex.changed(edit))


@pytest.mark.parametrize(("rule", "source"), FILES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(FILES)])
def test_a_file_breaks_its_rule(rule, source):
    holds(rule, source)


def test_every_rule_is_tried():
    assert {rule for rule, _ in (*EDITS, *FILES)} == set(BOOK.rules)


def test_every_rule_says_all_that_a_rule_says():
    for rule in BOOK.rules.values():
        assert rule.stage in BOOK.stages
        assert rule.severity == {"E": "error", "F": "error", "W": "warning", "N": "note"}[rule.stage]
        assert rule.summary
        assert rule.fix
        assert rule.source.startswith("DARWINN")


@pytest.mark.parametrize(
    "edit",
    [
        slices((0, 3, 0, ROWS), (4, 7, 256, ROWS)),
        lambda tree: tree.update(virtual_chip_id=0, min_runtime_version=10),
        lambda tree: ex.hint(tree, 2).update(size_in_bytes=3700),  # an input may end in the last byte's page
        lambda tree: ex.hints(tree)[1].update(direction="INFEED"),
        lambda tree: ex.main(tree)["dma_hints"].update(fully_deterministic=False, hints=ex.hints(tree)[:2]),
    ],
    ids=["slices", "oldest runtime", "input to its page's end", "direction", "incomplete list"],
)
def test_what_is_legal_breaks_nothing(edit):
    assert check(ex.changed(edit)).findings == ()


def test_the_drivers_version_is_an_option():
    newer = ex.changed(put(whole, min_runtime_version=15))
    assert check(newer).verdict == "rejected"
    assert check(newer, runtime=15).verdict == "ok"
    assert check(PACKAGE, runtime=12).verdict == "rejected"


def test_a_name_that_is_near_is_suggested():
    report = check(ex.changed(put(meta(2), name="imagine")))
    assert any("did you mean 'image'" in item.hint for item in report.diagnostics)


def test_outside_fields_are_not_judged_further():
    assert not rules_of(check(ex.changed(put(lambda tree: ex.field(tree, 0), offset_bit=1 << 30)))) & {"D036", "D037"}
