import numpy as np
import pytest

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Operand
from buda_emu.emulator.ops.matmul_sparse import Encoding, TileTerm
from buda_emu.spec.blocking import Blocking
from buda_emu.support.errors import ProgramError, UnsupportedError
from op_examples.encoding import Strip, encoding_tiles, stream
from op_examples.example import assert_same_bits, make_call, operand, reference, run

pytestmark = pytest.mark.tiny
F32 = np.float32
CODE = Encoding("x", tile_bits=4, ublock_bits=3, mblock_rows=4, ublock_rows=2, u_kt=3, weights=5, act_rows=12)


def decode(strips, code=CODE, t=1, tiles=2):
    return list(code.decode(stream(strips, code, tiles).tolist(), t))


# ------------------------------------------------------------------------------------------------- the stream


def test_words_of_a_stream_written_by_hand():
    # index 7, last of t, 2 ublocks; ublock 1: tile 2 at (row 1, inner 2); ublock 3: tiles 0 at (0, 0), 4 at (1, 1)
    words = [7, 1 << 14, 2, 1 << 3 | 1, 2 << 12 | 1 << 2 | 2, 2 << 3 | 3, 0, 4 << 12 | 1 << 2 | 1]
    code = Encoding("x", 4, 3, 4, 2, 3, 5, 24)
    assert list(code.decode(words, 1)) == [TileTerm(0, 3, 2, 23), TileTerm(0, 6, 0, 21), TileTerm(0, 7, 4, 22)]


def test_strip_index_has_30_bits():
    code = Encoding("x", 4, 3, 4, 2, 1, 5, 1 << 30)
    words = [0x2345, 0x3001 | 1 << 14, 1, 1 << 3, 0]
    assert list(code.decode(words, 1)) == [TileTerm(0, 0, 0, 0x30012345)]


def test_slices_end_with_flagged_strips():
    one = [(0, [(0, 0, 1)])]
    strips = [Strip(0, one), Strip(1, one, last_of_t=True), Strip(2, [], last_of_t=True), Strip(3, one, last_of_t=True)]
    assert [(term.b, term.act_row) for term in decode(strips, t=3)] == [(0, 0), (0, 3), (2, 9)]
    assert [(term.b, term.act_row) for term in decode(strips, t=1)] == [(0, 0), (0, 3)], "what follows is not read"


def test_next_strip_after_a_last_in_tile_strip_is_in_the_next_tile():
    strips = [Strip(0, [(0, [(0, 0, 1)])], last_in_tile=True), Strip(1, [(1, [(0, 1, 2)])], last_of_t=True)]
    words = stream(strips, CODE, 2)
    assert words[5:2048].any() == 0
    assert words[2048] == 1
    assert decode(strips) == [TileTerm(0, 0, 1, 0), TileTerm(0, 2, 2, 4)]


def test_a_strip_that_fills_its_tile():
    code = Encoding("x", 4, 3, 8, 16, 128, 5, 1000)
    places = [(row, inner, 0) for row in range(16) for inner in range(127)][:2040]
    full = [(2, places[:2032]), (3, places[:11])]
    strips = [Strip(0, full, last_in_tile=True), Strip(0, [(0, [(0, 5, 1)])], last_of_t=True)]
    assert len(strips[0].words(code)) == 3 + 2033 + 12 == 2048
    terms = decode(strips, code)
    assert len(terms) == 2032 + 11 + 1
    assert terms[-1] == TileTerm(0, 0, 1, 5)


def test_count_0_means_the_greatest_count():
    code = Encoding("x", 4, 14, 4, 2, 2, 5, 4)
    four = [(0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 4)]
    strips = [Strip(0, [(0, four)], last_of_t=True)]
    assert strips[0].words(code)[3] == 0
    assert [term.weight for term in decode(strips, code)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("ublocks", "message"),
    [
        ([(1, [(0, 0, 0)]), (0, [(0, 0, 0)])], "ublock 0 after 1"),
        ([(1, [(0, 0, 0)]), (1, [(0, 1, 0)])], "ublock 1 after 1"),
        ([(4, [(0, 0, 0)])], "ublock 4 after -1, of 4"),
        ([(0, [(0, 1, 0), (0, 0, 0)])], r"tile \[0, 0\] after \[0, 1\]"),
        ([(0, [(1, 0, 0), (0, 2, 0)])], r"tile \[0, 2\] after \[1, 0\]"),
        ([(0, [(1, 0, 0), (1, 0, 0)])], r"tile \[1, 0\] after \[1, 0\]"),
        ([(0, [(2, 0, 0)])], r"tile \[2, 0\] .* of 2 x 3"),
        ([(0, [(0, 3, 0)])], r"tile \[0, 3\] .* of 2 x 3"),
        ([(0, [(0, 0, 5)])], "reads tile 5 of 5"),
    ],
)
def test_streams_out_of_order_are_refused(ublocks, message):
    with pytest.raises(ProgramError, match=f"op x: sparse encoding of strip 1.*{message}"):
        decode([Strip(1, ublocks, last_of_t=True)])


def test_activations_end():
    with pytest.raises(ProgramError, match="activation row 12 of 12"):
        decode([Strip(4, [(0, [(0, 0, 0)])], last_of_t=True)])


def test_a_stream_that_ends_early():
    with pytest.raises(ProgramError, match="ends after 1 of 2 slices"):
        list(CODE.decode([0, 1 << 14, 0], 2))
    with pytest.raises(ProgramError, match="ends inside a strip"):
        list(CODE.decode([0, 0, 1], 1))
    with pytest.raises(ProgramError, match="ends inside a strip"):
        list(CODE.decode([0, 0, 1, 2 << 3, 0], 1))
    with pytest.raises(ProgramError, match="ends after 0 of 1"):
        list(CODE.decode([0] * 4096, 1))


@pytest.mark.parametrize(("u_kt", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (196, 8)])
def test_bits_of_the_inner_index(u_kt, bits):
    assert Encoding("x", 4, 4, 1, 1, u_kt, 1, 1).inner_bits == bits


@pytest.mark.parametrize(
    ("changed", "sparse_tiles", "message"),
    [
        ({"tile_bits": 3}, 9, "sparse tiles"),
        ({"ublock_bits": 2, "mblock_rows": 5}, 1, "ublocks of a core"),
        ({"tile_bits": 12, "ublock_rows": 5}, 1, "rows of a ublock"),
        ({"tile_bits": 15}, 1, "rows of a ublock"),
        ({"tile_bits": 17}, 1, "0 to 16"),
        ({"u_kt": 0}, 1, "u_kt"),
    ],
)
def test_numbers_that_do_not_fit_their_bits(changed, sparse_tiles, message):
    fields = {"tile_bits": 4, "ublock_bits": 3, "mblock_rows": 4, "ublock_rows": 2, "u_kt": 3, **changed}
    code = Encoding("x", **fields, weights=16, act_rows=12)
    with pytest.raises(ProgramError, match=message):
        code.check(sparse_tiles)
    CODE.check(16)


# --------------------------------------------------------------------------------------------------- the product


def identity_call(weights, acts, encoding, blocking, labels=("Float32", "Float32", "RawUInt32"), bias=(), **attributes):
    shapes = [weights, acts, encoding, *bias]
    labels = [*labels, *["Float32"] * len(bias)]
    operands = [Operand(TileMap.identity(shape), label=label) for shape, label in zip(shapes, labels, strict=True)]
    written = {"identity": True, "sparse_tile_ptr_bits": 6, "bias": bool(bias), **attributes}
    return make_call("matmul", operands, blocking=blocking, attributes=written, out_df="Float16_b")


def both(call, *tensors):
    expected = reference(call, tensors)
    assert_same_bits(run(call, tensors), expected)
    return expected[0]


def tiles(shape, values):
    """float32[1, t, R, C, 32, 32] with each tile full of one value."""
    return np.broadcast_to(np.asarray(values, F32).reshape(1, *shape, 1, 1), (1, *shape, 32, 32)).copy()


def test_tiles_come_from_where_strip_and_position_say():
    blocking = Blocking((1, 1), 2, (2, 2), (2, 1), "r")
    call = identity_call((1, 1, 3), (2, 2, 2), (1, 1, 1), blocking, m_k=2, u_kt=2)
    weights = np.zeros((1, 1, 1, 3, 32, 32), F32)
    weights[0, 0, 0, 0] = np.eye(32)
    weights[0, 0, 0, 1] = 2 * np.eye(32)
    weights[0, 0, 0, 2] = np.eye(32)[::-1]
    acts = np.arange(8 * 1024, dtype=F32).reshape(1, 2, 2, 2, 32, 32)
    strips = [
        # row 0 += 2 * acts (0, 1); row 3 += turned acts (0, 0) + acts (0, 1)
        Strip(0, [(0, [(0, 1, 1)]), (1, [(1, 0, 2), (1, 1, 0)])], last_of_t=True),
        # row 2 += acts (1, 0)
        Strip(1, [(1, [(0, 0, 0)])], last_of_t=True),
    ]
    result = both(call, weights, acts, encoding_tiles(call, {(0, 0): strips})[np.newaxis])
    expected = np.zeros((2, 4, 2, 32, 32), F32)
    expected[0, 0] = 2 * acts[0, 0, 1]
    expected[0, 3] = acts[0, 0, 0, :, ::-1] + acts[0, 0, 1]
    expected[1, 2] = acts[0, 1, 0]
    np.testing.assert_array_equal(result, expected)


def test_cores_have_their_own_weights_and_encodings():
    # 2 grid rows, 4 grid columns in 2 groups of 2; one ublock of one tile each
    blocking = Blocking((2, 4), 1, (1, 1), (1, 1), "r")
    call = identity_call((1, 2, 4), (1, 2, 4), (1, 2, 2), blocking, m_k=1, u_kt=2, fracture_factor=2)
    weights = tiles((1, 2, 4), [[1, 2, 3, 4], [5, 6, 7, 8]]) * np.eye(32, dtype=F32)
    acts = tiles((1, 2, 4), [[10, 20, 30, 40], [100, 200, 300, 400]])
    chosen = {(0, 0): (0, 0), (0, 1): (1, 1), (1, 0): (1, 0), (1, 1): (0, 1)}  # core -> (inner, sparse tile)
    cores = {core: [Strip(0, [(0, [(0, inner, tile)])], last_of_t=True)] for core, (inner, tile) in chosen.items()}
    result = both(call, weights, acts, encoding_tiles(call, cores)[np.newaxis])
    np.testing.assert_array_equal(
        result[0, :, :, 0, 0],
        [[1 * 10, 1 * 20, 4 * 300, 4 * 400], [5 * 100, 5 * 200, 8 * 30, 8 * 40]],
    )


def one_product(weights, acts, **others):
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r", others.pop("tile_dim", (32, 32)))
    bias = others.pop("bias", [])
    call = identity_call(
        (1, 1, 1), (1, 1, 1), (1, 1, 1), blocking, m_k=1, u_kt=1, bias=[(1, 1, 1)] * len(bias), **others
    )
    words = encoding_tiles(call, {(0, 0): [Strip(0, [(0, [(0, 0, 0)])], last_of_t=True)]})
    return both(call, weights, acts, words[np.newaxis], *bias)[0, 0, 0]


def test_product_and_sum_are_rounded_apart():
    weights, acts = tiles((1, 1, 1), 0.0), tiles((1, 1, 1), 0.0)
    weights[..., 3, [0, 8]] = -1.0, 1 + 2.0**-12
    acts[..., [0, 8], 4] = 1.0, 1 + 2.0**-12
    assert one_product(weights, acts)[3, 4] == 2.0**-11, "fused it would be 2^-11 + 2^-24"


def test_the_inner_sum_runs_upward():
    weights, acts = tiles((1, 1, 1), 0.0), tiles((1, 1, 1), 1.0)
    weights[..., 0, [0, 1, 5]] = 2.0**24, 1.0, 1.0
    assert one_product(weights, acts)[0, 0] == 2.0**24
    weights[..., 0, [0, 1, 5]] = 1.0, 1.0, 2.0**24
    assert one_product(weights, acts)[0, 0] == 2.0**24 + 2


def test_zero_weights_meet_infinities():
    weights, acts = tiles((1, 1, 1), 0.0), tiles((1, 1, 1), 1.0)
    acts[..., 7, 5] = np.inf
    result = one_product(weights, acts)
    assert np.isnan(result[:, 5]).all()
    assert np.isnan(result).sum() == 32


def test_a_sum_of_zeros_is_positive():
    weights = np.eye(32, dtype=F32).reshape(1, 1, 1, 1, 32, 32)
    assert not np.signbit(one_product(weights, tiles((1, 1, 1), -0.0))).any()
    assert not np.signbit(one_product(-weights, tiles((1, 1, 1), 0.0))).any()
    tiny = one_product(weights * F32(-1e-30), tiles((1, 1, 1), 1e-30))
    assert not np.signbit(tiny).any(), "the product underflows to -0"


def test_bias_is_that_of_a_matmul():
    weights, acts = tiles((1, 1, 1), 0.0), tiles((1, 1, 1), 1.0)
    bias = np.arange(1024, dtype=F32).reshape(1, 1, 1, 1, 32, 32)
    np.testing.assert_array_equal(one_product(weights, acts, bias=[bias]), np.tile(np.arange(32.0), (32, 1)))


def test_result_is_blanked():
    weights, acts = tiles((1, 1, 1), 1.0), tiles((1, 1, 1), 1.0)
    result = one_product(weights, acts, tile_dim=(4, 32))
    assert (result[:4] == 32).all()
    assert (result[4:] == 0).all()


def test_label_is_the_declared_format():
    call = identity_call((1, 1, 1), (1, 1, 1), (1, 1, 1), Blocking((1, 1), 1, (1, 1), (1, 1), "r"), m_k=1, u_kt=1)
    assert ops.implementation("matmul").label(call) == "Float16_b"


def test_the_older_encoding_is_unsupported_by_name():
    labels = ("Float32", "Float32", "RawUInt32")
    operands = [Operand(TileMap.identity((1, 1, 1)), label=label) for label in labels]
    call = make_call("matmul", operands, attributes={"identity": True, "m_k": 1, "u_kt": 1})
    with pytest.raises(UnsupportedError, match="op a_matmul: identity matmul without sparse_tile_ptr_bits"):
        ops.implementation("matmul").shape(call)


def test_words_of_raw_formats_that_the_reference_cannot_unpack():
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    for label, error in (("RawUInt8", UnsupportedError), ("RawUInt16", UnsupportedError), ("Float32", ProgramError)):
        labels = ("Float32", "Float32", label)
        call = identity_call((1, 1, 1), (1, 1, 1), (1, 1, 1), blocking, labels, m_k=1, u_kt=1)
        with pytest.raises(error, match=f"op a_matmul: .*{label}"):
            ops.implementation("matmul").shape(call)


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (((1, 3, 4), (1, 2, 4), (1, 2, 4)), {}, "sparse tiles of 3 x 4 tiles into 2 x 1"),
        (((1, 2, 4), (1, 2, 4), (1, 3, 4)), {}, "encoding of 3 x 4 tiles into 2 x 1"),
        (((1, 2, 3), (1, 2, 4), (1, 2, 4)), {"fracture_factor": 2}, "sparse tiles of 2 x 3 tiles into 2 x 2"),
        (((1, 2, 4), (1, 2, 4), (1, 2, 4)), {"fracture_factor": 3}, "fracture_factor 3 does not divide 4"),
        (((1, 2, 4), (1, 2, 3), (1, 2, 4)), {}, "activations of 2 x 3 tiles into 1 x 4"),
        (((1, 2, 4), (1, 2, 8), (1, 2, 4)), {}, "activations have 8 columns of tiles, the op 4"),
        (
            ((1, 2, 4), (1, 2, 4), (1, 2, 4)),
            {"sparse_tile_ptr_bits": 0, "sparse_ublock_idx_bits": 1},
            "ublocks of a core",
        ),
    ],
)
def test_operands_that_do_not_fit(shapes, attributes, message):
    call = identity_call(*shapes, Blocking((2, 4), 1, (3, 1), (1, 1), "r"), m_k=1, u_kt=2, **attributes)
    with pytest.raises(ProgramError, match=f"op a_matmul: .*{message}"):
        ops.implementation("matmul").shape(call)


def test_what_the_parser_forbids_is_not_run():
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    for word in ("accumulate", "requant", "dequant"):
        call = identity_call((1, 1, 1), (1, 1, 1), (1, 1, 1), blocking, m_k=1, u_kt=1, **{word: True})
        with pytest.raises(UnsupportedError, match=word):
            ops.implementation("matmul").shape(call)


def test_the_number_of_inputs():
    call = make_call("matmul", [operand((1, 1, 1))] * 2, attributes={"identity": True})
    with pytest.raises(ProgramError, match="needs 3 inputs, it has 2"):
        ops.implementation("matmul").shape(call)


# ----------------------------------------------------------------------------------------------- real encodings


def words_of(path):
    return np.fromfile(path, "<u2").tolist()


def test_an_encoding_written_by_the_compiler(corpus):
    folder = corpus / "pytorch/matmul_ident/sanity"  # its netlist says m_k 4, u_kt 2, mblock [4, 4], ublock [2, 2]
    code = Encoding("op0", 10, 10, 4, 2, 2, weights=128, act_rows=8)
    code.check(128)
    terms = list(code.decode(words_of(folder / "input2_encoding.0.bin"), 1))
    assert {term.act_row for term in terms} <= set(range(8))
    assert {term.row for term in terms} <= set(range(8))
    weights = np.fromfile(folder / "input0_sparse.0.bin", F32).reshape(32, 128, 32).swapaxes(0, 1)
    used = weights[sorted({term.weight for term in terms})]
    assert used.any(axis=(1, 2)).all(), "the encoding names no empty tile"
    assert not weights[max(term.weight for term in terms) + 1 :].any(), "and leaves none out"


@pytest.mark.parametrize(("case", "dims"), [("single_tile", (1, 1, 1)), ("16x16_t_9_inner_r_2_inner_c_2", (4, 2, 1))])
def test_encodings_of_the_old_kind_are_refused(corpus, case, dims):
    code = Encoding("sparse0", 0, 0, *dims, weights=10, act_rows=144)
    with pytest.raises(ProgramError, match="op sparse0: sparse encoding"):
        code.check(10)
    with pytest.raises(ProgramError, match="op sparse0: sparse encoding"):
        list(code.decode(words_of(corpus / "pytorch/matmul_ident" / case / "lc.input_tensor.sparse0.1.0.bin"), 1))
