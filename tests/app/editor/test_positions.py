"""Places of a text in the client's units, held against the library's own way, which splits the text for each."""

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from buda_emu.app.editor.server import Positions

TEXTS = ["", "a: b\nlonger: [1, 2]\n\nlast", "a: é\r\nsmile: 😀 x\r\n", "no\x85break\u2028here\n"]


@pytest.mark.parametrize("encoding", [*lsp.PositionEncodingKind])
@pytest.mark.parametrize("text", TEXTS)
def test_every_place_is_the_librarys(text, encoding):
    codec = PositionCodec(encoding)
    document = TextDocument("file:///net.yaml", text, position_codec=codec)
    positions = Positions(document)
    for line in range(6):
        for column in range(20):
            place = lsp.Position(line, column)
            assert positions.to_client(line + 1, column + 1) == codec.position_to_client_units(document.lines, place)
            found = codec.position_from_client_units(document.lines, lsp.Position(line, column))
            assert positions.of_client(place) == (found.line + 1, found.character + 1)


def test_a_text_is_split_once():
    class Counted(TextDocument):
        asked = 0

        @property
        def lines(self):
            self.asked += 1
            return super().lines

    document = Counted("file:///net.yaml", TEXTS[2])
    positions = Positions(document)
    for line in range(5):
        positions.range(line, 1, line, 3)
        positions.of_client(lsp.Position(line, 2))
    assert document.asked == 1
