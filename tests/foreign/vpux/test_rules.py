"""Each X rule refuses what it says, and nothing else speaks; the network itself is accepted."""

import pytest

from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.rules import BOOK
from vpux_documents import (
    BARRIERS,
    BUFFERS,
    CLAMP,
    CMX,
    DDR,
    LOAD,
    MEMREF,
    NETWORK,
    STORE,
    barrier,
    buffer,
    changed,
    dma,
    document,
    function,
    kernel,
    module,
    rules,
    task,
)

BOUNDED = f"!VPUIP.BoundedBuffer<data={CMX}, dynamic_shape=memref<4xsi32, [@CMX_NN, 0]>>"
DISTRIBUTED = '!VPUIP.DistributedBuffer<1x16x4x8xf16, #NHWC, @CMX_NN, {mode = "DUPLICATED", num_clusters = 2 : i64}>'
CACHE = "func.func private @flush({}) attributes {{VPU.task_type = @CACHE_FLUSH}}\n"

HALF = "memref<1x16x4x4xf16, [@CMX_NN, 0]>"
OTHER_TYPES = [CMX.replace("x4x8x", "x8x4x"), CMX.replace("f16", "i16"), CMX.replace(", 0]", ", 1]"), DDR]
"""Types that %in is not defined with: of another shape, of other elements, in other memory."""


def body(*statements: str) -> str:
    return module(function("\n".join([*statements])))


def declared(statement: str) -> str:
    return body(statement)


def shapes(extra: str, count: int = 0, side: str = "Input") -> str:
    made = kernel([("%in", CMX)], [("%out", CMX)], "[-1.0, 2.5]", extra=extra)
    if count:
        operands = ", ".join(f"%s{n} : memref<4xsi32, [@CMX_NN, 0]>" for n in range(count))
        made = made.replace(" on tile 0", f" dynamic{side}Shapes({operands}) on tile 0", 1)
    buffers = [buffer(f"%s{n}", 4096 + 64 * n, "memref<4xsi32, [@CMX_NN, 0]>") for n in range(count)]
    return body(BUFFERS, *buffers, BARRIERS, LOAD, task(made, "%b0", "%b1"))


def many(count: int) -> str:
    made = kernel([("%in", CMX)] * count, [("%out", CMX)])
    return body(BUFFERS, task(made))


REFUSED = {
    "X001": [NETWORK[:-4], changed("memref<1x16x4x8", "memref<1x16y4x8"), changed("-> !VPURT", "!VPURT")],
    "X002": [
        changed("inputs(%arg0", "inputs(%arg9"),
        changed("@VPU.SW::@builtin_k in", "@VPU.SW::@builtin_j in"),
        changed("entryPoint : @VPU.SW::@runtime", "entryPoint : @VPU.SW::@walltime"),
    ],
    "X003": [
        module(function(dma("%arg0", "%arg1", big, big), big))
        for big in ("memref<97x257x673xui8, @DDR>", "memref<16777216xui8, @DDR>")
    ],
    "X004": [
        declared(buffer("%c", 0, DDR)),
        declared(buffer("%c", 0, CMX, "NetworkInput")),
        declared(buffer("%c", 0, CMX, "Nowhere")),
    ],
    "X005": [declared(buffer("%c", 0, f"{MEMREF}>", "DDR", ""))],
    "X006": [
        declared(buffer("%c", 0, DDR, "DDR", "[0]")),
        declared(buffer("%c", 0, f"{MEMREF}, [@DDR, 0]>", "DDR", "")),
    ],
    "X007": [declared(buffer("%c", 0, f"{MEMREF}, @CMX_NN>", "CMX_NN", ""))],
    "X008": [declared(buffer("%c", 0, CMX, index="[0, 1]"))],
    "X009": [declared(buffer("%c", 0, CMX, index="[1]")), declared(buffer("%c", 0, f"{MEMREF}, @CMX_NN>"))],
    "X010": [declared(buffer("%c", 0, DISTRIBUTED, index="[]")), declared(buffer("%c", 0, index="[]"))],
    "X011": [declared(buffer("%c", 0, DISTRIBUTED, index="[0]"))],
    "X012": [
        module(
            function("\n".join([BUFFERS, task(kernel([("%in", CMX)], [("%out", CMX)], name="flush"))])),
            more=CACHE.format(""),
        )
    ],
    "X013": [
        module(
            function(task("VPUIP.SW.Kernel {} @VPU.SW::@flush inputs() outputs() on tile 0 {\nVPUIP.SW.Kernel.run\n}")),
            more=CACHE.format("memref<*xf16>"),
        )
    ],
    "X014": [
        body(BUFFERS, f"%v = VPUIP.SubView %in [0, 0, 0, 0] [1, 8, 4, 8] : {CMX} to {to}")
        for to in ("memref<1x8x4x4xf16, [@CMX_NN, 0]>",)
    ]
    + [
        body(
            BUFFERS,
            f"%v = VPUIP.SubView %in [0, 0, 0, 0] [1, 16, 4, 4] : {CMX} to memref<1x16x4x4xf16, [@CMX_NN, 0]>",
        )
    ],
    "X015": [body(BUFFERS, f"%v = VPUIP.SubView %in [0, 0, 0] [1, 16, 4, 8] : {CMX} to {CMX}")],
    "X016": [
        body(
            f"%g = VPUIP.GroupBoundedBuffer(%arg0) : {DDR} -> {BOUNDED}",
            BUFFERS,
            f"%v = VPUIP.ViewOp %in : {CMX} to {BOUNDED}",
            task(kernel([("%v", BOUNDED)], [("%out", CMX)], extra="dynamicInputShapesMap = array<i32: -1>")),
        )
    ],
    "X017": [
        body(
            BUFFERS,
            f"%v = VPUIP.ViewOp %out : {CMX} to {BOUNDED}",
            task(kernel([("%in", CMX)], [("%v", BOUNDED)], extra="dynamicOutputShapesMap = array<i32: -1>")),
        )
    ],
    "X018": [shapes("dynamicInputShapesMap = array<i32: 1>", 1)],
    "X019": [shapes("dynamicOutputShapesMap = array<i32: 3>", 1, "Output")],
    "X020": [shapes("dynamicInputShapesMap = array<i32: 0, -1>", 1)],
    "X021": [shapes("dynamicOutputShapesMap = array<i32: 0, -1>", 1, "Output")],
    "X022": [shapes("dynamicInputShapesMap = array<i32: -1>", 1), shapes("dynamicInputShapesMap = array<i32: 0>")],
    "X023": [body(BUFFERS, task(dma("%arg0", "%in") + "\n" + dma("%arg0", "%out"))), body("VPURT.Task {\n}")],
    "X024": [body(buffer("%half", 0, HALF), task(dma("%arg0", "%half", target_type=HALF)))],
    "X025": [body(task(dma("%arg0", "%arg1", target_type=DDR).replace("NNDMA", "ConvertDMA")))],
    "X026": [body(task(dma("%arg0", "%arg1", target_type=DDR).replace("NNDMA", "SyncDMA")))],
    "X027": [
        body(
            f"VPUIP.GatherDMA inputs(%arg0 : {DDR}) indices(%arg0 : {DDR}) outputs(%arg1 : {DDR}) -> {DDR}",
        )
    ],
    "X028": [body(barrier("%b0", 64))],
    "X029": [body(BARRIERS, "%v = VPURT.DeclareVirtualBarrier -> !VPURT.Barrier")],
    "X030": [body(BUFFERS, barrier("%b0", 0), *[task(dma("%arg0", "%in"), updates="%b0")] * 129)],
    "X031": [body(BUFFERS, barrier("%b0", 0, "{isFinalBarrier}"), LOAD, task(dma("%in", "%in", CMX), waits="%b0"))],
    "X034": [
        declared(buffer("%c", 0, "memref<1x2xf16, affine_map<(a, b) -> (a, a)>, [@CMX_NN, 0]>")),
        declared(buffer("%c", 0, "memref<1x2xf16, #NHWC, [@CMX_NN, 0]>")),
        module(f"func.func @main(%arg0: memref<1x2xf16, #NHWC, @DDR>, %arg1: {DDR}) {{\nreturn\n}}"),
    ],
    "X035": [
        declared(
            buffer("%c", 0, f"memref<4x8xf16, {{order = affine_map<(a, b) -> (a, b)>, strides = {s}}}, [@CMX_NN, 0]>")
        )
        for s in ("[4, 1]", "[8]", "[8, 0]")
    ],
    "X036": [changed("(%x0, %y0)", "(%in, %y0)"), changed(f"(%x0, %y0) : {CMX}", f"(%x0, %y0) : {CMX[:13]}9xf16>")],
    "X037": [many(9)],
    "X038": [body(BUFFERS, task(dma("%arg0", "%in", attributes="port = 2 : i64")))],
    "X039": [
        body(BUFFERS, f"%r = VPUIP.GenericReshape inputs(%in : {CMX}) -> memref<1x511xf16, [@CMX_NN, 0]>"),
        body(BUFFERS, f"%r = VPUIP.PermuteCast {{}} inputs(%in : {CMX}) -> memref<2x16x4x8xf16, [@CMX_NN, 0]>"),
        body(BUFFERS, f"%r = VPUIP.ShapeCast {{}} inputs(%in : {CMX}) -> memref<512xf16, [@CMX_NN, 0]>"),
    ],
    "X043": [module(function(""), stack=0), module(function(""), stack=-4096)],
    "X044": [
        declared(buffer("%c", 0, f"{MEMREF}, [@CMX_NN, 2]>", index="[2]")),
        body(BUFFERS, task(kernel([("%in", CMX)], [("%out", CMX)], tile=2))),
    ],
    "X032": [declared(buffer("%c", 2 * 1024 * 1024 - 8))],
    "X033": [declared(buffer("%c", 1936 * 1024 - 8))],
    "X047": [
        body(
            BUFFERS,
            f"%v = VPUIP.SubView %in [0, 8, 0, 0] [1, 16, 4, 8] : {CMX} to "
            "memref<1x16x4x8xf16, {order = affine_map<(a, b, c, d) -> (a, b, c, d)>, strides = [512, 32, 8, 1]}, "
            "[@CMX_NN, 0]>",
        )
    ],
    "X049": [
        body(BUFFERS, BARRIERS, task(dma("%arg0", "%in"), waits="%b1", updates="%b0"), CLAMP, STORE),
        body(
            BUFFERS, BARRIERS, LOAD, task(kernel([("%in", CMX)], [("%out", CMX)], "[-1.0, 2.5]"), "%b1", "%b1"), STORE
        ),
    ],
    "X050": [body(BUFFERS, BARRIERS, task(dma("%arg0", "%in")), CLAMP, STORE)],
    "X051": [
        body(BUFFERS, BARRIERS, LOAD.replace(f"%in : {CMX}", f"%in : {other}"), CLAMP, STORE) for other in OTHER_TYPES
    ],
    "X048": [body('%v = "VPUIP.NNDMAX"(%arg0) : (memref<4xf16>) -> memref<4xf16>')],
}
RUNNING = {"X040", "X041", "X042", "X045", "X046"}


def test_network_is_accepted() -> None:
    assert rules(NETWORK) == []
    assert rules(NETWORK, "40XX") == []


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in REFUSED.items() for text in texts])
def test_refused(rule: str, text: str) -> None:
    found = [item for item in vpux.read(text).check("37XX") if not (rule == "X016" and item.rule == "X002")]
    assert [item.rule for item in found] == [rule]
    assert found[0].severity == BOOK.rules[rule].severity
    assert found[0].line > 0
    assert found[0].column > 0


def test_a_circle_is_named_from_its_first_barrier_on() -> None:
    text = body(BUFFERS, BARRIERS, task(dma("%arg0", "%in"), waits="%b1", updates="%b0"), CLAMP, STORE)
    assert [item.message for item in vpux.read(text).check("37XX")] == [
        "task 0 updates %b0 and waits for %b1, task 1 updates %b1 and waits for %b0: these tasks never run"
    ]


def test_every_rule_has_a_case() -> None:
    assert {*REFUSED, *RUNNING} == {*BOOK.rules}


def test_every_rule_says_what_to_do() -> None:
    for rule in BOOK.rules.values():
        assert rule.fix, rule.id
        assert rule.source.startswith("VPUX"), rule.id
        assert rule.stage in BOOK.stages, rule.id


def test_architecture_chooses_limits() -> None:
    assert rules(body(barrier("%b0", 95))) == ["X028"]
    assert rules(body(barrier("%b0", 95)), "40XX") == []
    slots = body(BUFFERS, barrier("%b0", 0), *[task(dma("%arg0", "%in"), updates="%b0")] * 65)
    assert rules(slots) == []
    assert rules(slots, "40XX") == ["X030"]
    assert rules(declared(buffer("%c", 1500 * 1024))) == []
    assert rules(declared(buffer("%c", 1500 * 1024)), "40XX") == ["X033"]


def test_values_are_not_looked_at_beside_skipped_ops() -> None:
    text = body(BUFFERS, "%9 = Some.Op %arg0 {", "}", task(dma("%nobody", "%in")))
    assert rules(text) == ["X048"]


def test_an_unknown_op_is_noted_once_with_the_known_one_that_was_meant() -> None:
    wrong = NETWORK.replace("VPUIP.NNDMA ", "VPUIP.NNDMAX ")
    assert wrong.count("VPUIP.NNDMAX") > 1
    (found,) = document(wrong).check()
    assert (found.rule, found.severity) == ("X048", "note")
    assert found.hint == "did you mean 'VPUIP.NNDMA'?"


def test_an_unknown_type_of_elements_is_noted_once() -> None:
    (finding,) = document(NETWORK.replace("xf16", "xf17")).check()
    assert (finding.rule, finding.severity) == ("X048", "note")
    assert "elements of type f17 are neither checked nor run" in finding.message


def test_a_split_that_cannot_be_read_leaves_the_others() -> None:
    read = document(NETWORK + "\n// -----\nfunc.func @broken( {\n// -----\n" + NETWORK)
    assert [(item.name, item.split) for item in read.functions] == [("main", 0), ("main", 2)]
    found = read.check()
    assert [(item.rule, item.split, item.function) for item in found] == [("X001", 1, "")]


def test_findings_name_split_and_function_and_show_the_line() -> None:
    (found,) = document(NETWORK + "\n// -----\n" + body(barrier("%q", 99))).check()
    assert (found.split, found.function) == (1, "main")
    assert "ConfigureBarrier<99>" in found.source_line
    assert STORE
