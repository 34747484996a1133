import pytest

from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.ops import OP_TYPES
from netlist.netlist_texts import NETLIST, edited, found, rules

INPUTS = {"add": 2, "matmul": 2, "depthwise": 2, "splice": 2, "topk": 2, "embedding": 2, "multiply": 2}


def with_attributes(op_type: str, attributes: str) -> str:
    """The netlist with an op of that type and those attributes."""
    inputs = INPUTS.get(op_type, 1)
    text = edited("type: nop", f"type: {op_type}, attributes: {attributes}")
    text = text.replace("inputs: [src]", f"inputs: [{', '.join(['src'] * inputs)}]")
    return text.replace("in_df: [Float16_b]", f"in_df: [{', '.join(['Float16_b'] * inputs)}]")


def read(op_type: str, attributes: str) -> Attributes:
    """The attributes that are read; other rules may refuse the op."""
    from buda_emu.netlist.reader import read_document
    from buda_emu.netlist.yaml_reader import read_tree

    document = read_document(read_tree(with_attributes(op_type, attributes)), "net.yaml", None)
    assert not document.diagnostics
    return document.graphs["fwd"].ops[0].attributes


def reading_rules(op_type: str, attributes: str, arch: str | None = None) -> list[str]:
    """The rules that reading alone reports."""
    from buda_emu.netlist.reader import read_document
    from buda_emu.netlist.yaml_reader import read_tree

    document = read_document(read_tree(with_attributes(op_type, attributes)), "net.yaml", arch)
    return [item.rule for item in document.diagnostics]


SAMPLES = {
    "int": ("1", 1), "float": ("0.5", 0.5), "bool": ("true", True), "text": ("abc", "abc"), "ints": ("[0]", (0,)),
}  # fmt: skip


READABLE = [name for name, spec in ATTRIBUTES.items() if spec.kind in SAMPLES or spec.kind == "word"]


@pytest.mark.parametrize("name", READABLE)
def test_every_attribute_is_read_where_it_is_legal_and_refused_elsewhere(name: str) -> None:
    spec = ATTRIBUTES[name]
    before = "dim: z, accumulate: true, " if name == "z" else ""
    text, value = (spec.words[0], spec.words[0]) if spec.kind == "word" else SAMPLES[spec.kind]
    for op_type in OP_TYPES:
        if spec.types is None or op_type in spec.types:
            prefix = before if not (name == "z" and op_type == "fused_op") else ""
            prefix = {"reduce": "dim: z, ", "matmul": "accumulate: true, "}.get(op_type, "") if prefix else ""
            if name == "min_buffer_input":
                text, value = "0", 0
            if op_type == "splice":
                prefix = "input0: [0, 1, 1], input1: [0, 1, 1], "
            attributes = read(op_type, f"{{{prefix}{name}: {text}}}")
            assert getattr(attributes, name) == value
            assert name in attributes.given
        else:
            assert "V032" in reading_rules(op_type, f"{{{name}: {text}}}")


def test_attributes_that_are_not_written_have_their_defaults() -> None:
    assert read("nop", "{m_k: 1}") == Attributes(given=frozenset({"m_k"}), m_k=1)
    assert read("lrelu", "{m_k: 1}").slope == 0.01
    assert read("matmul", "{m_k: 1}").fracture_factor == 1


@pytest.mark.parametrize("attributes", ["{}", "", "[]", "5"])
def test_attributes_need_an_entry(attributes: str) -> None:
    assert reading_rules("nop", attributes) == ["V032"]


@pytest.mark.parametrize(
    ("op_type", "attributes", "rule", "text"),
    [
        ("nop", "{foo: 1}", "V032", "foo"),
        ("nop", "{k: 4}", "V032", "k"),
        ("nop", "{inputs: 4}", "V032", "inputs"),
        ("nop", "{input0: [0, 1, 1]}", "V032", "input0"),
        ("nop", "{m_k: x}", "V180", "x"),
        ("nop", "{bias: 1}", "V181", "1"),
        ("nop", "{zero_point: 0x10}", "V182", "0x10"),
        ("nop", "{vector: [r]}", "V037", "[r]"),
        ("fused_op", "{fused_op_id: {a: 1}}", "V037", "{a: 1}"),
        ("nop", "{relu_threshold: -1}", "V037", "-1"),
        ("nop", "{ingress_channels: []}", "V037", "[]"),
        ("nop", "{ingress_channels: 3}", "V183", "3"),
        ("nop", "{dest_device: -1}", "V037", "-1"),
        ("dropout", "{p: 1.5}", "V037", "1.5"),
        ("dropout", "{p: -0.5}", "V037", "-0.5"),
        ("nop", "{vector: z}", "V036", "z"),
        ("nop", "{stoch_rnd_mode: foo}", "V189", "foo"),
        ("exp", "{sfpu_execution_thread: unpack}", "V188", "unpack"),
        ("nop", "{relu_en: true, relu_mode: foo}", "V187", "foo"),
        ("nop", "{relu_en: true, relu_mode: none}", "V187", "none"),
        ("nop", "{kernel_broadcast: {input_5: 1}}", "V186", "input_5"),
        ("nop", "{kernel_broadcast: {input0: 1}}", "V186", "input0"),
        ("nop", "{kernel_broadcast: {input_0: x}}", "V180", "x"),
        ("nop", "{kernel_broadcast: [1]}", "V186", "[1]"),
        ("nop", "{single_tile: [7]}", "V186", "[7]"),
        ("reduce", "{dim: x, type: max}", "V034", "x"),
        ("reduce", "{dim: r, type: avg}", "V034", "avg"),
        ("reduce", "{z: 2, dim: z, type: max}", "V032", "z"),
    ],
)
def test_values_that_are_refused(op_type: str, attributes: str, rule: str, text: str) -> None:
    (finding,) = found(with_attributes(op_type, attributes))
    assert (finding.rule, finding.text) == (rule, text)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("nop", "{sfpu_op: foo}"),  # NETLIST 11.2 B1
        ("nop", "{vector: x}"),  # B2
        ("nop", "{relu_mode: foo}"),  # 11.3 C11
        ("nop", "{relu_mode: foo, relu_en: true}"),
        ("topk", "{k: 32, sort: foo}"),
        ("fused_op", "{dim: x}"),
        ("nop", "{kernel_broadcast: 4}"),  # B5
    ],
)
def test_words_that_mean_not_given(op_type: str, attributes: str) -> None:
    values = read(op_type, attributes)
    assert (values.sfpu_op, values.vector, values.relu_mode, values.sort, values.dim) == ("", "", "", "", "")


def test_not_a_number_passes_every_range() -> None:
    assert reading_rules("dropout", "{p: .nan, relu_threshold: .nan}") == []
    assert reading_rules("matmul", "{min_buffer_input: -1}") == []


def test_min_buffer_input_depends_on_the_type() -> None:
    assert reading_rules("matmul", "{min_buffer_input: 1}") == []
    assert reading_rules("matmul", "{min_buffer_input: 2}") == ["V037"]
    assert reading_rules("depthwise", "{min_buffer_input: 1}") == ["V037"]


def test_num_nz_strips_has_one_number_for_each_core() -> None:
    assert reading_rules("matmul", "{num_nz_strips: [3]}") == []
    assert reading_rules("matmul", "{num_nz_strips: [3, 4]}") == ["V037"]


def test_z_looks_at_what_stands_before_it() -> None:
    # OPS 6.14
    assert reading_rules("reduce", "{dim: z, z: 2}") == []
    assert reading_rules("matmul", "{accumulate: true, z: 2}") == []
    assert reading_rules("matmul", "{accumulate: false, z: 2}") == ["V032"]
    assert reading_rules("matmul", "{z: 2, accumulate: true}") == ["V032"]


def test_the_second_stochastic_key_counts() -> None:
    assert read("matmul", "{srnd_fpu_en: true}").stoch_rnd_mode == "fpu"
    assert read("matmul", "{srnd_fpu_en: true, stoch_rnd_mode: none}").stoch_rnd_mode == "none"
    assert read("matmul", "{stoch_rnd_mode: all, srnd_fpu_en: true}").stoch_rnd_mode == "fpu"


def test_grayskull_has_no_stochastic_rounding() -> None:
    assert reading_rules("matmul", "{stoch_rnd_mode: pack}", "grayskull") == ["V189"]
    assert reading_rules("matmul", "{srnd_fpu_en: true}", "grayskull") == ["V189"]
    assert reading_rules("matmul", "{stoch_rnd_mode: none, srnd_fpu_en: false}", "grayskull") == []


def test_kernel_broadcasts_of_one_input() -> None:
    # NETLIST 1.4, 11.3 C1 (M745, M746)
    assert read("add", "{kernel_broadcast: {input_0: 4, input_1: 8}}").kernel_broadcast == ((0, 4), (1, 8))
    both = read("add", "{kernel_broadcast: {input_0: 4}, kernel_broadcast_per_t: {input_1: 2}}")
    assert (both.kernel_broadcast, both.kernel_broadcast_per_t) == (((0, 4),), ((1, 2),))
    later = read("add", "{kernel_broadcast: {input_0: 4, input_1: 8}, single_tile: [1]}")
    assert (later.kernel_broadcast, later.single_tile) == (((0, 4),), (1,))
    for twice in (
        "{kernel_broadcast: {input_0: 4, input_0: 4}}",
        "{kernel_broadcast: {input_0: 4}, kernel_broadcast: {input_0: 4}}",
        "{kernel_broadcast: {input_0: 4}, kernel_broadcast_per_t: {input_0: 4}}",
        "{single_tile: [0], kernel_broadcast: {input_0: 4}}",
    ):
        assert reading_rules("add", twice) == ["V186"]


def test_splice_pieces() -> None:
    pieces = "input0: [0, 2, 2], input1: [1, 1, 4]"
    assert read("splice", f"{{granularity: t, {pieces}}}").inputs == ((0, (0, 2, 2)), (1, (1, 1, 4)))
    assert read("splice", f"{{{pieces}}}").granularity == "ublock"


@pytest.mark.parametrize(
    "attributes",
    [
        "{input0: [0, 2], input1: [0, 2, 2]}",
        "{input0: [0, 2, 2]}",
        "{input0: [0, 2, 2], input8: [0, 2, 2]}",
        "{input0: [0, 2, 2], input3: [0, 2, 2]}",
        "{input0: [0, 2, 2], input1: [0, 2, 2], input2: [0, 2, 2]}",
        "{input0: [0, 0, 2], input1: [0, 2, 2]}",
        "{input0: [0, 2, 0], input1: [0, 2, 2]}",
        "{input0: [-1, 2, 2], input1: [0, 2, 2]}",
        "{input0: 5, input1: [0, 2, 2]}",
        "{granularity: x, input0: [0, 2, 2], input1: [0, 2, 2]}",
    ],
)
def test_splices_that_are_refused(attributes: str) -> None:
    assert reading_rules("splice", attributes) == ["V035"]


def test_a_splice_without_attributes_is_refused() -> None:
    assert rules(NETLIST.replace("type: nop", "type: splice")) == ["V035"]


def test_an_unknown_type_is_not_judged_twice() -> None:
    assert reading_rules("slice", "{granularity: t, input0: [0, 2, 2]}") == []
    assert reading_rules("matmull", "{l1_acc: true}") == []


def test_a_hint_names_the_types_that_have_the_attribute() -> None:
    (finding,) = found(with_attributes("nop", "{k: 4}"))
    assert finding.diagnostic.hint == "it belongs to topk"
