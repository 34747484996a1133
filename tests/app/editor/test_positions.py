"""Places of a text in the client's units, held against the library's own way, which splits the text for each."""

import re
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from buda_emu.app.editor.server import Positions, line_edits

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


@given(*[st.lists(st.sampled_from(["a", "b", "\n", "\r", "\r\n", "\x85", "\u2028", "\x0c"])).map("".join)] * 2)
def test_edits_of_lines_count_them_as_clients_do(before, after):
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", before)
    starts = list(accumulate(map(len, lines), initial=0))
    result = before
    for edit in reversed(line_edits("file:///net.yaml", before, after).changes["file:///net.yaml"]):
        result = result[: starts[edit.range.start.line]] + edit.new_text + result[starts[edit.range.end.line] :]
    assert result == after
