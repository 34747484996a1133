"""Places of a text in the client's units, UTF-16 for instance, and back."""

from difflib import SequenceMatcher

from lsprotocol import types as lsp
from pygls.workspace import TextDocument


class Positions:
    """Of one version of a text, whose lines are split once: a large text has some hundred thousand places."""

    def __init__(self, document: TextDocument) -> None:
        self._lines = document.lines
        self._codec = document.position_codec
        self._plain = document.source.isascii()  # a character is a unit in every encoding

    def of_client(self, position: lsp.Position) -> tuple[int, int]:
        """Line and column, from 1 and in characters, of a position in the client's units."""
        found = self._codec.position_from_client_units(self._lines, position)
        return found.line + 1, found.character + 1

    def to_client(self, line: int, column: int) -> lsp.Position:
        """The position of a line and column in the client's units; past the end of the text the end."""
        row, before = max(line - 1, 0), max(column - 1, 0)
        if self._plain and row < len(self._lines):
            return lsp.Position(row, min(before, len(self._lines[row])))
        return self._codec.position_to_client_units(self._lines, lsp.Position(row, before))

    def range(self, line: int, column: int, end_line: int, end_column: int) -> lsp.Range:
        """A range in the client's units."""
        return lsp.Range(self.to_client(line, column), self.to_client(end_line, end_column))


def line_edits(uri: str, before: str, after: str) -> lsp.WorkspaceEdit:
    """The edits of the lines that differ."""
    old, new = before.splitlines(True), after.splitlines(True)
    match = SequenceMatcher(None, old, new)  # without its heuristic it takes the square of the lines that repeat
    edits = [
        lsp.TextEdit(lsp.Range(lsp.Position(i1, 0), lsp.Position(i2, 0)), "".join(new[j1:j2]))
        for kind, i1, i2, j1, j2 in match.get_opcodes()
        if kind != "equal"
    ]
    return lsp.WorkspaceEdit({uri: edits})
