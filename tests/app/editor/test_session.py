"""Whole sessions with the language server, driven by a client that others wrote."""

import asyncio
import json
import subprocess

import pytest

from lsp_sessions import COMMAND, GOOD, URI, converse, lsp, pytest_lsp
from shared_files import ROOT


def at(text, needle, offset=0, count=1):
    """The position of the `count`th place of a piece of text."""
    index = -1
    for _ in range(count):
        index = text.index(needle, index + 1)
    index += offset
    line = text.count("\n", 0, index)
    return lsp.Position(line, index - text.rfind("\n", 0, index) - 1)


def place(uri, position):
    return {"text_document": lsp.TextDocumentIdentifier(uri), "position": position}


def change(client, uri, version, text):
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(version, uri), [lsp.TextDocumentContentChangeWholeDocument(text)]
        )
    )


def edited(text, edits):
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        start = starts[edit.range.start.line] + edit.range.start.character
        end = starts[edit.range.end.line] + edit.range.end.character
        text = text[:start] + edit.new_text + text[end:]
    return text


def test_findings_come_while_typing_and_go_again():
    async def talk(client, uri):
        assert not client.diagnostics[uri]
        change(client, uri, 2, GOOD.replace("type: matmul", "type: matmull", 1))
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        (found,) = client.diagnostics[uri]
        assert (found.code, found.severity) == ("V051", lsp.DiagnosticSeverity.Error)
        assert found.range.start == at(GOOD, "type: matmul", 6)
        change(client, uri, 3, GOOD.replace("{type: matmul", "{type: [matmul", 1))
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert [item.code for item in client.diagnostics[uri]] == ["V000"]
        change(client, uri, 4, GOOD)
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert not client.diagnostics[uri]

    converse(talk)


def test_many_changes_are_checked_once():
    async def talk(client, uri):
        for version in range(2, 30):
            change(client, uri, version, GOOD + f"# {version}\n")
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert not client.diagnostics[uri]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), 0.5)

    converse(talk)


def test_hover_of_queue_op_field_and_finding():
    async def talk(client, uri):
        async def said(needle, offset=0, count=1):
            found = await client.text_document_hover_async(
                lsp.HoverParams(**place(uri, at(GOOD, needle, offset, count)))
            )
            return found.contents.value if found else ""

        assert "4 entries, each `1 x 64 x 128` Float16_b" in await said("\n  x:", 3)
        assert "bytes in dram, chip 0" in await said("inputs: [x, wq", 9)
        dots = await said("    dots:", 4)
        assert "matmul" in dots
        assert "cycles for one input, modelled" in dots
        assert "output mblocks" in await said("buf_size_mb") or "output buffer in mblocks" in await said("buf_size_mb")
        assert (await said("type: matmul", 7)).endswith("; inputs: 2+")
        assert "modulo wrap" in await said("incwrap", 2)
        assert await said("# Multi-head", 3) == ""

    converse(talk)


def test_definition_references_and_rename():
    async def talk(client, uri):
        use = at(GOOD, "inputs: [q, k]", 9)
        found = await client.text_document_definition_async(lsp.DefinitionParams(**place(uri, use)))
        assert found.range.start == at(GOOD, "\n    q: {", 5)
        both = await client.text_document_references_async(
            lsp.ReferenceParams(context=lsp.ReferenceContext(include_declaration=True), **place(uri, use))
        )
        assert len(both) == 2
        edit = await client.text_document_rename_async(lsp.RenameParams(new_name="query", **place(uri, use)))
        expected = GOOD.replace("\n    q: {", "\n    query: {").replace("[q, k]", "[query, k]")
        assert edited(GOOD, edit.changes[uri]) == expected
        variable = at(GOOD, "$x_local", 3)
        edit = await client.text_document_rename_async(lsp.RenameParams(new_name="$at", **place(uri, variable)))
        assert edited(GOOD, edit.changes[uri]) == GOOD.replace("$x_local", "$at")
        for name in ("wq", "a b", "$q", ""):
            with pytest.raises(Exception, match=r"name of another|not a valid"):
                await client.text_document_rename_async(lsp.RenameParams(new_name=name, **place(uri, use)))

    converse(talk)


def test_completion_offers_words_of_the_place():
    async def talk(client, uri):
        async def offered(text, needle, offset):
            change(client, uri, offered.version, text)
            offered.version += 1
            found = await client.text_document_completion_async(
                lsp.CompletionParams(**place(uri, at(text, needle, offset)))
            )
            return [item.label for item in found.items]

        offered.version = 2
        assert await offered(GOOD.replace("type: queue", "type: ", 1), "type: ", 6) == [
            "queue"
        ]  # a ram needs other settings
        assert await offered(GOOD.replace("[q, k]", "[q, ]", 1), "[q, ]", 4)
        gone = GOOD.replace("      - varinst: [$x_local, incwrap", "      - varinst: [$x_local, inc", 1)
        assert await offered(gone, "[$x_local, inc", 14) == ["inc", "incwrap"]
        broken = GOOD.replace("    dots: {type: matmul, ", "    dots: {type: matmul, mat", 1)
        assert "math_fidelity" not in await offered(broken, "matmul, mat", 11)  # stands there already
        assert "acc_df" not in await offered(broken.replace("matmul, mat", "matmul, a"), "matmul, a", 9)
        assert await offered(GOOD.replace("programs:", "prog:", 1), "\nprog", 5) == ["programs"]

    converse(talk)


def test_quick_fixes_format_and_fix_all():
    wrong = GOOD.replace("type: queue", "type: qeue", 1).replace("  x: {", "  x:   {", 1)

    async def talk(client, uri):
        where = at(wrong, "qeue")
        found = await client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(uri), lsp.Range(where, where), lsp.CodeActionContext(client.diagnostics[uri])
            )
        )
        quick = next(one for one in found if one.kind == lsp.CodeActionKind.QuickFix)
        assert edited(wrong, quick.edit.changes[uri]) == wrong.replace("qeue", "queue")
        whole = next(one for one in found if one.kind == lsp.CodeActionKind.SourceFixAll)
        assert edited(wrong, whole.edit.changes[uri]) == wrong.replace("qeue", "queue")
        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(2, True))
        )
        from buda_emu.netlist.formatter import format_text

        assert edited(wrong, edits) == format_text(wrong)

    converse(talk, wrong)


def test_outline_colours_hints_and_signature():
    async def talk(client, uri):
        document = lsp.TextDocumentIdentifier(uri)
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
        by_name = {one.name: one for one in symbols}
        assert list(by_name) == ["devices", "queues", "graphs", "programs", "test-config"]
        assert [one.name for one in by_name["graphs"].children] == ["scores_epoch", "output_epoch"]
        assert "dots" in [one.name for one in by_name["graphs"].children[0].children]
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
        assert (at(GOOD, "graphs:").line, at(GOOD, "\nprograms:").line - 1) in [
            (one.start_line, one.end_line) for one in folds
        ]
        tokens = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
        assert len(tokens.data) % 5 == 0
        assert len(tokens.data) > 1000
        everything = lsp.Range(lsp.Position(0, 0), lsp.Position(999, 0))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, everything))
        labels = [one.label for one in hints]
        assert any(label.endswith("KiB") for label in labels)
        assert any(label.endswith("cycles") for label in labels)
        assert " 4 x 2 x 1" in labels  # dots reads q in four slices
        signature = await client.text_document_signature_help_async(
            lsp.SignatureHelpParams(**place(uri, at(GOOD, "incwrap, ", 9)))
        )
        assert signature.signatures[0].label == "[out, incwrap, a, wrap]"
        assert signature.active_parameter == 2

    converse(talk)


def test_the_picture_of_the_extension():
    async def talk(client, uri):
        asked = {"uri": uri, "line": at(GOOD, "    dots:").line + 2}
        found = await client.protocol.send_request_async("buda/picture", asked)
        assert "<svg" in found.svg
        assert "dots" in found.shown
        assert "residual" not in found.shown
        assert found.lines.residual == at(GOOD, "    residual:").line + 1
        assert found.lines.dots == at(GOOD, "    dots:").line + 1
        for number, broken in enumerate(("type: softmaxx", "type: matmul, grid_loc: [0, 0], t: 0", "type: [")):
            change(client, uri, number + 2, GOOD.replace("type: matmul", broken, 1))
            again = await client.protocol.send_request_async("buda/picture", asked)
            assert "dots" in again.shown

    converse(talk)


def test_columns_count_in_the_clients_units():
    text = GOOD.replace("queues:", "queues: # \N{MATHEMATICAL BOLD CAPITAL A}", 1).replace(
        "  x: {input: HOST, type: queue",
        "  x: {input: HOST, alias: '\N{MATHEMATICAL BOLD CAPITAL A}', type: qeue",
        1,
    )

    async def talk(client, uri):
        found = next(item for item in client.diagnostics[uri] if item.code == "V013")
        line = text.splitlines()[found.range.start.line]
        before = line[: line.index("qeue")]
        assert found.range.start.character == len(before.encode("utf-16-le")) // 2

    converse(talk, text)


def test_odd_places_leave_the_server_alive():
    async def talk(client, uri):
        far = lsp.HoverParams(**place(uri, lsp.Position(10**6, 10**6)))
        assert await client.text_document_hover_async(far) is None
        with pytest.raises(Exception, match=r".*"):
            await client.protocol.send_request_async("buda/nonsense", {})
        assert await client.text_document_hover_async(lsp.HoverParams(**place(uri, at(GOOD, "\n  x:", 3))))

    converse(talk)


def _message(content, length=None):
    body = json.dumps(content).encode() if isinstance(content, dict) else content
    return b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"processId": None, "rootUri": None, "capabilities": {}},
}  # fmt: skip
BYE = [{"jsonrpc": "2.0", "id": 9, "method": "shutdown"}, {"jsonrpc": "2.0", "method": "exit"}]


ODD_PLACES = [*enumerate([None, [], {}, {"uri": URI, "line": "x"}])]


def _answers(*messages):
    """What a server answers to these messages, by id, when it has ended by itself."""
    data = b"".join(map(_message, [HELLO, *messages, *BYE]))
    done = subprocess.run(COMMAND, input=data, capture_output=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 0
    bodies = [json.loads(part[part.index(b"{") :]) for part in done.stdout.split(b"Content-Length")[1:]]
    return {body["id"]: body for body in bodies if "id" in body and "method" not in body}


def test_malformed_messages_do_not_end_the_session():
    odd = [b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}']
    wrong = {"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": 3}
    place_of = {"textDocument": {"uri": "file:///closed.yaml"}, "position": {"line": 0, "character": 0}}
    closed = {"jsonrpc": "2.0", "id": "6", "method": "textDocument/hover", "params": place_of}
    pictures = [{"jsonrpc": "2.0", "id": 20 + n, "method": "buda/picture", "params": given} for n, given in ODD_PLACES]
    answers = _answers(*odd, wrong, closed, *pictures)
    assert [answers[20 + number]["error"]["code"] for number, _ in ODD_PLACES] == [-32602] * 4
    assert answers[5]["error"]["code"] == -32602
    assert answers["6"]["error"] == {"code": -32602, "message": "no text is open as file:///closed.yaml"}
    assert answers[9]["result"] is None


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Content-Length: 99999999999999999999", "a Content-Length of b'99999999999999999999'"),
        ("Content-Length: " + "9" * 3000, "a Content-Length of b'9999"),
        ("Content-Length: -5", "a Content-Length of b'-5'"),
        ("Content-Length: 5\r\nContent-Length: 5", "a header with Content-Length twice"),
        ("Content-Type: text/plain", "a header without Content-Length"),
        ("\r\n".join(["Content-Type: text/plain"] * 300), "a header without an end"),
        ("GET / HTTP/1.1", "b'GET / HTTP/1.1' in a header"),
        ("x" * 5000, "a header without an end"),
    ],
    ids=["too long", "thousands of digits", "negative", "twice", "no length", "many lines", "http", "no end"],
)
def test_a_header_without_meaning_ends_the_session_with_a_message(header, message):
    data = _message(HELLO) + f"{header}\r\n\r\n{{}}".encode()
    done = subprocess.run(COMMAND, input=data, capture_output=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert f"buda-emu: lsp: the client sent {message}" in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_header_may_be_in_small_letters_with_plain_line_ends():
    body = json.dumps(HELLO).encode()
    data = b"content-length: %d\ncontent-type: application/vscode-jsonrpc\n\n%b" % (len(body), body)
    done = subprocess.run(
        COMMAND, input=data + b"".join(map(_message, BYE)), capture_output=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0
    assert b'"capabilities"' in done.stdout


def test_a_cancelled_request():
    opened = {"uri": URI, "languageId": "yaml", "version": 1, "text": GOOD}
    position = {"line": at(GOOD, "type: ").line, "character": at(GOOD, "type: ", 6).character}
    ask = {"textDocument": {"uri": URI}, "position": position}
    answers = _answers(
        {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": opened}},
        {"jsonrpc": "2.0", "id": 5, "method": "textDocument/completion", "params": ask},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 5}},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 77}},
        {"jsonrpc": "2.0", "id": 6, "method": "textDocument/hover", "params": ask},
    )
    assert answers[5].get("error", {}).get("code") == -32800 or answers[5]["result"]["items"]
    assert "result" in answers[6]
    assert answers[9]["result"] is None


def test_a_client_that_goes_away_ends_the_server():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(COMMAND, cwd=ROOT, **pipes) as server:
        server.stdin.write(_message(HELLO))
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-")
        server.stdin.close()
        server.stdout.close()
        assert server.wait(30) is not None


def test_two_clients_know_nothing_of_each_other():
    async def both():
        clients = [pytest_lsp.make_test_lsp_client() for _ in range(2)]
        texts = [GOOD, GOOD.replace("type: queue", "type: qeue", 1)]
        for client, text in zip(clients, texts, strict=True):
            await client.start_io(*COMMAND)
            await client.initialize_session(
                lsp.InitializeParams(process_id=None, root_uri=None, capabilities=lsp.ClientCapabilities())
            )
            client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(URI, "yaml", 1, text)))
            await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert [len(client.diagnostics[URI]) for client in clients] == [0, 1]
        for client in clients:
            await client.shutdown_session()
            await client.stop()

    asyncio.run(asyncio.wait_for(both(), 120))
