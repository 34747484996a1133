"""The language server of netlists, `buda-emu lsp`, with positions in the client's units."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from buda_emu.app.editor.completion import Offer, complete
from buda_emu.app.editor.hover import hover
from buda_emu.app.editor.names import Name
from buda_emu.app.editor.outline import TOKENS, Part, foldings, hints, parts, semantic_tokens
from buda_emu.app.editor.picture import picture_at
from buda_emu.app.editor.place import Place, place_at
from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.fields import INSTRUCTIONS
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import UnreadableError
from buda_emu.netlist.yaml_text import word
from buda_emu.spec.varinst import OPCODES
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import Fix
from buda_emu.support.line_changes import line_changes
from buda_emu.support.version import __version__


class Positions:
    """Conversion of positions in one version of a text, whose lines are split once: a large text has some hundred
    thousand places."""

    def __init__(self, document: TextDocument) -> None:
        self._lines = document.lines
        self._codec = document.position_codec
        self._plain = document.source.isascii()  # a character is a unit in every encoding

    def of_client(self, position: lsp.Position) -> tuple[int, int]:
        """Return line and column, from 1 and in characters, of a position in the client's units."""
        converted = self._codec.position_from_client_units(self._lines, position)
        return converted.line + 1, converted.character + 1

    def to_client(self, line: int, column: int) -> lsp.Position:
        """Return the position of a line and column in the client's units; past the end of the text, the end."""
        row = max(line - 1, 0)
        before = max(column - 1, 0)
        if self._plain and row < len(self._lines):
            return lsp.Position(row, min(before, len(self._lines[row])))
        return self._codec.position_to_client_units(self._lines, lsp.Position(row, before))

    def range(self, line: int, column: int, end_line: int, end_column: int) -> lsp.Range:
        """Return a range in the client's units."""
        return lsp.Range(self.to_client(line, column), self.to_client(end_line, end_column))


_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as the protocol counts lines; Python and YAML end lines at further characters."""


def line_edits(uri: str, before: str, after: str) -> lsp.WorkspaceEdit:
    """Return an edit of the workspace that replaces, in the text at `uri`, the lines that differ between two
    versions."""
    old = _LINE.findall(before)
    new = _LINE.findall(after)
    edits = [
        lsp.TextEdit(
            lsp.Range(lsp.Position(change.old_start, 0), lsp.Position(change.old_end, 0)),
            "".join(new[change.new_start : change.new_end]),
        )
        for change in line_changes(old, new)
    ]
    return lsp.WorkspaceEdit({uri: edits})


class AnsweringProtocol(LanguageServerProtocol):
    """A protocol that also answers a request whose parameters cannot be read; the library only logs it."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Parse a message, and answer a request that cannot be parsed with an error. Raises the library's
        exceptions."""
        try:
            return super().structure_message(data)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        except Exception:
            if "method" in data and isinstance(data.get("id"), int | str):
                self._send_response(data["id"], error=JsonRpcInvalidParams().to_response_error())
            raise


PAUSE: Final = 0.05  # seconds without a change after which a text is checked
SLICE: Final = 0.01  # seconds after which a check lets requests through
PICTURE: Final = "buda/picture"
"""Request of the extension: {uri, line} -> {svg, lines, shown}, the grid of the epoch that a line is in."""
_SEVERITIES: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
_KINDS: Final = {
    "section": lsp.SymbolKind.Namespace, "queue": lsp.SymbolKind.Array, "graph": lsp.SymbolKind.Module,
    "op": lsp.SymbolKind.Function, "program": lsp.SymbolKind.Method, "variable": lsp.SymbolKind.Variable,
    "fused op": lsp.SymbolKind.Class,
}  # fmt: skip
_OFFERS: Final = {
    "key": lsp.CompletionItemKind.Field, "word": lsp.CompletionItemKind.EnumMember,
    "queue": lsp.CompletionItemKind.Class, "op": lsp.CompletionItemKind.Function,
    "graph": lsp.CompletionItemKind.Module, "fused op": lsp.CompletionItemKind.Struct,
    "variable": lsp.CompletionItemKind.Variable,
}  # fmt: skip


class _PlaceParams(Protocol):
    """Parameters of a request about one place."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


class NetlistServer(LanguageServer):
    """Server that holds the open texts. A text is checked when nobody has typed for a moment; requests read the
    newest version."""

    def __init__(self) -> None:
        super().__init__("buda-emu", __version__, protocol_cls=AnsweringProtocol)  # pyright: ignore[reportUnknownMemberType]
        self._texts: dict[str, tuple[int | None, OpenText, Positions]] = {}
        self._readers: dict[str, TreeReader] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._sound: dict[str, Netlist] = {}

    def text(self, uri: str) -> OpenText:
        """Return the newest version of a text."""
        return self._newest(uri)[0]

    def positions(self, uri: str) -> Positions:
        """Return the converter of positions for the newest version of a text."""
        return self._newest(uri)[1]

    def _newest(self, uri: str) -> tuple[OpenText, Positions]:
        """Return the text that the client has open as `uri`, and the conversion of its positions; both are made again
        only after a change. Raise JsonRpcInvalidParams if no text is open under that URI."""
        if uri not in self.workspace.text_documents:
            raise JsonRpcInvalidParams(f"no text is open as {uri}")
        document = self.workspace.get_text_document(uri)
        version, newest, positions = self._texts.get(uri, (None, None, None))
        if newest is None or positions is None or version != document.version or newest.text != document.source:
            reader = self._readers.setdefault(uri, TreeReader())
            last = newest.known_netlist if newest is not None else None
            newest = OpenText(document.source, _path(uri), reader, last)
            positions = Positions(document)
            self._texts[uri] = (document.version, newest, positions)
        return newest, positions

    def check_later(self, uri: str) -> None:
        """Check a text when it has not changed for `PAUSE` seconds; a change meanwhile starts the wait again."""
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri))

    async def _check(self, uri: str) -> None:
        """Check the text after a pause, in short slices between which other requests are answered, and publish the
        findings. A further change cancels this task."""
        await asyncio.sleep(PAUSE)
        text = self.text(uri)
        while text.check(SLICE):  # another change ends it
            await asyncio.sleep(0)
        self.publish(uri)
        self._waiting.pop(uri, None)

    def publish(self, uri: str) -> None:
        """Check the newest version of a text to its end, and send the findings to the client."""
        text, positions = self._newest(uri)
        diagnostics = [_diagnostic(positions, finding) for finding in text.findings]
        self.drawable(uri)
        version = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def drawable(self, uri: str) -> Netlist | None:
        """Return the netlist of the last version of a text without errors, which a picture shows; None if there has
        been none. Checks the newest version to its end."""
        text = self.text(uri)
        if text.netlist is not None and not any(finding.severity == "error" for finding in text.findings):
            self._sound[uri] = text.netlist
        return self._sound.get(uri)

    def forget(self, uri: str) -> None:
        """Drop all that is stored of a text that the client has closed, and withdraw its findings."""
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self._texts.pop(uri, None)
        self._readers.pop(uri, None)
        self._sound.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def place(self, uri: str, position: lsp.Position) -> tuple[int, int]:
        """Return line and column, from 1 and in characters, of a position in the client's units."""
        return self.positions(uri).of_client(position)

    def name_range(self, uri: str, name: Name) -> lsp.Range:
        """Return the range of a name in the client's units."""
        return self.positions(uri).range(name.line, name.column, name.line, name.end)


def _path(uri: str) -> str:
    """Return the file path in a URI, or the URI itself if it has none."""
    return unquote(urlparse(uri).path) or uri


def _diagnostic(positions: Positions, finding: Diagnostic) -> lsp.Diagnostic:
    """Convert a finding of the checker to the protocol's Diagnostic, at least one character wide."""
    line = max(finding.line, 1)
    end = max(finding.end_column, finding.column + 1)
    if finding.hint:
        message = f"{finding.message} ({finding.hint})"
    else:
        message = finding.message
    spot = positions.range(line, finding.column, line, end)
    return lsp.Diagnostic(spot, message, _SEVERITIES[finding.severity], finding.rule, source="buda-emu")


def make_server() -> NetlistServer:
    """Return a server with all its features; `start_io` runs it."""
    server = NetlistServer()
    _register_document_features(server)
    _register_hover_features(server)
    _register_name_features(server)
    _register_edit_features(server)
    _register_outline_features(server)
    return server


def _register_document_features(server: NetlistServer) -> None:
    """Let the server check a text when the client opens or changes it, and forget it on closing."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def on_open(params: lsp.DidOpenTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        """Publish the findings of a text that was opened."""
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def on_change(params: lsp.DidChangeTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        """Have a changed text checked after a pause."""
        server.check_later(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def on_close(params: lsp.DidCloseTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        """Drop what is stored of a text that was closed."""
        server.forget(params.text_document.uri)


def _register_hover_features(server: NetlistServer) -> None:
    """Let the server answer requests for hovers, signature help and inlay hints."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def show_hover(params: lsp.HoverParams) -> lsp.Hover | None:  # pyright: ignore[reportUnusedFunction]
        """Return the explanation of what is under the cursor, None if there is none."""
        uri = params.text_document.uri
        markdown = hover(server.text(uri), *server.place(uri, params.position))
        if markdown:
            return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, markdown))
        return None

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(["[", ","]))
    async def signature(  # pyright: ignore[reportUnusedFunction]
        params: lsp.SignatureHelpParams,
    ) -> lsp.SignatureHelp | None:
        """Return the operands of the `varinst` opcode that the cursor is in, None elsewhere."""
        uri = params.text_document.uri
        return _signature_help(place_at(server.text(uri).lines, *server.place(uri, params.position)))

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def show_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:  # pyright: ignore[reportUnusedFunction]
        """Return the inlay hints of the lines that the client shows."""
        uri = params.text_document.uri
        positions = server.positions(uri)
        return [
            lsp.InlayHint(positions.to_client(hint.line, hint.column), hint.text, tooltip=hint.more)
            for hint in hints(server.text(uri), params.range.start.line + 1, params.range.end.line + 1)
        ]

    @server.feature(PICTURE)
    async def picture(params: Any) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Return the grid of the last version without errors, of the epoch whose op is defined on `line` or last before
        it; for each op the line that defines it, and the ops that are `shown`."""
        if not isinstance(getattr(params, "uri", None), str) or not isinstance(getattr(params, "line", None), int):
            raise JsonRpcInvalidParams(f"{PICTURE} takes a uri and a line")
        return picture_at(server.text(params.uri), server.drawable(params.uri), params.line)


def _signature_help(place: Place) -> lsp.SignatureHelp | None:
    """Return the operands of the program's instruction around a place, for a `varinst` without an opcode those of all
    opcodes; None elsewhere."""
    keys = place.keys
    if len(keys) < 3 or keys[0] != "programs" or keys[2] not in INSTRUCTIONS:
        return None
    if keys[2] != "varinst":
        return lsp.SignatureHelp([lsp.SignatureInformation(keys[2], INSTRUCTIONS[keys[2]].doc)])
    operands = place.levels[-1].items if place.levels else []
    if len(operands) > 1 and operands[1] in OPCODES:
        names = [operands[1]]
    else:
        names = list(OPCODES)
    return lsp.SignatureHelp([_signature_information(name) for name in names], 0, len(operands))


def _signature_information(name: str) -> lsp.SignatureInformation:
    """Return the operands of an opcode of `varinst` as signature help, from the opcode's documentation."""
    shape, _, meaning = OPCODES[name].doc.partition(": ")
    inside = [part.strip() for part in shape.strip("[]").split(",")]
    return lsp.SignatureInformation(shape, meaning, [lsp.ParameterInformation(part) for part in inside])


def _register_name_features(server: NetlistServer) -> None:
    """Let the server go to definitions, list references, and rename."""

    def at(params: _PlaceParams) -> tuple[str, OpenText, Name | None]:
        """Return URI and text of a request, and the name under its cursor, None if there is none."""
        uri = params.text_document.uri
        text = server.text(uri)
        return uri, text, text.names.at(*server.place(uri, params.position))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: lsp.DefinitionParams) -> lsp.Location | None:  # pyright: ignore[reportUnusedFunction]
        """Return where the name under the cursor is defined, None if nowhere in this text."""
        uri, text, name = at(params)
        if name is None:
            return None
        target = text.names.definition(name)
        if target is None:
            return None
        return lsp.Location(uri, server.name_range(uri, target))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def references(params: lsp.ReferenceParams) -> list[lsp.Location]:  # pyright: ignore[reportUnusedFunction]
        """Return all places of the name under the cursor, its definition only if the client wants it."""
        uri, text, name = at(params)
        if name is None:
            return []
        places = text.names.same(name)
        if not params.context.include_declaration:
            places = [place for place in places if not place.defines]
        return [lsp.Location(uri, server.name_range(uri, place)) for place in places]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(params: lsp.PrepareRenameParams) -> lsp.Range | None:  # pyright: ignore[reportUnusedFunction]
        """Return the range of the name under the cursor, None if it cannot be renamed, as it is not defined in this
        text."""
        uri, text, name = at(params)
        if name is not None and text.names.definition(name) is not None:
            return server.name_range(uri, name)
        return None

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:  # pyright: ignore[reportUnusedFunction]
        """Return the edits that rename what is under the cursor, None if that is no name. Raise JsonRpcInvalidParams
        if the new name is refused."""
        uri, text, name = at(params)
        if name is None:
            return None
        problem = rename_problem(text, name, params.new_name)
        if problem:
            raise JsonRpcInvalidParams(problem)
        edits = [lsp.TextEdit(server.name_range(uri, place), params.new_name) for place in text.names.same(name)]
        return lsp.WorkspaceEdit({uri: edits})


def rename_problem(text: OpenText, name: Name, new: str) -> str:
    """Return why an object cannot get the name `new`, as text for the user; "" if it can."""
    is_variable = name.kind == "variable"
    if not new or word(new) != new or new.startswith("$") != is_variable or ("$" in new) != is_variable:
        problem = f"'{new}' is not a valid {name.kind} name"
        if is_variable:
            problem += ": it begins with $"
        return problem
    kinds = (name.kind,)
    if name.kind in ("queue", "op"):
        kinds = ("queue", "op")  # an op reads both by their names
    for kind in kinds:
        if any(definition.text == new for definition in text.names.definitions(kind, name.scope)):
            return f"'{new}' is the name of another {name.kind}"
    return ""


def _register_edit_features(server: NetlistServer) -> None:
    """Let the server complete, fix and format texts."""

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions([" ", "[", "{", ",", ":", "$"]))
    async def completion(params: lsp.CompletionParams) -> lsp.CompletionList:  # pyright: ignore[reportUnusedFunction]
        """Return the completions at the cursor, in the order in which they were offered."""
        uri = params.text_document.uri
        text = server.text(uri)
        (line, column) = server.place(uri, params.position)
        place = place_at(text.lines, line, column)
        spot = server.positions(uri).range(line, place.column, line, column)
        offers = complete(text, line, column)
        return lsp.CompletionList(False, [_completion_item(number, offer, spot) for number, offer in enumerate(offers)])

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
    )
    async def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:  # pyright: ignore[reportUnusedFunction]
        """Return the quick fixes of the findings on the selected lines, and an action that makes all safe fixes of
        the text, as far as the client asked for these kinds."""
        requested = params.context.only or [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]
        kinds = [_kind_text(kind) for kind in requested]
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        return _code_actions(server, params.text_document.uri, kinds, lines)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def formatting(  # pyright: ignore[reportUnusedFunction]
        params: lsp.DocumentFormattingParams,
    ) -> list[lsp.TextEdit] | None:
        """Return the edits that give the text its standard layout, none if it has that; None for a text that is not
        valid YAML."""
        uri = params.text_document.uri
        text = server.text(uri).text
        try:
            after = format_text(text)
        except UnreadableError:
            return None  # the findings say why
        if after != text:
            return [*(line_edits(uri, text, after).changes or {}).get(uri, [])]
        return []


def _code_actions(server: NetlistServer, uri: str, kinds: Sequence[str], lines: range) -> list[lsp.CodeAction]:
    """Return the actions of these kinds: the quick fixes of findings on `lines`, which count from 1, and all safe fixes
    of the text at once, if it has any."""
    text = server.text(uri)
    fixes = [(finding, finding.fix) for finding in text.fixable if finding.fix is not None]
    code_actions: list[lsp.CodeAction] = []
    if any(kind.startswith("quickfix") for kind in kinds):
        code_actions += [_quick_fix(server, uri, finding, fix) for finding, fix in fixes if finding.line in lines]
    is_fix_all_requested = any("source.fixAll".startswith(kind) for kind in kinds)
    if is_fix_all_requested and any(fix.safe for _, fix in fixes):
        edit = line_edits(uri, text.text, text.after_safe_fixes())
        code_actions.append(lsp.CodeAction("Make all safe fixes", lsp.CodeActionKind.SourceFixAll, edit=edit))
    return code_actions


def _kind_text(kind: "lsp.CodeActionKind | str") -> str:
    """Return the kind of a code action as the protocol's string, whichever form the client's library gives."""
    if isinstance(kind, lsp.CodeActionKind):
        return kind.value
    return kind


def _completion_item(number: int, offer: Offer, spot: lsp.Range) -> lsp.CompletionItem:
    """Convert an offer to the protocol's item, which replaces `spot`, the range of the word being typed. `number` is
    its place in the list; a key that is not being tried out gets a colon."""
    if offer.kind == "key" and not offer.tried:
        new = f"{offer.text}: "
    else:
        new = offer.text
    return lsp.CompletionItem(
        offer.text,
        kind=_OFFERS[offer.kind],
        documentation=offer.doc or None,
        sort_text=f"{number:05}",
        filter_text=offer.text,
        text_edit=lsp.TextEdit(spot, new),
    )


def _quick_fix(server: NetlistServer, uri: str, finding: Diagnostic, fix: Fix) -> lsp.CodeAction:
    """Return the code action that makes one fix of a finding; the title of an unsafe fix asks the user to look at the
    result."""
    positions = server.positions(uri)
    edits = [
        lsp.TextEdit(positions.range(edit.line, edit.column, edit.end_line, edit.end_column), edit.text)
        for edit in fix.edits
    ]
    new = fix.edits[0].text.strip(" ,\n")
    if new:
        title = f"{finding.rule}: write {new}"
    else:
        title = f"{finding.rule}: {fix.title}"
    return lsp.CodeAction(
        title if fix.safe else f"{title} (look at the result)",
        lsp.CodeActionKind.QuickFix,
        [_diagnostic(positions, finding)],
        is_preferred=fix.safe,
        edit=lsp.WorkspaceEdit({uri: edits}),
    )


def _register_outline_features(server: NetlistServer) -> None:
    """Let the server answer requests for outlines, folding ranges and semantic tokens."""

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(  # pyright: ignore[reportUnusedFunction]
        params: lsp.DocumentSymbolParams,
    ) -> list[lsp.DocumentSymbol]:
        """Return the outline of the text."""
        uri = params.text_document.uri
        return _document_symbols(server.positions(uri), parts(server.text(uri)))

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:  # pyright: ignore[reportUnusedFunction]
        """Return the ranges of lines that can be folded."""
        text = server.text(params.text_document.uri)
        return [lsp.FoldingRange(first - 1, last - 1) for first, last in foldings(text)]

    @server.feature(
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        lsp.SemanticTokensLegend([*TOKENS], ["definition"]),
    )
    async def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:  # pyright: ignore[reportUnusedFunction]
        """Return the semantic tokens in the protocol's form: five integers for each token, its place counted from the
        token before."""
        text = server.text(params.text_document.uri)
        positions = server.positions(params.text_document.uri)
        data: list[int] = []
        before = lsp.Position(0, 0)
        for line, column, length, kind, defines in semantic_tokens(text):
            spot = positions.range(line, column, line, column + length)
            start = spot.start
            down = spot.start.line - before.line
            across = start.character - (0 if down else before.character)
            data += [down, across, spot.end.character - start.character, TOKENS.index(kind), int(defines)]
            before = start
        return lsp.SemanticTokens(data)


def _document_symbols(positions: Positions, parts: Iterable[Part]) -> list[lsp.DocumentSymbol]:
    """Convert entries of the outline, with all below them, to the protocol's symbols."""
    return [
        lsp.DocumentSymbol(
            part.name or "(no name)",
            _KINDS[part.kind],
            positions.range(part.line, part.column, part.last, part.last_column),
            positions.range(part.line, part.column, part.line, part.column + len(part.name)),
            part.kind,
            children=_document_symbols(positions, part.parts),
        )
        for part in parts
    ]
