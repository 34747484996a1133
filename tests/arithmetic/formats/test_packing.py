"""Tiles as bytes: order of datums, exponent section, sub-words, header and trailer of FORMATS 2."""

import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.bits import from_bits, to_bits
from buda_emu.arithmetic.formats.packing import pack_tiles, unpack_tiles
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.support.errors import HostError

V1 = (
    "3f800000 bf800000 3f000000 bf000000 3e800000 3fc00000 3fe00000 bfff0000"
    " 3c000000 3b800000 bc800000 3dcccccd bdcccccd 37fba882 00000000 80000000"
)


def random_tiles(count: int, seed: int = 1) -> np.ndarray:
    """Any bit patterns: NaNs, infinities, denormals, both zeros among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, (count, 32, 32), dtype=np.uint32)
    bits[:, :, ::7] &= np.uint32(0xC1FFFFFF)  # values of similar size in a row
    bits[0, 0, :4] = [0, 0x80000000, 0x7F800000, 0x7FA00001]
    return from_bits(bits)


def stored_part(name: str, tiles: np.ndarray, tile_dim: tuple[int, int]) -> np.ndarray:
    """Tiles with everything a tile of that size does not store set to +0."""
    kept = np.zeros_like(tiles)
    if name.startswith("RawUInt"):
        count = tile_dim[0] * tile_dim[1]
        kept.reshape(len(tiles), -1)[:, :count] = tiles.reshape(len(tiles), -1)[:, :count]
    else:
        kept[:, : tile_dim[0], : tile_dim[1]] = tiles[:, : tile_dim[0], : tile_dim[1]]
    return kept


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("alignment", [32, 64])
@pytest.mark.parametrize("tile_dim", LEGAL_TILE_DIMS, ids=[f"{h}x{w}" for h, w in LEGAL_TILE_DIMS])
@pytest.mark.parametrize("name", FORMATS)
def test_round_trip_is_quantisation(name, tile_dim, alignment, header):
    tiles = random_tiles(3)
    image = pack_tiles(name, tiles, tile_dim, alignment, header)
    assert image.dtype == np.uint8
    assert image.shape == (3, tile_bytes(name, *tile_dim, alignment, header))
    expected = stored_part(name, quantise(name, tiles), tile_dim)
    assert (to_bits(unpack_tiles(name, image, tile_dim, alignment, header)) == to_bits(expected)).all()


@pytest.mark.parametrize("tile_dim", LEGAL_TILE_DIMS, ids=[f"{h}x{w}" for h, w in LEGAL_TILE_DIMS])
def test_datums_go_face_by_face(tile_dim):
    height, width = tile_dim
    tiles = np.arange(1024, dtype=np.float32).reshape(1, 32, 32)
    words = pack_tiles("Float32", tiles, tile_dim, header=False)[0].view("<f4")
    face_h, face_w, faces_x = min(16, height), min(16, width), -(-width // 16)
    for i in range(height):
        for j in range(width):
            n = (i // 16 * faces_x + j // 16) * face_h * face_w + i % 16 * face_w + j % 16  # LAYOUT 2
            assert words[n] == tiles[0, i, j]


def test_raw_tiles_are_linear():
    words = np.arange(1024, dtype=np.uint32) * np.uint32(0x01010101)
    tiles = from_bits(words.reshape(1, 32, 32))
    assert (pack_tiles("RawUInt32", tiles, header=False)[0].view("<u4") == words).all()
    assert (pack_tiles("RawUInt16", tiles, header=False)[0].view("<u2") == words.astype(np.uint16)).all()
    assert (pack_tiles("RawUInt8", tiles, (2, 32), header=False)[0] == words.astype(np.uint8)[:64]).all()


def test_header_and_trailer():
    image = pack_tiles("Bfp8_b", np.ones((2, 32, 32), np.float32))
    assert image[1, :16].tolist() == [1120 // 16, 0, 0, 0] + [0] * 12
    assert image[1, 16:80].tolist() == [127] * 64
    assert image[1, 80:1104].tolist() == [0x40] * 1024
    assert image[1, 1104:].tolist() == [0] * 16
    large = pack_tiles("Float32", np.ones((1, 32, 32), np.float32), alignment=64)
    assert large[0, :4].tolist() == [4160 // 16 & 0xFF, 4160 // 16 >> 8, 0, 0]


def test_exponent_bytes_follow_the_datum_rows():
    tiles = np.ones((1, 32, 32), np.float32)
    tiles[0, 0, 16] = 2.0  # face 1, row 0
    tiles[0, 16, 0] = 4.0  # face 2, row 0
    tiles[0, 31, 31] = 8.0  # face 3, row 15
    exponents = pack_tiles("Bfp8", tiles, header=False)[0, :64].tolist()
    assert (exponents[16], exponents[32], exponents[63]) == (16, 17, 18)
    assert exponents.count(15) == 61


def test_exponent_section_of_a_low_tile_is_padded_to_16_bytes():
    image = pack_tiles("Bfp8_b", np.ones((1, 32, 32), np.float32), (2, 32), header=False)
    assert image[0, :16].tolist() == [127] * 4 + [0] * 12
    assert image[0, 16:].tolist() == [0x40] * 64


@pytest.mark.parametrize(
    ("name", "first_bytes"),
    [
        ("Bfp8_b", "40 c0 20 a0 10 60 70 ff 01 00 81 06 86 00 00 00"),
        ("Bfp4_b", "c4 a2 61 f7 00 00 00 00"),
        ("Bfp2_b", "dd d4 00 00"),
        ("Float16_b", "80 3f 80 bf 00 3f 00 bf"),
        ("Float16", "00 3c 00 bc 00 38 00 b8"),
        ("Float32", "00 00 80 3f 00 00 80 bf"),
        ("Tf32", "00 00 80 3f 00 00 80 bf"),
        ("Lf8", "3c bc 38 b8"),
        ("Fp8_e4m3", "3c bc 38 b8"),
        ("Int8", "01 81 01 81 00 02 02 82"),
        ("UInt8", "01 00 01 00 00 02 02 00"),
        ("UInt16", "01 00 00 00 01 00 00 00 00 00 02 00"),
        ("Int32", "01 00 00 00 01 00 00 80 00 00 00 00 01 00 00 80"),
    ],
)
def test_memory_form(name, first_bytes):
    tiles = np.zeros((1, 32, 32), np.float32)
    tiles[0, 0, :16] = from_bits(np.array([int(word, 16) for word in V1.split()], np.uint32))
    start = 64 if name.startswith("Bfp") else 0
    expected = bytes.fromhex(first_bytes)
    assert pack_tiles(name, tiles, header=False)[0, start:].tobytes().startswith(expected)


def test_truncating_pack():
    tiles = np.full((1, 32, 32), 1.0, np.float32)
    tiles[0, :, 1] = from_bits(np.array([0x3F90_0000], np.uint32))[0]  # V2: 5 rounded, 4 truncated
    assert pack_tiles("Bfp4_b", tiles, header=False)[0, 64] == 0x54
    assert pack_tiles("Bfp4_b", tiles, header=False, rounding="truncate")[0, 64] == 0x44


def test_a_wrong_header_or_size_is_refused():
    image = pack_tiles("Float16_b", np.ones((2, 32, 32), np.float32))
    wrong = image.copy()
    wrong[1, 0] ^= 1
    with pytest.raises(HostError, match="header of a Float16_b tile"):
        unpack_tiles("Float16_b", wrong)
    with pytest.raises(HostError, match="2080 bytes"):
        unpack_tiles("Float16_b", image[:, :-1])


def test_packing_no_tiles_gives_no_bytes():
    empty = np.zeros((0, 32, 32), np.float32)
    for name in FORMATS:
        image = pack_tiles(name, empty)
        assert image.shape == (0, tile_bytes(name, 32, 32, 32, header=True))
        assert unpack_tiles(name, image).shape == (0, 32, 32)
