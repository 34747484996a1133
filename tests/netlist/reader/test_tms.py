import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Tm
from netlist.netlist_texts import edited, found, rules


def tms(value: str) -> tuple[Tm, ...]:
    """The TMs that a value of input_0_tms reads as."""
    result = check_text(edited("type: nop", f"type: nop, input_0_tms: {value}"))
    assert result.netlist is not None, result.diagnostics
    return result.netlist.ops["copy"].input_tms[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[transpose, transpose]", [("transpose", ()), ("transpose", ())]),
        ("['transpose']", [("transpose", ())]),
        ("[broadcast: {r: 1}, {broadcast: {c: 0x1}}]", [("broadcast", ("r", 1)), ("broadcast", ("c", 1))]),
        ("[hslice: 2, hstack: 2]", [("hslice", (2,)), ("hstack", (2,))]),
        ("[vslice: 2, vstack: 2]", [("vslice", (2,)), ("vstack", (2,))]),
        ("[{hslice: 2, hstack: 2}]", [("hslice", (2,)), ("hstack", (2,))]),
        ("[pad: [0, 0, 1]]", [("pad", (0, 0, 1.0))]),
        # NETLIST 1.6: arguments of one map accumulate
        ("[broadcast: {r: 1, z: 1}]", [("broadcast", ("r", 1)), ("broadcast", ("z", 1, 1))]),
        # NETLIST 11.2 B5, B10
        ("[broadcast: 2]", []),
        ("[hslice: -2]", [("hslice", (-2,))]),
        # CENSUS 2: any scalar is a list without TMs
        ("[]", []), ("None", []), ("", []), ("null", []), ("transpose", []), ("'x'", []),
    ],
)  # fmt: skip
def test_tm_lists(value: str, expected: list[tuple[str, tuple[object, ...]]]) -> None:
    assert [(tm.name, tm.args) for tm in tms(value)] == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("[foo]", "foo"),
        ("[foo: 1]", "foo"),
        ("[hslice]", "hslice"),
        ("[transpose: 1]", "transpose"),
        ("[[hslice, 1]]", "[hslice, 1]"),
        ("{hslice: 1}", "{hslice: 1}"),
        ("[hslice: [1]]", "[1]"),
        ("[hslice: {8}]", "{8}"),
        ("[vslice: 2.0]", "2.0"),
        ("[broadcast: {x: 2}]", "x"),
        ("[broadcast: {r: two}]", "two"),
        ("[broadcast: [r, 2]]", "[r, 2]"),
        ("[pad: [0, 0]]", "[0, 0]"),
        ("[pad: [0, 0, x]]", "[0, 0, x]"),
        ("[pad: 3]", "3"),
        ("[pad: [0, 0, 1.0], pad: [0, 0, 1.0]]", "pad"),
        ("[tile_broadcast: r]", "tile_broadcast"),
    ],
)
def test_malformed_tms(value: str, text: str) -> None:
    (finding,) = found(edited("type: nop", f"type: nop, input_0_tms: {value}"))
    assert (finding.rule, finding.text) == ("V038", text)


@pytest.mark.parametrize("key", ["input_1_tms", "input_-1_tms", "inputs_tms", "input_x_tms", "input0tms", "input__tms"])
def test_the_key_must_name_an_input(key: str) -> None:
    (finding,) = found(edited("type: nop", f"type: nop, {key}: [hslice: 1]"))
    assert (finding.rule, finding.text) == ("V038", key)


def test_the_index_is_the_number_between_the_first_and_last_underscore() -> None:
    result = check_text(edited("type: nop", "type: nop, input_0_more_tms: [hslice: 1]"))
    assert result.netlist is not None
    assert result.netlist.ops["copy"].input_tms == ((Tm("hslice", (1,)),),)


def with_op(op_type: str, inputs: int, index: int, df: str = "Float16_b") -> str:
    """The netlist with another op type that transposes one of its inputs."""
    names = ", ".join(["src"] * inputs)
    formats = ", ".join([df] * inputs)
    text = edited("type: nop", f"type: {op_type}, input_{index}_tms: [transpose], attributes: {{m_k: 1, u_kt: 1}}")
    return text.replace("inputs: [src]", f"inputs: [{names}]").replace("in_df: [Float16_b]", f"in_df: [{formats}]")


@pytest.mark.parametrize(
    ("op_type", "inputs", "index", "allowed"),
    [
        ("matmul", 2, 1, True), ("matmul", 2, 0, False), ("nop", 1, 0, True), ("datacopy", 1, 0, True),
        ("exp", 1, 0, True), ("add", 2, 0, True), ("add", 2, 1, False), ("quantization", 2, 0, True),
        ("ethernet_datacopy", 1, 0, False), ("reduce", 1, 0, False), ("splice", 1, 0, False),
        ("depthwise", 2, 1, False), ("topk", 2, 0, False), ("embedding", 2, 0, False), ("tilizer", 1, 0, False),
        ("fused_op", 1, 0, False),
    ],
)  # fmt: skip
def test_where_a_transpose_may_stand(op_type: str, inputs: int, index: int, allowed: bool) -> None:
    assert ("V038" in rules(with_op(op_type, inputs, index))) is not allowed


def test_a_transpose_needs_an_input_0_that_is_not_int32() -> None:
    # OPS 7.4: input 0's declared format counts, whatever input is transposed
    assert "V038" in rules(with_op("add", 2, 0, "Int32"))
    assert "V038" in rules(with_op("nop", 1, 0, "Int32"))
    assert "V038" not in rules(with_op("matmul", 2, 1, "Int32"))


def test_grayskull_cannot_transpose_a_binary_input() -> None:
    assert rules(with_op("add", 2, 0), "grayskull") == ["V038"]
    assert rules(with_op("add", 2, 0), "wormhole_b0") == []


def test_an_unknown_type_is_not_judged_twice() -> None:
    assert "V038" not in rules(with_op("nopp", 1, 0))


def test_an_odd_number_of_transposes_sets_the_flag() -> None:
    for count in range(4):
        value = f"[{', '.join(['transpose'] * count)}]"
        result = check_text(edited("type: nop", f"type: nop, input_0_tms: {value}"))
        assert result.netlist is not None
        assert result.netlist.ops["copy"].transpose is (count % 2 == 1)
